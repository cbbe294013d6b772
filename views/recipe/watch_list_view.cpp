#include "views/recipe/watch_list_view.h"

#include <QApplication>
#include <QGridLayout>
#include <QMenu>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/error.h"
#include "views/frame/attr_editor.h"
#include "views/frame/watch_line_view.h"
#include "views/frame/widgets.h"

namespace tenon::views {
namespace {

constexpr int kSaysHeight = 20;

QString name_of_watch(int place) { return "watch." + QString::number(place); }

/// "where loss is above 3; the run pauses": what a person reads.
QString says_of(const WatchRow& row) {
  if (!row.fault.empty()) return QString::fromStdString(row.fault);
  return QString::fromStdString(row.says) + ": " + QString::fromStdString(watch_action_help(row.action));
}

}  // namespace

WatchListView::WatchListView(QWidget* parent) : QWidget(parent) {
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(0, 0, 0, 4);
  box->setSpacing(6);
}

void WatchListView::set_recipe(const Recipe& recipe, const std::vector<std::string>& layers) {
  recipe_ = recipe;
  layers_ = layers;
  rows_ = watch_rows(recipe);
  std::string now = "shown\n";
  for (const WatchRow& r : rows_) now += r.text + "\n" + r.fault + "\n";
  if (now == shown_) {
    for (auto* line : findChildren<WatchLine*>()) line->set_layers(layers_);
    return;
  }
  shown_ = std::move(now);
  rebuild();
}

void WatchListView::rebuild() {
  // The hand goes on where it was; where that is gone, at the button that adds.
  QString focused;
  if (QWidget* w = QApplication::focusWidget(); w && list_ && list_->isAncestorOf(w)) focused = w->objectName();
  if (list_) {
    for (QWidget* w : list_->findChildren<QWidget*>()) w->blockSignals(true);  // hiding a line would end its edit
    layout()->removeWidget(list_);
    discard(list_);
  }
  list_ = new QWidget(this);
  auto* grid = new QGridLayout(list_);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(6);
  grid->setVerticalSpacing(2);
  grid->setColumnStretch(0, 1);
  for (size_t i = 0; i < rows_.size(); ++i) add_row(grid, static_cast<int>(i), rows_[i]);
  grid->addWidget(make_add(list_), static_cast<int>(rows_.size()) * 2, 0, Qt::AlignLeft);
  layout()->addWidget(list_);
  list_->show();
  if (focused.isEmpty()) return;
  QWidget* w = list_->findChild<QWidget*>(focused);
  (w && w->isEnabled() ? w : list_->findChild<QWidget*>("watches.add"))->setFocus();
}

void WatchListView::add_row(QGridLayout* grid, int place, const WatchRow& row) {
  QWidget* parent = grid->parentWidget();
  auto* line = new WatchLine(parent);
  line->setObjectName(name_of_watch(place));
  line->setAccessibleName(tr("Watch %1").arg(place + 1));
  line->setText(QString::fromStdString(row.text));
  line->setCursorPosition(0);
  line->set_layers(layers_);
  const QString tip = says_of(row);
  line->setToolTip(tip);
  line->setProperty("tip", tip);
  if (!row.fault.empty()) set_style(line, "bad", "true");
  connect(line, &QLineEdit::editingFinished, this, [this, line, place] {
    if (!line->isModified() || !on_edit) return;
    line->setModified(false);
    try {
      on_edit(with_watch_at(recipe_, static_cast<size_t>(place), line->text().toStdString()));
    } catch (const Error& e) {
      tell_fault(line, QString::fromStdString(e.what()));
      auto* says = list_->findChild<ElidedLabel*>(name_of_watch(place) + ".says");
      says->set_text(QString::fromStdString(e.message() + (e.hint().empty() ? "" : "; " + e.hint())));
      set_style(says, "voice", "small-bad");
    }
  });
  auto* says = new ElidedLabel(tip, parent);
  says->setObjectName(name_of_watch(place) + ".says");
  says->setFixedHeight(kSaysHeight);
  set_style(says, "voice", row.fault.empty() ? "small" : "small-bad");
  auto* remove = new QToolButton(parent);
  remove->setObjectName(name_of_watch(place) + ".remove");
  remove->setText("×");
  const QString without = tr("Without it: %1").arg(QString::fromStdString(row.text));
  remove->setToolTip(without);
  remove->setAccessibleName(without);
  set_style(remove, "slim", "true");
  connect(remove, &QToolButton::clicked, this, [this, place] {
    if (on_edit) on_edit(with_watch_at(recipe_, static_cast<size_t>(place), {}));
  });
  grid->addWidget(line, place * 2, 0);
  grid->addWidget(remove, place * 2, 1);
  grid->addWidget(says, place * 2 + 1, 0);
}

QPushButton* WatchListView::make_add(QWidget* parent) {
  auto* add = new QPushButton(tr("Add a watch"), parent);
  add->setObjectName("watches.add");
  add->setToolTip(tr("A condition that is looked at while it trains. It changes no bit"));
  auto* menu = new QMenu(add);
  int n = 0;
  for (const auto& [text, help] : watch_examples()) {
    auto* action = menu->addAction(QString::fromStdString(text) + "\t" + QString::fromStdString(help));
    action->setObjectName("add.watch." + QString::number(n++));
    bool there = false;
    for (const WatchRow& row : rows_) there |= row.text == text;
    action->setEnabled(!there);
    connect(action, &QAction::triggered, this, [this, text = text] {
      const int place = static_cast<int>(rows_.size());
      if (!on_edit) return;
      try {
        on_edit(with_watch(recipe_, text));
      } catch (const Error&) {  // its condition is there, with something else to be done: that one is changed by hand
        return;
      }
      // It is an example: what it says is changed next.
      if (auto* line = list_->findChild<WatchLine*>(name_of_watch(place))) {
        line->setFocus();
        line->selectAll();
      }
    });
  }
  add->setMenu(menu);
  return add;
}

}  // namespace tenon::views
