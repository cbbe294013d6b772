#include "views/sweeps/sweep_form_view.h"

#include <QApplication>
#include <QComboBox>
#include <QFormLayout>
#include <QGridLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "projects/search/sweep_plan.h"
#include "views/canvas/glyphs.h"
#include "views/frame/attr_editor.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr const char* kRangeHelp = tr_later(
    "A range lin:0..0.5, log:1e-4..1e-1 or int:1..8 (log:1e-4..1e-1:4 for 4 points in a grid), or a list adam,sgd");

QLabel* title(const QString& text, QWidget* parent) {
  auto* l = new QLabel(text, parent);
  l->setFont(face_font(Face::title));
  l->setContentsMargins(0, 10, 0, 2);
  return l;
}
}  // namespace

SweepForm::SweepForm(QWidget* parent) : QWidget(parent) {
  set_style(this, "surface", "panel");
  setAttribute(Qt::WA_StyledBackground);
  box_ = new QVBoxLayout(this);
  box_->setContentsMargins(16, 4, 16, 16);
  box_->setSpacing(4);
  box_->addWidget(title(tr("Keys of the recipe"), this));
  keys_ = new QWidget(this);
  box_->addWidget(keys_);
  auto* add = new QPushButton(tr("Add a key"), this);
  add->setObjectName("sweep.add_key");
  connect(add, &QPushButton::clicked, this, [this] {
    draft_.add_key();
    rebuild_keys();
  });
  auto* row = new QHBoxLayout;
  row->addWidget(add);
  row->addStretch();
  box_->addLayout(row);
  box_->addWidget(title(tr("Search"), this));
  attrs_ = new QWidget(this);
  box_->addWidget(attrs_);
  name_ = new QLineEdit(this);
  name_->setObjectName("sweep.name");
  name_->setAccessibleName(tr("Name of the sweep"));
  name_->setPlaceholderText(tr("name: the next free one"));
  box_->addSpacing(4);
  box_->addWidget(name_);
  said_ = new QLabel(this);
  said_->setObjectName("sweep.said");
  said_->setWordWrap(true);
  said_->setTextFormat(Qt::PlainText);
  said_->setContentsMargins(0, 6, 0, 2);
  box_->addWidget(said_);
  begin_ = new QPushButton(tr("Start the sweep"), this);
  begin_->setObjectName("sweep.begin");
  set_style(begin_, "primary", "true");
  connect(begin_, &QPushButton::clicked, this, [this] {
    if (on_begin) on_begin(name_->text().trimmed().toStdString(), draft_);
  });
  box_->addWidget(begin_);
  box_->addStretch();
  rebuild_attrs();
}

void SweepForm::reset(const Recipe& recipe) {
  draft_.reset(recipe);
  name_->clear();
  rebuild_keys();
  rebuild_attrs();
}

void SweepForm::set_recipe(const Recipe& recipe) {
  draft_.set_recipe(recipe);
  refresh();
}

void SweepForm::set_ready(bool ready, const QString& why) {
  ready_ = ready;
  why_not_ = why;
  refresh();
}

void SweepForm::focus_keys() {
  if (auto* line = findChild<QLineEdit*>("sweep.range.0")) line->setFocus();
}

void SweepForm::rebuild_keys() {
  QString focused;
  if (QWidget* w = QApplication::focusWidget(); w && keys_->isAncestorOf(w)) focused = w->objectName();
  for (QWidget* w : keys_->findChildren<QWidget*>()) w->blockSignals(true);
  auto* fresh = new QWidget(this);
  auto* grid = new QGridLayout(fresh);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(6);
  grid->setVerticalSpacing(4);
  grid->setColumnStretch(0, 1);
  grid->setColumnStretch(1, 1);
  for (size_t i = 0; i < draft_.keys().size(); ++i) add_key_row(grid, static_cast<int>(i));
  box_->replaceWidget(keys_, fresh);
  discard(keys_);
  keys_ = fresh;
  if (!focused.isEmpty())
    if (auto* w = fresh->findChild<QWidget*>(focused)) w->setFocus();
  refresh();
}

void SweepForm::add_key_row(QGridLayout* grid, int at) {
  const auto& [key, range] = draft_.keys()[static_cast<size_t>(at)];
  auto* line = new QLineEdit(QString::fromStdString(range), grid->parentWidget());
  AttrDef which{"key", key, 0, 0, views::tr("the key that is searched")};
  for (const AttrDef& d : draft_.choices()) which.choices.push_back(d.name);
  if (std::find(which.choices.begin(), which.choices.end(), key) == which.choices.end()) which.choices.push_back(key);
  // The row stays while a key is chosen in it: letters that are typed go on from each other.
  QWidget* name = make_attr_editor(
      which, key,
      [this, at, line](const AttrValue& v) {
        draft_.set_key(static_cast<size_t>(at), std::get<std::string>(v));
        line->setText(QString::fromStdString(draft_.keys()[static_cast<size_t>(at)].second));
        explain(line, at);
        refresh();
      },
      grid->parentWidget());
  name->setObjectName(QString("sweep.key.%1").arg(at));
  name->setAccessibleName(tr("Key %1").arg(at + 1));
  name->setMinimumWidth(90);
  grid->addWidget(name, at, 0);
  line->setObjectName(QString("sweep.range.%1").arg(at));
  line->setAccessibleName(tr("Values of key %1").arg(at + 1));
  line->setMinimumWidth(90);
  line->setPlaceholderText("log:1e-4..1e-1");
  explain(line, at);
  connect(line, &QLineEdit::textChanged, this, [this, at](const QString& text) {
    draft_.set_range(static_cast<size_t>(at), text.trimmed().toStdString());
    refresh();
  });
  grid->addWidget(line, at, 1);
  setTabOrder(name, line);
  auto* remove = new QToolButton(grid->parentWidget());
  remove->setText("×");
  remove->setObjectName(QString("sweep.remove.%1").arg(at));
  remove->setAccessibleName(tr("Take key %1 out").arg(at + 1));
  remove->setToolTip(tr("Take this key out"));
  set_style(remove, "slim", "true");
  connect(remove, &QToolButton::clicked, this, [this, at] {
    draft_.remove_key(static_cast<size_t>(at));
    rebuild_keys();
  });
  grid->addWidget(remove, at, 2);
}

/// What the key of a row is for, what it may be, and how that is written.
void SweepForm::explain(QLineEdit* line, int at) {
  QString help = tr(kRangeHelp);
  for (const AttrDef& d : draft_.choices())
    if (d.name == draft_.keys()[static_cast<size_t>(at)].first)
      help = QString::fromStdString(d.help + "\n" + attr_allowed(d) + "\n") + help;
  line->setToolTip(help);
}

void SweepForm::rebuild_attrs() {
  for (QWidget* w : attrs_->findChildren<QWidget*>()) w->blockSignals(true);
  auto* fresh = new QWidget(this);
  auto* form = new QFormLayout(fresh);
  form->setContentsMargins(0, 0, 0, 0);
  form->setHorizontalSpacing(12);
  form->setVerticalSpacing(4);
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  for (const AttrDef& def : projects::SweepPlan::attrs()) {
    auto* label = new QLabel(QString::fromStdString(def.name).replace('_', ' '), fresh);
    set_style(label, "voice", "secondary");
    QWidget* editor = make_attr_editor(
        def, draft_.attr(def.name),
        [this, name = def.name](const AttrValue& v) {
          draft_.set_attr(name, v);
          refresh();
        },
        fresh);
    editor->setObjectName("sweep." + QString::fromStdString(def.name));
    editor->setAccessibleName(QString::fromStdString(def.name));
    label->setBuddy(editor);
    label->setToolTip(editor->toolTip());
    form->addRow(label, editor);
  }
  box_->replaceWidget(attrs_, fresh);
  discard(attrs_);
  attrs_ = fresh;
  refresh();
}

void SweepForm::refresh() {
  const QString fault = QString::fromStdString(draft_.fault());
  const QString said = !fault.isEmpty() ? fault
                       : !ready_        ? why_not_
                                        : tr("%1 trials, each a run of the project").arg(draft_.trials());
  set_style(said_, "voice", fault.isEmpty() ? "secondary" : "bad");
  if (said_->text() != said) said_->setText(said);
  begin_->setEnabled(fault.isEmpty() && ready_);
}

}  // namespace tenon::views
