#include "views/shell/help_panel.h"

#include <QApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QScrollArea>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "views/canvas/glyphs.h"

namespace tenon::views {

constexpr int kHelpWidth = 400;

HelpPanel::HelpPanel(Commands& commands, QWidget* window) : QFrame(window), commands_(commands) {
  setObjectName("help");
  setAccessibleName(tr("Help"));
  set_style(this, "surface", "raised");
  setAutoFillBackground(true);
  setFocusPolicy(Qt::StrongFocus);
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(1, 1, 1, 1);
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  page_ = new QWidget(scroll);
  set_style(page_, "surface", "panel");
  page_->setAttribute(Qt::WA_StyledBackground);
  box_ = new QVBoxLayout(page_);
  box_->setContentsMargins(16, 10, 10, 14);
  box_->setSpacing(2);
  scroll->setWidget(page_);
  outer->addWidget(scroll);
  hide();
}

void HelpPanel::add(const char* head, const QString& text) {
  auto* h = new QLabel(tr(head), page_);
  set_style(h, "voice", "small");
  h->setContentsMargins(0, 8, 0, 0);
  auto* t = new QLabel(text, page_);
  t->setObjectName(QString("help.") + head);
  t->setWordWrap(true);
  t->setTextFormat(Qt::PlainText);
  t->setTextInteractionFlags(Qt::TextSelectableByMouse);
  box_->addWidget(h);
  box_->addWidget(t);
}

void HelpPanel::open(View* view, const QStringList& commands) {
  while (QLayoutItem* item = box_->takeAt(0)) {
    if (item->widget()) discard(item->widget());
    delete item;
  }
  if (!isVisible()) before_ = QApplication::focusWidget();
  view_ = view;
  auto* head = new QWidget(page_);
  auto* row = new QHBoxLayout(head);
  row->setContentsMargins(0, 0, 0, 0);
  auto* title = new QLabel(view->title(), head);
  set_style(title, "voice", "title");
  row->addWidget(title, 1);
  auto* close = new QToolButton(head);
  close->setObjectName("help.close");
  close->setText(tr("Close"));
  close->setToolTip(tr("Close the help (Esc)"));
  connect(close, &QToolButton::clicked, this, &HelpPanel::close_help);
  row->addWidget(close);
  box_->addWidget(head);
  const ViewDef::Help& help = view->def().help;
  add(tr_later("What it shows"), tr(help.shows));
  add(tr_later("Mouse"), tr(help.mouse));
  add(tr_later("Keys"), tr(help.keys));
  QStringList lines;
  for (const QString& id : commands)
    if (const Command* c = commands_.find(id)) {
      const QString keys = QKeySequence(c->keys, QKeySequence::PortableText).toString(QKeySequence::NativeText);
      lines << (keys.isEmpty() ? c->title : c->title + "  (" + keys + ")");
    }
  if (!lines.isEmpty()) add(tr_later("Commands"), lines.join("\n"));
  box_->addStretch(1);
  place();
  show();
  raise();
  setFocus(Qt::PopupFocusReason);
}

/// At the right edge of the view, as tall as its words and no taller than the window.
void HelpPanel::place() {
  QWidget* around = parentWidget();
  const int width = std::min(kHelpWidth, around->width() - 16);
  page_->setFixedWidth(width - 2);
  const int wanted = box_->totalHeightForWidth(width - 2) + 4;
  QRect over = around->rect();
  if (view_ && view_->window() == around->window())
    over = QRect(view_->mapTo(around, QPoint(0, 0)), view_->size()).intersected(around->rect());
  const int bottom = around->height() - 36;  // the status bar stays to be read
  const int height = std::min(wanted, bottom - 8);
  int x = over.right() - width - 8, y = over.top() + 8;
  x = std::clamp(x, 8, std::max(8, around->width() - width - 8));
  y = std::clamp(y, 8, std::max(8, bottom - height));
  setGeometry(x, y, width, height);
}

void HelpPanel::close_help() {
  hide();
  view_ = nullptr;
  if (before_) before_->setFocus();
}

void HelpPanel::keyPressEvent(QKeyEvent* e) {
  if (e->key() == Qt::Key_Escape) return close_help();
  QFrame::keyPressEvent(e);
}

}  // namespace tenon::views
