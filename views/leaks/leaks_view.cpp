#include "views/leaks/leaks_view.h"

#include <QHBoxLayout>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/error.h"
#include "views/frame/finding_pane.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {

constexpr int64_t kOffered = 20;  // steps

QString leak_number(int64_t n) { return QString::fromStdString(format_grouped(n)); }

QSpinBox* step_box(const QString& name, const QString& tip, QWidget* parent) {
  auto* box = new QSpinBox(parent);
  box->setObjectName("leaks." + name);
  box->setAccessibleName(tip);
  box->setToolTip(tip);
  box->setRange(1, 1);
  box->setKeyboardTracking(false);
  return box;
}

}  // namespace

LeaksView::LeaksView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  set_content(build());
  connect(&bench, &Bench::project_changed, this, &LeaksView::refresh);
  connect(&bench, &Bench::run_changed, this, &LeaksView::refresh);
  connect(&bench, &Bench::status_changed, this, &LeaksView::refresh);
  refresh();
}

QWidget* LeaksView::build() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  bar->add_label(tr("Steps"));
  from_ = step_box("from", tr("The first step that is looked at"), bar);
  bar->add(from_);
  bar->add_label(tr("to"));
  to_ = step_box("to", tr("The last step that is looked at"), bar);
  bar->add(to_);
  for (QSpinBox* b : {from_, to_}) connect(b, &QSpinBox::valueChanged, this, [this] { say_plan(); });
  look_ =
      bar->add_button("leaks.look", tr("Look for leaks"),
                      tr("Replays these steps and follows every block of memory that they take"), [this] { search(); });
  plan_ = new ElidedLabel({}, bar);
  plan_->setObjectName("leaks.plan");
  bar->add(plan_, 1);
  box->addWidget(bar);
  pane_ = new FindingPane("leaks", page);
  box->addWidget(pane_, 1);
  below_ = new QWidget(page);
  auto* row = new QHBoxLayout(below_);
  row->setContentsMargins(14, 6, 14, 8);
  edit_ = new ElidedLabel({}, below_);
  edit_->setObjectName("leaks.edit");
  row->addWidget(edit_, 1);
  below_->hide();
  box->addWidget(below_);
  return page;
}

void LeaksView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  pane_->set_theme(theme);
}

std::vector<Command> LeaksView::commands() {
  return {{.id = "run.leaks",
           .title = tr_later("Look for memory leaks"),
           .menu = "Run",
           .icon = "memory",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 offer_steps();
                 say_plan();
               },
           .enabled = [this] { return bench_.shown_steps() > 0; },
           .section = run_menu::looking},
          {.id = "leaks.look",
           .title = tr_later("Look for leaks in the steps that are named there"),
           .icon = "search",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 search();
               },
           .enabled = [this] { return look_->isEnabled() && !bench_.jobs.has("leaks"); }}};
}

projects::LeakOptions LeaksView::asked() const { return {.from = from_->value(), .to = to_->value()}; }

void LeaksView::offer_steps() {
  steps_ = bench_.shown_steps();
  const auto last = static_cast<int>(std::max<int64_t>(1, steps_));
  const Selection& s = bench_.bus.current();
  const bool chosen = s.kind == Selection::Kind::step && s.document == Document::kProject && s.id >= 1;
  const int64_t to = chosen && s.id >= kOffered && s.id <= steps_ ? s.id : steps_;
  const QSignalBlocker quiet_from(from_), quiet_to(to_);
  from_->setRange(1, last);
  to_->setRange(1, last);
  to_->setValue(static_cast<int>(std::max<int64_t>(1, to)));
  from_->setValue(static_cast<int>(std::max<int64_t>(1, to - kOffered + 1)));
}

void LeaksView::say_plan() {
  look_->setEnabled(false);
  if (!bench_.has_project() || !bench_.shown_run()) return;
  try {
    const projects::LeakPlan plan = projects::plan_leaks(*bench_.project(), bench_.shown_run(), asked());
    plan_->set_text(tr("A replay of %1").arg(QString::fromStdString(plan.text())));
    look_->setEnabled(true);
  } catch (const Error& e) {
    plan_->set_text(QString::fromStdString(e.message()));
  }
}

void LeaksView::refresh() {
  if (of_ != bench_.shown_run() || !bench_.has_project()) {
    bench_.jobs.cancel_tag("leaks");
    known_.reset();
    pane_->set_page(nullptr);
    below_->hide();
    steps_ = 0;
  }
  of_ = bench_.has_project() ? bench_.shown_run() : 0;
  if (!bench_.has_project())
    return set_empty(true, tr("Open a project to look for memory that its runs never give back."));
  if (!of_ || bench_.shown_steps() < 1)
    return set_empty(true,
                     tr("Train first: leaks are looked for by doing steps again, every block of memory followed."));
  if (bench_.jobs.has("leaks")) return;
  set_empty(false);
  if (steps_ == 0 || (!known_ && steps_ != bench_.shown_steps())) offer_steps();
  say_plan();
  pane_->set_page(known_ ? known_->page : nullptr);
  if (!known_)
    pane_->say(
        tr("Which memory do these steps take and never give back, and who holds it? The steps are done again, "
           "and once more without the one who holds it: what grows no more was held by it."));
  const bool found = known_ && !known_->report.leaks.empty();
  below_->setVisible(found);
  if (!found) return;
  const auto& leaks = known_->report.leaks;
  const QString text = leaks.size() == 1 ? tr("What ends it: %1") : tr("What ends the largest: %1");
  edit_->set_text(text.arg(QString::fromStdString(leaks.front().edit())));
}

void LeaksView::search() {
  const projects::RunInfo* run = bench_.shown();
  if (!run) return;
  const projects::LeakOptions options = asked();
  bench_.jobs.start(
      "leaks", tr("Look for leaks in the steps %1 to %2").arg(leak_number(options.from), leak_number(options.to)),
      [project = bench_.project(), id = run->id, options](const Jobs::Report& report, const std::atomic<bool>&) {
        auto known = std::make_shared<Known>();
        known->report = projects::find_run_leaks(*project, id, options, report);
        known->page = std::make_shared<const FindingPage>(
            make_page(projects::leak_finding(known->report), Subject{.source = "leaks"}));
        return Search(std::move(known));
      },
      [this, of = of_](Search known) {
        if (of != of_) return;
        known_ = std::move(known);
        refresh();
      },
      [this](const QString& message, const QString& hint) {
        refresh();
        bench_.fail(tr("Leaks were not looked for"), message, hint);
      });
  set_waiting(
      bench_.jobs, [](const Jobs::State& job) { return job.tag == "leaks"; },
      tr("steps in which every block of memory is followed"), [this] { refresh(); });
}

namespace {
const bool registered_leaks_view = register_view<LeaksView>(
    {.id = "leaks",
     .title = tr_later("Leaks"),
     .icon = "memory",
     .order = 82,
     .layouts = {"Debug"},
     .fill = "leaks.look",
     .shows = nullptr,
     .help = {
         tr_later(
             "Memory that steps of a run take and never give back: who holds it, from a variable, a layer, a hook, "
             "a data set or a callback down to the storage, how many bytes a step, and what ends it. What warms "
             "up, is cached for a while or is emptied now and then is no leak."),
         tr_later(
             "The steps are replayed with every block of memory followed; what it may cost is told first. The proof "
             "is the same replay with that owner's tensors taken away: its growth beside the growth before, and "
             "whether every loss kept its bits."),
         tr_later("Up and Down go through the leaks.")}});
}  // namespace

}  // namespace tenon::views
