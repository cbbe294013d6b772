#include "views/frame/picker.h"

#include <QApplication>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "views/canvas/glyphs.h"
#include "views/frame/theme.h"

namespace tenon::views {

namespace {
/// Name on the left, a quieter note behind it, keys on the right.
class Lines : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* p, const QStyleOptionViewItem& o, const QModelIndex& i) const override {
    QStyleOptionViewItem plain = o;
    initStyleOption(&plain, i);
    plain.text.clear();
    plain.widget->style()->drawControl(QStyle::CE_ItemViewItem, &plain, p, plain.widget);
    QRect r = o.rect.adjusted(10, 0, -10, 0);
    QString keys = i.data(Qt::UserRole + 1).toString(), note = i.data(Qt::UserRole).toString(),
            text = i.data(Qt::DisplayRole).toString();
    p->setFont(face_font(Face::small));
    QColor quiet = QApplication::palette().color(QPalette::PlaceholderText);
    if (!keys.isEmpty()) {
      p->setPen(quiet);
      p->drawText(r, Qt::AlignRight | Qt::AlignVCenter, keys);
      r.setRight(r.right() - p->fontMetrics().horizontalAdvance(keys) - 12);
    }
    p->setFont(face_font(Face::body));
    p->setPen(o.palette.color(i.flags() ? QPalette::Text : QPalette::PlaceholderText));
    QString shown = p->fontMetrics().elidedText(text, Qt::ElideMiddle, r.width());
    p->drawText(r, Qt::AlignLeft | Qt::AlignVCenter, shown);
    r.setLeft(r.left() + p->fontMetrics().horizontalAdvance(shown) + 10);
    p->setPen(quiet);
    p->setFont(face_font(Face::small));
    if (r.width() > 20)
      p->drawText(r, Qt::AlignLeft | Qt::AlignVCenter, p->fontMetrics().elidedText(note, Qt::ElideRight, r.width()));
  }
  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override { return {100, 28}; }
};
}  // namespace

Picker::Picker(QWidget* parent) : QFrame(parent), field_(new QLineEdit(this)), list_(new QListWidget(this)) {
  setObjectName("picker");
  set_style(this, "surface", "raised");
  setAutoFillBackground(true);
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(8, 8, 8, 8);
  box->setSpacing(6);
  box->addWidget(field_);
  box->addWidget(list_);
  list_->setItemDelegate(new Lines(list_));
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setUniformItemSizes(true);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  field_->installEventFilter(this);
  connect(field_, &QLineEdit::textChanged, this, &Picker::fill);
  connect(list_, &QListWidget::itemClicked, this, [this](QListWidgetItem* item) { choose(list_->row(item)); });
  hide();
}

void Picker::open(const QString& hint, Source source, Missed missed, const QString& typed, QPoint at, int width) {
  source_ = std::move(source);
  missed_ = std::move(missed);
  field_->setPlaceholderText(hint);
  field_->setText(typed);
  fill();
  QWidget* around = parentWidget();
  width = std::min(width, around->width() - 40);
  if (at.x() < 0) at = {(around->width() - width) / 2, 76};
  most_height_ = std::max(std::min(420, around->height() - at.y() - 20), 160);
  setGeometry(std::clamp(at.x(), 8, around->width() - width - 8), at.y(), width, most_height_);
  fit_height();
  show();
  raise();
  field_->setFocus(Qt::PopupFocusReason);
  field_->end(false);
}

void Picker::fill() {
  items_ = source_ ? source_(field_->text()) : std::vector<Item>();
  list_->clear();
  for (const Item& i : items_) {
    auto* row = new QListWidgetItem(i.text, list_);
    row->setData(Qt::UserRole, i.note);
    row->setData(Qt::UserRole + 1, i.keys);
  }
  if (!items_.empty())
    list_->setCurrentRow(0);
  else
    for (const QString& sentence : missed_(field_->text().trimmed()))
      (new QListWidgetItem(sentence, list_))->setFlags(Qt::NoItemFlags);
  fit_height();
}

/// As tall as its items, so that nothing grey hangs under them.
void Picker::fit_height() {
  const int rows = std::max(1, list_->count());
  resize(width(), std::min(most_height_, 60 + 28 * rows));
}

void Picker::choose(int row) {
  if (row < 0 || row >= static_cast<int>(items_.size())) return;
  auto run = items_[row].run;
  hide();
  parentWidget()->setFocus();
  if (run) run();
}

bool Picker::eventFilter(QObject* o, QEvent* e) {
  if (e->type() == QEvent::FocusOut && isVisible()) {
    hide();
    return false;
  }
  if (e->type() != QEvent::KeyPress) return QFrame::eventFilter(o, e);
  int key = static_cast<QKeyEvent*>(e)->key(), n = list_->count(), row = list_->currentRow();
  if (key == Qt::Key_Escape) {
    hide();
    parentWidget()->setFocus();
  } else if (key == Qt::Key_Return || key == Qt::Key_Enter)
    choose(row);
  else if (key == Qt::Key_Down && n > 0)
    list_->setCurrentRow((row + 1) % n);
  else if (key == Qt::Key_Up && n > 0)
    list_->setCurrentRow((row + n - 1) % n);
  else if (key == Qt::Key_PageDown && n > 0)
    list_->setCurrentRow(std::min(row + 10, n - 1));
  else if (key == Qt::Key_PageUp && n > 0)
    list_->setCurrentRow(std::max(row - 10, 0));
  else
    return QFrame::eventFilter(o, e);
  return true;
}

}  // namespace tenon::views
