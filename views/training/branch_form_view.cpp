#include "views/training/branch_form_view.h"

#include <QApplication>
#include <QCheckBox>
#include <QFormLayout>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <climits>
#include <utility>

#include "views/canvas/glyphs.h"
#include "views/frame/attr_editor.h"
#include "views/frame/bench.h"
#include "views/frame/table_list.h"
#include "views/frame/widgets.h"
#include "views/shared/language.h"
#include "views/shared/surgery_table.h"

namespace tenon::views {
namespace {
constexpr const char* kPlan = "surgery";
}  // namespace

BranchForm::BranchForm(BranchDraft draft, Bench& bench, QWidget* parent)
    : BranchDialog("branch", tr("Branch of %1").arg(QString::fromStdString(draft.run().name)), parent),
      draft_(std::move(draft)),
      bench_(bench) {
  auto* all = new QVBoxLayout(this);
  all->setSpacing(10);
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  step_ = new QSpinBox(this);
  step_->setObjectName("branch.step");
  step_->setAccessibleName(tr("After step"));
  step_->setRange(0, static_cast<int>(std::min<int64_t>(draft_.run().steps, INT_MAX)));
  step_->setValue(static_cast<int>(draft_.step()));
  step_->setToolTip(tr("The branch goes on from the state after this step; 0 is the state before the first one"));
  connect(step_, &QSpinBox::valueChanged, this, [this](int v) {
    draft_.set_step(v);
    refresh();
  });
  form->addRow(tr("After step"), step_);
  add_name(form, [this](std::string name) { draft_.set_name(std::move(name)); });
  auto* without = new QLineEdit(this);
  without->setObjectName("branch.without");
  without->setPlaceholderText("96, 120-130; own.csv, line 7");
  without->setToolTip(
      tr("Training samples that are left out, by their rows or by where they come from, with semicolons between them"));
  connect(without, &QLineEdit::textChanged, this, [this](const QString& text) {
    draft_.set_left_out(text.trimmed().toStdString());
    refresh();
  });
  form->addRow(tr("Without samples"), without);
  all->addLayout(form);
  if (draft_.offered_model()) add_model(all);
  auto* heading = new QLabel(tr("Changes"), this);
  heading->setFont(face_font(Face::title));
  all->addWidget(heading);
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* page = new QWidget(scroll);
  box_ = new QVBoxLayout(page);
  box_->setContentsMargins(0, 0, 0, 0);
  box_->addWidget(rows_ = new QWidget(page));
  auto* add = new QPushButton(tr("Add a change"), page);
  add->setObjectName("branch.add");
  add->setAutoDefault(false);
  connect(add, &QPushButton::clicked, this, [this] {
    draft_.add_change();
    rebuild();
  });
  auto* line = new QHBoxLayout;
  line->addWidget(add);
  line->addStretch(1);
  box_->addLayout(line);
  box_->addStretch(1);
  scroll->setWidget(page);
  all->addWidget(scroll, 1);
  add_end(all, false);
  draft_.add_change();
  resize(QSize(560, 460).boundedTo(parent->window()->size() - QSize(20, 20)));
  rebuild();
}

BranchForm::~BranchForm() { bench_.jobs.cancel_tag(kPlan); }

void BranchForm::add_model(QVBoxLayout* all) {
  with_model_ = new QCheckBox(tr("With the project's model"), this);
  with_model_->setObjectName("branch.model");
  with_model_->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);  // a box is as wide as where a click ticks it
  with_model_->setToolTip(
      tr("The model was edited since the run began. What has a place in it goes on with what it learnt: wider layers "
         "begin with copies, new ones so that they change nothing, where there is a way"));
  all->addWidget(with_model_);
  surgery_ = new QWidget(this);
  auto* box = new QVBoxLayout(surgery_);
  box->setContentsMargins(0, 0, 0, 0);
  table_ = new TableList(surgery_);
  table_->setObjectName("branch.surgery");
  table_->setAccessibleName(tr("What becomes of each tensor"));
  table_->setMinimumHeight(120);
  box->addWidget(table_, 1);
  kept_ = new QLabel(surgery_);
  kept_->setObjectName("branch.kept");
  kept_->setWordWrap(true);
  set_style(kept_, "voice", "secondary");
  box->addWidget(kept_);
  all->addWidget(surgery_, 2);
  surgery_->hide();
  connect(with_model_, &QCheckBox::toggled, this, &BranchForm::model_chosen);
  wait_.setSingleShot(true);
  wait_.setInterval(200);
  connect(&wait_, &QTimer::timeout, this, &BranchForm::plan);
  connect(&bench_, &Bench::state_changed, this, [this] {
    if (waits_for_rest_ && draft_.with_model()) plan();
  });
}

void BranchForm::choose_model() {
  if (with_model_) with_model_->setChecked(true);
}

void BranchForm::model_chosen(bool on) {
  draft_.set_with_model(on);
  surgery_->setVisible(on);
  if (on)
    resize(QSize(std::max(width(), 800), std::max(height(), 640))
               .boundedTo(parentWidget()->window()->size() - QSize(20, 20)));
  refresh();
}

bool BranchForm::run_rests() {
  using State = projects::RunStatus::State;
  if (!bench_.trains(draft_.run().id)) return true;
  if (bench_.status().state == State::paused) return true;
  if (!std::exchange(held_, true)) bench_.ask("run.pause");
  return false;
}

void BranchForm::ask_for_plan() {
  plan_fault_.clear();
  if (!draft_.with_model()) return;
  table_->say_when_empty({});
  kept_->setText(tr("Working out what stays…"));
  wait_.start();
}

void BranchForm::plan() {
  waits_for_rest_ = !run_rests();
  if (waits_for_rest_) return;
  follow_run();
  bench_.jobs.start(
      kPlan, tr("What stays of %1").arg(QString::fromStdString(draft_.run().name)),
      [project = bench_.project(), run = draft_.run(), step = draft_.step(), model = draft_.offered_model(),
       set = draft_.settings()](const Jobs::Report& report, const std::atomic<bool>&) {
        return std::make_shared<const projects::SurgeryPlan>(
            projects::plan_surgery(*project, run, step, *model, set, report));
      },
      [form = QPointer<BranchForm>(this)](std::shared_ptr<const projects::SurgeryPlan> plan) {
        if (form) form->show_plan(std::move(plan));
      },
      [form = QPointer<BranchForm>(this)](const QString& message, const QString& hint) {
        if (!form) return;
        form->plan_fault_ = hint.isEmpty() ? message : message + "\n" + hint;
        form->show_plan(nullptr);
      });
}

/// A run that was paused for the form stands further on than when that was opened.
void BranchForm::follow_run() {
  const projects::RunInfo* now = bench_.contents().run(draft_.run().id);
  if (!held_ || !now || now->steps <= step_->maximum()) return;
  const bool last = step_->value() == step_->maximum();
  const auto steps = static_cast<int>(std::min<int64_t>(now->steps, INT_MAX));
  draft_.set_run(*now);
  const QSignalBlocker quiet(step_);
  step_->setMaximum(steps);
  if (last) step_->setValue(steps);
  draft_.set_step(step_->value());
}

void BranchForm::show_plan(std::shared_ptr<const projects::SurgeryPlan> plan) {
  table_->say_when_empty(plan ? tr("Every tensor stays as it is.") : QString());
  table_->set_table(plan ? surgery_table(plan->rows, false) : Table());
  kept_->setText(plan ? QString::fromStdString(plan->text()) : QString());
  tell();
}

/// Where the run was paused for the form, it goes on when that is left without a branch.
void BranchForm::done(int result) {
  BranchDialog::done(result);
  if (held_ && result == Rejected && bench_.trains(draft_.run().id)) bench_.train();
}

void BranchForm::rebuild() {
  QString focused;
  if (QWidget* w = QApplication::focusWidget(); w && rows_->isAncestorOf(w)) focused = w->objectName();
  for (QWidget* w : rows_->findChildren<QWidget*>()) w->blockSignals(true);
  auto* fresh = new QWidget(rows_->parentWidget());
  auto* grid = new QGridLayout(fresh);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(8);
  grid->setVerticalSpacing(6);
  grid->setColumnStretch(0, 1);
  grid->setColumnStretch(1, 1);
  for (size_t i = 0; i < draft_.changes().size(); ++i) add_row(grid, i);
  box_->replaceWidget(rows_, fresh);
  discard(rows_);
  rows_ = fresh;
  if (!focused.isEmpty())
    if (auto* w = fresh->findChild<QWidget*>(focused)) w->setFocus();
  refresh();
}

void BranchForm::add_row(QGridLayout* grid, size_t at) {
  const auto& [key, value] = draft_.changes()[at];
  AttrDef which{"key", key, 0, 0, views::tr("the key that is changed")};
  for (const AttrDef& d : draft_.choices(at)) which.choices.push_back(d.name);
  if (std::find(which.choices.begin(), which.choices.end(), key) == which.choices.end()) which.choices.push_back(key);
  QWidget* name = make_attr_editor(
      which, key,
      [this, at](const AttrValue& v) {
        draft_.set_key(at, std::get<std::string>(v));
        QTimer::singleShot(0, this, &BranchForm::rebuild);  // not within the list's own signal
      },
      grid->parentWidget());
  const auto row = static_cast<int>(at);
  name->setObjectName(QString("branch.key.%1").arg(row));
  name->setAccessibleName(tr("Key %1").arg(row + 1));
  grid->addWidget(name, row, 0);
  QWidget* editor = make_attr_editor(
      draft_.definition(at), value,
      [this, at](const AttrValue& v) {
        draft_.set_value(at, v);
        refresh();
      },
      grid->parentWidget());
  editor->setObjectName(QString("branch.value.%1").arg(row));
  editor->setAccessibleName(tr("Value of key %1").arg(row + 1));
  grid->addWidget(editor, row, 1);
  auto* remove = new QToolButton(grid->parentWidget());
  remove->setText("×");
  remove->setObjectName(QString("branch.remove.%1").arg(row));
  remove->setAccessibleName(tr("Take key %1 out").arg(row + 1));
  remove->setToolTip(tr("Take this key out"));
  set_style(remove, "slim", "true");
  connect(remove, &QToolButton::clicked, this, [this, at] {
    draft_.remove(at);
    rebuild();
  });
  grid->addWidget(remove, row, 2);
}

void BranchForm::refresh() {
  ask_for_plan();
  tell();
}

void BranchForm::tell() {
  QString fault = QString::fromStdString(draft_.fault());
  if (fault.isEmpty()) fault = plan_fault_;
  const QString said = QString::fromStdString(draft_.said());
  say(fault, said.isEmpty()
                 ? tr("Without a change it is %1 again, step for step.").arg(QString::fromStdString(draft_.run().name))
                 : said);
}

}  // namespace tenon::views
