#include "views/checks/checks_view.h"

#include <QFileInfo>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/checks/document_checks.h"
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
                  tr("Of a project every sample is read, and the shown run's last step and its checkpoints are looked "
                     "at; of a file "
                     "all of it"),
                  [this] { check(); });
  box->addWidget(bar);
  list_ = new TableList(page);
  list_->setObjectName("checks.table");
  list_->setAccessibleName(tr("What was found"));
  list_->say_when_empty(tr("Nothing was found. All checks lists what was looked for."));
  list_->on_select = [this](const Selection& s) {
    if (s.kind != Selection::Kind::none) bench_.select(s);
  };
  box->addWidget(list_, 1);
  set_content(page);
  connect(&bench, &Bench::project_changed, this, &ChecksView::refresh);
  connect(&bench, &Bench::run_changed, this, &ChecksView::refresh);
  connect(&bench, &Bench::documents_changed, this, &ChecksView::refresh);
  refresh();
}

std::vector<Command> ChecksView::commands() {
  return {{.id = "checks.run",
           .title = tr_later("Check what is shown"),
           .menu = "Run",
           .icon = "check",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 check();
               },
           .enabled = [this] { return !subject().isEmpty(); }}};
}

QString ChecksView::subject() const {
  if (const Document* d = bench_.shown_document()) return QString("%1\n%2").arg(d->id).arg(d->rank);
  return bench_.has_project() ? bench_.file() + QString("\n%1").arg(bench_.shown_run()) : QString();
}

void ChecksView::refresh() {
  const QString of = subject();
  if (of == of_ && results_) return;
  of_ = of;
  results_.reset();
  bench_.jobs.cancel_tag("checks");
  if (of.isEmpty())
    return set_empty(true, tr("Open a project, a trace, a memory snapshot or a file of weights to check it."));
  set_empty(
      true,
      bench_.shown_document()
          ? tr("What troubleshooting guides warn of is looked for in this file: each thing that is found with its "
               "evidence, and what to do about it.")
          : tr("What troubleshooting guides warn of is looked for in data, model, recipe and the shown run: each "
               "thing that is found with its evidence, and what to do about it."),
      tr("Check"), [this] { check(); });
}

void ChecksView::check() {
  if (subject().isEmpty() || bench_.jobs.has("checks")) return;
  if (bench_.shown_document()) return check_shown_document();
  const projects::RunInfo* run = bench_.shown();
  bench_.jobs.start(
      "checks", tr("Check the project"),
      [project = bench_.project(), name = run ? run->name : std::string()](const Jobs::Report& report,
                                                                           const std::atomic<bool>&) {
        projects::Checked checked(project, name, report);
        return Results(std::make_shared<std::vector<projects::CheckResult>>(projects::check_project(checked)));
      },
      [this, of = of_](Results results) { take(of, std::move(results)); },
      [this](const QString& message, const QString& hint) {
        refresh();
        bench_.fail(tr("The project could not be checked"), message, hint);
      });
  waits();
}

void ChecksView::check_shown_document() {
  const Document document = *bench_.shown_document();
  std::optional<tracing::CheckedModelFile::Beside> beside;
  if (document.kind == Document::Kind::model && bench_.has_project())
    beside = {bench_.contents().model, bench_.recipe(), QFileInfo(bench_.file()).fileName().toStdString()};
  bench_.jobs.start(
      "checks", tr("Check %1").arg(QString::fromStdString(document.title)),
      [document, beside](const Jobs::Report& report, const std::atomic<bool>&) {
        return Results(std::make_shared<std::vector<projects::CheckResult>>(
            check_document(document, beside, [&](uint64_t done, uint64_t total) {
              return report(static_cast<int64_t>(done), static_cast<int64_t>(total));
            })));
      },
      [this, of = of_](Results results) { take(of, std::move(results)); },
      [this](const QString& message, const QString& hint) {
        refresh();
        bench_.fail(tr("The file could not be checked"), message, hint);
      });
  waits();
}

void ChecksView::waits() {
  results_.reset();
  set_waiting(
      bench_.jobs, [](const Jobs::State& job) { return job.tag == "checks"; }, tr("what may go wrong here"),
      [this] { refresh(); });
}

void ChecksView::take(const QString& of, Results results) {
  if (of != of_) return;
  results_ = std::move(results);
  show_results();
}

void ChecksView::show_results() {
  if (!results_) return;
  set_empty(false);
  said_->set_text(QString::fromStdString(checks_text(*results_)));
  const Document* d = bench_.shown_document();
  const Subject subject = d ? subject_of(*d, d->rank, "checks") : Subject{};
  list_->set_table(checks_table(*results_, all_->isChecked(), d ? &subject : nullptr));
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
                  "and more. Each thing that is found has its evidence and something to try. "
                  "Of a trace: calls that wait for the GPU, copies from memory that is not pinned, data that is waited "
                  "for; of a memory snapshot: what grows, pieces, failures; of weights: what is not finite, names and "
                  "sizes that do not fit the model of the project. A row goes to where it is seen."),
         tr_later("Check begins; All checks lists those that found nothing too. A row about a parameter selects "
                  "its layer in every view."),
         tr_later("Up and Down choose a row.")}});
}  // namespace

}  // namespace tenon::views
