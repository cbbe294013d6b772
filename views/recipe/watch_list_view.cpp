#include "views/recipe/watch_list_view.h"

#include <QGridLayout>
#include <QMenu>
#include <QPushButton>
#include <QToolButton>
#include <algorithm>

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

WatchListView::WatchListView(QWidget* parent) : RowList(parent) {}

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
  rebuild("watches.add", [this](QGridLayout* grid) { fill(grid); });
}

void WatchListView::fill(QGridLayout* grid) {
  grid->setHorizontalSpacing(6);
  grid->setVerticalSpacing(2);
  grid->setColumnStretch(0, 1);
  for (size_t i = 0; i < rows_.size(); ++i) add_row(grid, static_cast<int>(i), rows_[i]);
  grid->addWidget(make_add(grid->parentWidget()), static_cast<int>(rows_.size()) * 2, 0, Qt::AlignLeft);
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
      auto* says = rows()->findChild<ElidedLabel*>(name_of_watch(place) + ".says");
      says->set_text(QString::fromStdString(e.message() + (e.hint().empty() ? "" : "; " + e.hint())));
      set_style(says, "voice", "small-bad");
    }
  });
  auto* says = new ElidedLabel(tip, parent);
  says->setObjectName(name_of_watch(place) + ".says");
  says->setFixedHeight(kSaysHeight);
  set_style(says, "voice", row.fault.empty() ? "small" : "small-bad");
  auto* remove = slim_button(name_of_watch(place) + ".remove", "×",
                             tr("Without it: %1").arg(QString::fromStdString(row.text)), parent);
  connect(remove, &QToolButton::clicked, this, [this, place] {
    if (on_edit) on_edit(with_watch_at(recipe_, static_cast<size_t>(place), {}));
  });
  grid->addWidget(line, place * 2, 0);
  grid->addWidget(remove, place * 2, 1);
  grid->addWidget(says, place * 2 + 1, 0);
}

size_t WatchListView::row_of(const std::string& condition) const {
  const auto has = [&](const WatchRow& row) { return row.condition == condition; };
  return static_cast<size_t>(std::find_if(rows_.begin(), rows_.end(), has) - rows_.begin());
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
    // One whose condition is there, with something else to be done, is changed in its line.
    const std::string condition = parse_watch(text).condition;
    action->setEnabled(row_of(condition) == rows_.size());
    connect(action, &QAction::triggered, this, [this, text = text, condition] {
      const size_t place = row_of(condition);
      // The rows may have changed while the menu was open.
      if (on_edit && place == rows_.size()) on_edit(with_watch(recipe_, text));
      // It is an example: what it says is changed next.
      if (auto* line = rows()->findChild<WatchLine*>(name_of_watch(static_cast<int>(place)))) {
        line->setFocus();
        line->selectAll();
      }
    });
  }
  add->setMenu(menu);
  return add;
}

}  // namespace tenon::views
