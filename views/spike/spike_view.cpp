#include "views/spike/spike_view.h"

#include <QToolButton>
#include <QVBoxLayout>

#include "views/frame/finding_pane.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
QString spike_number(int64_t n) { return QString::fromStdString(format_grouped(n)); }
QString spike_loss(double v) { return QString::fromStdString(format_value(v)); }
}  // namespace

SpikeView::SpikeView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  set_content(build());
  connect(&bench, &Bench::project_changed, this, &SpikeView::refresh);
  connect(&bench, &Bench::run_changed, this, &SpikeView::refresh);
  connect(&bench, &Bench::status_changed, this, &SpikeView::refresh);
  connect(&bench, &Bench::state_changed, this, [this] { branch_->setEnabled(can_branch()); });
  refresh();
}

QWidget* SpikeView::build() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  said_ = new ElidedLabel({}, bar);
  said_->setObjectName("spike.said");
  bar->add(said_, 1);
  sample_ =
      bar->add_button("spike.sample", tr("Go to the sample"), tr("Shows it among the data, with where it comes from"),
                      [this] { bench_.show_samples(known_->report->culprit->rows); });
  branch_ =
      bar->add_button("spike.branch", tr("Branch without it"),
                      tr("Trains a run that goes on from before the spike without its cause"), [this] { branch(); });
  all_ = bar->add_button("spike.all", tr("Ask every cause"),
                         tr("Also those that were not asked once one explained the spike"), [this] { search(true); });
  bar->add_button("spike.again", tr("Another spike"), tr("The loss of the chosen step, or whichever stands out most"),
                  [this] { look(chosen_step()); });
  box->addWidget(bar);
  pane_ = new FindingPane("spike", page);
  box->addWidget(pane_, 1);
  return page;
}

void SpikeView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  pane_->set_theme(theme);
}

int64_t SpikeView::chosen_step() const {
  const Selection& s = bench_.bus.current();
  return s.kind == Selection::Kind::step && s.document == Document::kProject && s.id >= 1 ? s.id : -1;
}

std::vector<Command> SpikeView::commands() {
  return {{.id = "run.spike",
           .title = tr_later("Find what made the loss jump"),
           .menu = "Run",
           .icon = "search",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 look(chosen_step());
               },
           .enabled = [this] { return bench_.shown_steps() > 0; },
           .text =
               [this] {
                 const int64_t step = chosen_step();
                 return step < 0 ? tr("Find what made the loss jump")
                                 : tr("Why is the loss of step %1 so high?").arg(spike_number(step));
               },
           .section = run_menu::looking}};
}

void SpikeView::forget() {
  bench_.jobs.cancel_tag("spike");
  known_.reset();
  pane_->set_page(nullptr);
}

void SpikeView::refresh() {
  if (of_ != bench_.shown_run() || !bench_.has_project()) forget();
  of_ = bench_.has_project() ? bench_.shown_run() : 0;
  if (!bench_.has_project()) return set_empty(true, tr("Open a project to ask why a loss jumped."));
  if (!of_ || bench_.shown_steps() < 1)
    return set_empty(true, tr("Train first: what made a loss jump is found by doing the steps before it again."));
  if (bench_.jobs.has("spike")) return;
  if (known_ && known_->report) return show_found();
  if (known_) {
    const projects::Spike& s = known_->inquiry->spike();
    return set_empty(true,
                     tr("The loss of step %1 is %2, where %3 is usual. What may have made it is left out in one replay "
                        "after the other: %4.")
                         .arg(spike_number(s.step), spike_loss(s.loss), spike_loss(s.usual),
                              QString::fromStdString(known_->plan.text())),
                     tr("Find the cause"), [this] { search(false); });
  }
  const int64_t step = chosen_step();
  set_empty(true,
            tr("What made a loss jump: a sample, a batch, the order, the rate, a layer. Each is left out in replays of "
               "the steps before it, and the one without which the jump is gone is the cause."),
            step < 0 ? tr("Look for a jump") : tr("Why is the loss of step %1 so high?").arg(spike_number(step)),
            [this] { look(chosen_step()); });
}

void SpikeView::look(int64_t step) {
  const projects::RunInfo* run = bench_.shown();
  if (!run || bench_.shown_steps() < 1) return;
  forget();
  start(tr("Look for a jump of the loss"), tr("what it would cost to find its cause"), tr("No jump to ask about"),
        [project = bench_.project(), name = run->name, step](const Jobs::Report&, Known& known) {
          known.inquiry = std::make_unique<projects::Inquiry>(project, name, step);
          known.plan = projects::plan_causes(*known.inquiry);
        });
}

void SpikeView::search(bool all) {
  const projects::RunInfo* run = bench_.shown();
  if (!run || !known_) return;
  const int64_t step = known_->inquiry->spike().step;
  start(tr("Find what made the loss of step %1 jump").arg(spike_number(step)),
        tr("replays without what may have made the jump"), tr("The cause was not found"),
        [project = bench_.project(), name = run->name, step, all](const Jobs::Report& report, Known& known) {
          known.inquiry = std::make_unique<projects::Inquiry>(project, name, step, report);
          known.plan = projects::plan_causes(*known.inquiry);
          known.report = projects::find_cause(*known.inquiry, known.plan, all);
          known.page = std::make_shared<const FindingPage>(
              make_page(projects::spike_finding(*known.report, *known.inquiry), Subject{.source = "spike"}));
        });
}

void SpikeView::start(const QString& title, const QString& what, const QString& failed,
                      std::function<void(const Jobs::Report&, Known&)> work) {
  bench_.jobs.start(
      "spike", title,
      [work = std::move(work)](const Jobs::Report& report, const std::atomic<bool>&) {
        auto known = std::make_shared<Known>();
        work(report, *known);
        return Search(std::move(known));
      },
      [this, of = of_](Search known) {
        if (of != of_) return;
        known_ = std::move(known);
        refresh();
      },
      [this, failed](const QString& message, const QString& hint) {
        refresh();
        bench_.fail(failed, message, hint);
      });
  set_waiting(
      bench_.jobs, [](const Jobs::State& job) { return job.tag == "spike"; }, what, [this] { refresh(); });
}

void SpikeView::show_found() {
  const projects::SpikeReport& r = *known_->report;
  set_empty(false);
  said_->set_text(QString::fromStdString(r.run) + " · " + tr("step %1").arg(spike_number(r.spike.step)) + " · " +
                  (r.culprit ? QString::fromStdString(r.culprit->what) : tr("no cause was found")));
  branch_->setVisible(r.culprit.has_value());
  branch_->setEnabled(can_branch());
  sample_->setVisible(r.cause == "sample");
  all_->setVisible(r.culprit.has_value() && r.asked.size() < r.plan.parts.size());
  pane_->set_page(known_->page);
}

bool SpikeView::can_branch() const {
  return bench_.has_project() && !bench_.project()->read_only() && !bench_.training();
}

void SpikeView::branch() {
  const projects::Counterfactual& trial = known_->report->culprit->tried->trial;
  bench_.train({.from = known_->report->run, .from_step = trial.from, .set = trial.set});
  bench_.ask("view.training");
}

namespace {
const bool registered_spike_view = register_view<SpikeView>(
    {.id = "spike",
     .title = tr_later("Spike doctor"),
     .icon = "search",
     .order = 81,
     .layouts = {"Debug"},
     .fill = "run.spike",
     .shows = nullptr,
     .help = {
         tr_later(
             "What made the loss of a step jump: a sample, a batch, the order of the samples, the rate, the start or "
             "the updates of a layer. Each is left out in replays of the steps before the jump; what it may cost is "
             "told first, and every replay is a row."),
         tr_later(
             "Find the cause begins. Branch without it trains a run that goes on without the cause, Go to the sample "
             "shows it among the data, Ask every cause goes on where one was found."),
         tr_later("Up and Down go through the replays.")}});
}  // namespace

}  // namespace tenon::views
