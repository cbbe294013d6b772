#include "views/recipe/callbacks_view.h"

#include <QGridLayout>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/frame/attr_editor.h"
#include "views/frame/flow_layout.h"
#include "views/frame/widgets.h"

namespace tenon::views {
namespace {

constexpr int kRow = 22;

/// Names of widgets: the same callback keeps its name where others come and go.
QString name_of(const CallbackRow& row) {
  const QString name = "callback." + QString::fromStdString(row.name);
  return row.place < 0 ? name : name + "." + QString::number(row.place);
}

std::string shown_of(const std::vector<CallbackRow>& rows) {
  std::string text;
  for (const CallbackRow& r : rows) {
    text += r.name + (r.on ? "+" : "-") + std::to_string(r.place) + r.says + r.fault;
    for (const std::string& key : r.keys) text += key;
    text += "\n";
  }
  return text;
}

}  // namespace

CallbacksView::CallbacksView(QWidget* parent) : RowList(parent) {}

void CallbacksView::set_recipe(const Recipe& recipe) {
  recipe_ = recipe;
  rows_ = callback_rows(recipe);
  if (std::string now = shown_of(rows_); now != shown_) {
    shown_ = std::move(now);
    rebuild("callbacks.add", [this](QGridLayout* grid) { fill(grid); });
  }
}

void CallbacksView::fill(QGridLayout* grid) {
  grid->setHorizontalSpacing(12);
  grid->setVerticalSpacing(3);
  grid->setColumnMinimumWidth(0, 130);
  grid->setColumnStretch(1, 1);
  int at = 0;
  for (const CallbackRow& row : rows_)
    if (row.on) add_row(grid, at++, row);
  grid->addWidget(make_add(grid->parentWidget()), at, 0, Qt::AlignLeft);
}

void CallbacksView::add_row(QGridLayout* grid, int at, const CallbackRow& row) {
  auto* title = new QLabel(QString::fromStdString(row.title), grid->parentWidget());
  title->setObjectName(name_of(row));
  title->setFixedHeight(kRow);
  QString tip = QString::fromStdString(row.def ? row.def->help : row.fault);
  if (row.def) tip += "\n" + tr("It acts %1.").arg(QString::fromStdString(moment_text(row.moment)));
  title->setToolTip(tip);
  auto* middle = new QWidget(grid->parentWidget());
  auto* box = new QVBoxLayout(middle);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(2);
  auto* says = new ElidedLabel(QString::fromStdString(row.fault.empty() ? row.says : row.fault), middle);
  says->setObjectName(name_of(row) + ".says");
  says->setFixedHeight(kRow);
  set_style(says, "voice", row.fault.empty() ? "small" : "small-bad");
  box->addWidget(says);
  if (row.place >= 0 && row.def && !row.def->attrs.empty()) box->addWidget(make_settings(row, middle));
  auto* buttons = new QWidget(grid->parentWidget());
  auto* line = new QHBoxLayout(buttons);
  line->setContentsMargins(0, 0, 0, 0);
  line->setSpacing(4);
  add_buttons(line, row);
  grid->addWidget(title, at, 0, Qt::AlignTop);
  grid->addWidget(middle, at, 1);
  grid->addWidget(buttons, at, 2, Qt::AlignRight | Qt::AlignTop);
}

QWidget* CallbacksView::make_settings(const CallbackRow& row, QWidget* parent) {
  auto* all = new QWidget(parent);
  auto* flow = new FlowLayout(8, all);
  for (const AttrDef& a : row.def->attrs) {
    const QString name = QString::fromStdString(a.name);
    auto* label = new QLabel(name, all);
    set_style(label, "voice", "secondary");
    label->setToolTip(QString::fromStdString(a.help));
    QWidget* editor = make_attr_editor(
        a, row.values.has(a.name) ? row.values.at(a.name) : a.fallback,
        [this, place = row.place, attr = a.name](const AttrValue& value) {
          if (on_edit) on_edit(with_callback_setting(recipe_, place, attr, value));
        },
        all);
    editor->setObjectName(name_of(row) + "." + name);
    editor->setAccessibleName(QString::fromStdString(row.title) + ": " + name);
    editor->setMaximumWidth(160);
    label->setBuddy(editor);
    flow->addWidget(label);
    flow->addWidget(editor);
  }
  return all;
}

void CallbacksView::add_buttons(QHBoxLayout* box, const CallbackRow& row) {
  QWidget* parent = box->parentWidget();
  const QString title = QString::fromStdString(row.title);
  for (const int by : {-1, 1}) {
    if (!callback_moves(rows_, row, by)) continue;
    auto* move = slim_button(name_of(row) + (by < 0 ? ".earlier" : ".later"), by < 0 ? "↑" : "↓",
                             by < 0 ? tr("%1 earlier").arg(title) : tr("%1 later").arg(title), parent);
    connect(move, &QToolButton::clicked, this, [this, place = row.place, by] {
      if (on_edit) on_edit(with_callback_moved(recipe_, place, by));
    });
    box->addWidget(move);
  }
  if (row.place < 0 && row.def) {
    const QString key = QString::fromStdString(row.keys[0]);
    auto* keys = slim_button(name_of(row) + ".keys", tr("Its keys"), tr("To %1").arg(key), parent);
    connect(keys, &QToolButton::clicked, this, [this, key] {
      if (on_key) on_key(key);
    });
    box->addWidget(keys);
  }
  auto* remove = slim_button(name_of(row) + ".remove", "×", tr("Without it: %1").arg(title), parent);
  connect(remove, &QToolButton::clicked, this, [this, row] {
    if (on_edit) on_edit(without_callback(recipe_, row));
  });
  box->addWidget(remove);
}

QPushButton* CallbacksView::make_add(QWidget* parent) {
  auto* add = new QPushButton(tr("Add a callback"), parent);
  add->setObjectName("callbacks.add");
  auto* menu = new QMenu(add);
  menu->setToolTipsVisible(true);
  for (const CallbackRow& row : rows_) {
    if (row.on) continue;
    auto* action = menu->addAction(QString::fromStdString(row.title));
    action->setObjectName("add." + QString::fromStdString(row.name));
    action->setToolTip(QString::fromStdString(row.fault.empty() ? row.says : row.fault));
    action->setEnabled(row.fault.empty());
    connect(action, &QAction::triggered, this, [this, name = row.name] {
      if (on_edit) on_edit(with_callback(recipe_, name));
    });
  }
  add->setMenu(menu);
  return add;
}

}  // namespace tenon::views
