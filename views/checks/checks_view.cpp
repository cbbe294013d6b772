#include "views/checks/checks_view.h"

#include <QToolButton>
#include <QVBoxLayout>

#include "views/frame/table_list.h"

namespace tenon::views {

ChecksView::ChecksView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  said_ = new ElidedLabel({}, bar);
  said_->setObjectName("checks.said");
  bar->add(said_, 1);
  all_ = bar->add_page("checks.all", tr("All checks"),
                       tr("Lists the checks that found nothing too, and why one was not made"),
                       [this] { show_results(); });
  bar->add_button("checks.again", tr("Check again"),
                  tr("Reads every sample, and looks at the shown run's last step and its checkpoints"),
                  [this] { check(); });
  box->addWidget(bar);
  list_ = new TableList(page);
  list_->setObjectName("checks.table");
  list_->setAccessibleName(tr("What was found in project and run"));
  list_->say_when_empty(tr("Nothing was found. All checks lists what was looked for."));
  list_->on_select = [this](const Selection& s) {
    if (s.kind != Selection::Kind::none) bench_.select(s);
  };
  box->addWidget(list_, 1);
  set_content(page);
  connect(&bench, &Bench::project_changed, this, &ChecksView::refresh);
  connect(&bench, &Bench::run_changed, this, &ChecksView::refresh);
  refresh();
}

std::vector<Command> ChecksView::commands() {
  return {{.id = "checks.run",
           .title = tr_later("Check the project and the shown run"),
           .menu = "Run",
           .icon = "check",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 check();
               },
           .enabled = [this] { return bench_.has_project(); }}};
}

void ChecksView::refresh() {
  const QString of = bench_.has_project() ? bench_.file() + QString("\n%1").arg(bench_.shown_run()) : QString();
  if (of == of_ && results_) return;
  of_ = of;
  results_.reset();
  bench_.jobs.cancel_tag("checks");
  if (!bench_.has_project()) return set_empty(true, tr("Open a project to check it."));
  set_empty(true,
            tr("What troubleshooting guides warn of is looked for in data, model, recipe and the shown run: each thing "
               "that is found with its evidence, and what to do about it."),
            tr("Check"), [this] { check(); });
}

void ChecksView::check() {
  if (!bench_.has_project() || bench_.jobs.has("checks")) return;
  const projects::RunInfo* run = bench_.shown();
  bench_.jobs.start(
      "checks", tr("Check the project"),
      [project = bench_.project(), name = run ? run->name : std::string()](const Jobs::Report& report,
                                                                           const std::atomic<bool>&) {
        projects::Checked checked(project, name, report);
        return std::make_shared<const std::vector<projects::CheckResult>>(projects::check_project(checked));
      },
      [this, of = of_](std::shared_ptr<const std::vector<projects::CheckResult>> results) {
        if (of != of_) return;
        results_ = std::move(results);
        show_results();
      },
      [this](const QString& message, const QString& hint) {
        refresh();
        bench_.fail(tr("The project could not be checked"), message, hint);
      });
  results_.reset();
  set_waiting(
      bench_.jobs, [](const Jobs::State& job) { return job.tag == "checks"; }, tr("what may go wrong here"),
      [this] { refresh(); });
}

void ChecksView::show_results() {
  if (!results_) return;
  set_empty(false);
  said_->set_text(QString::fromStdString(checks_text(*results_)));
  list_->set_table(checks_table(*results_, all_->isChecked()));
}

namespace {
const bool registered_checks_view = register_view<ChecksView>(
    {.id = "checks",
     .title = tr_later("Checks"),
     .icon = "check",
     .order = 66,
     .layouts = {"Train", "Debug"},
     .fill = "checks.run",
     .shows = nullptr,
     .help = {
         tr_later("What troubleshooting guides warn of, looked for in data, model, recipe and the shown run: leaks "
                  "between the splits, rare classes, a batch norm of one sample, parameters without a gradient, "
                  "and more. Each thing that is found has its evidence and something to try."),
         tr_later("Check begins; All checks lists those that found nothing too. A row about a parameter selects "
                  "its layer in every view."),
         tr_later("Up and Down choose a row.")}});
}  // namespace

}  // namespace tenon::views
