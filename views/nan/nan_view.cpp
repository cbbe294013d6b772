#include "views/nan/nan_view.h"

#include <QSplitter>

#include "projects/time_travel.h"
#include "views/frame/table_list.h"
#include "views/shared/format.h"

namespace tenon::views {

NanView::NanView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<NanModel>()) {
  auto* split = new QSplitter(Qt::Vertical, this);
  split->addWidget(make_canvas(model_));
  table_ = new TableList(split);
  table_->on_select = [&bench](const Selection& s) { bench.select(s); };
  split->addWidget(table_);
  split->setSizes({440, 150});
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 1);
  set_content(split);
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    if (model_.state() != NanModel::State::searching || bench_.jobs.has("nan")) return;
    model_.reset();  // the search was cancelled
    emit bench_.step_changed();
  });
  connect(&bench, &Bench::step_changed, this, &NanView::refresh);
  connect(&bench, &Bench::run_changed, this, &NanView::refresh);
  connect(&bench, &Bench::status_changed, this, &NanView::refresh);
  connect(&bench, &Bench::project_changed, this, &NanView::refresh);
  connect(&bench, &Bench::selection_changed, this,
          [this](const Selection& s) { table_->mark(Selection::op(bench_.links().op_of(s))); });
  refresh();
}

std::vector<Command> NanView::commands() {
  return {{.id = "run.nan",
           .title = tr_later("Find the first value that is not finite"),
           .menu = "Run",
           .icon = "nan",
           .run =
               [this] {
                 bench_.ask("view.nan");
                 search();
               },
           .enabled = [this] { return bench_.shown_steps() > 0; },
           .section = run_menu::looking}};
}

void NanView::search() {
  if (!bench_.has_project() || !bench_.shown_run()) return;
  auto project = bench_.project();
  const int64_t run = bench_.shown_run();
  const std::string name = bench_.shown() ? bench_.shown()->name : "";
  model_.set_searching();
  emit bench_.step_changed();
  bench_.jobs.start(
      "nan", tr("Search for the first value that is not finite"),
      [project, run](const Jobs::Report& report, const std::atomic<bool>&) {
        return projects::find_nan(*project, run, report);
      },
      [this, name, project, run](const std::shared_ptr<const tracing::StepRecord>& record) {
        if (project != bench_.project() || run != bench_.shown_run()) return;
        if (!record) {
          model_.set_clean(name);
          emit bench_.step_changed();
          return;
        }
        if (!record->nan) {
          model_.reset();
          bench_.fail(tr("The replayed step is finite, the run's was not"),
                      tr("the data or the program has changed since the run"), {});
        }
        bench_.show_step(Links(record));
        if (record->nan && record->nan->seq) bench_.select(Selection::op(record->nan->seq, "nan"));
      },
      [this](const QString& message, const QString& hint) {
        model_.reset();
        emit bench_.step_changed();
        bench_.fail(tr("The search failed"), message, hint);
      });
}

void NanView::refresh() {
  auto search_now = [this] { search(); };
  if (!bench_.has_project()) return set_empty(true, tr("Open a project to look for values that are not finite."));
  if (!bench_.shown_run() || bench_.shown_steps() < 1)
    return set_empty(true, tr("Train first: the doctor replays a run and finds where it stopped being finite."));
  switch (model_.state()) {
    case NanModel::State::unknown: {
      bool sick = bench_.status().nan && bench_.status().run == bench_.shown_run();
      QString text = sick ? tr("This run stopped being finite at step %1. The doctor replays that step with every "
                               "check on and names the first op.")
                                .arg(QString::fromStdString(format_grouped(bench_.status().nan_step)))
                          : tr("The doctor looks for the first value of this run that is not finite, replays that "
                               "step with every check on and names the op.");
      if (const auto* run = bench_.shown(); run && !run->error.empty() && !sick)
        text =
            tr("%1 failed: %2\n\n%3").arg(QString::fromStdString(run->name), QString::fromStdString(run->error), text);
      return set_empty(true, text, tr("Find the origin"), search_now);
    }
    case NanModel::State::searching:
      return set_waiting(
          bench_.jobs, [](const Jobs::State& job) { return job.tag == "nan"; },
          tr("the op where it begins will be here in a moment."),
          [this] {
            model_.reset();
            refresh();
          });
    case NanModel::State::clean:
      return set_empty(true,
                       tr("Every loss and gradient norm of %1 is finite.").arg(QString::fromStdString(model_.run())),
                       tr("Search again"), search_now);
    case NanModel::State::found:
      break;
  }
  set_empty(false);
  table_->set_table(model_.table());
}

namespace {
const bool registered_nan_view = register_view<NanView, NanModel>(
    {.id = "nan",
     .title = tr_later("NaN doctor"),
     .icon = "nan",
     .order = 80,
     .places = {{"Debug", Spot::middle, 0, true}},
     .layouts = {"Debug"},
     .fill = "run.nan",
     .help = {
         tr_later(
             "Where a run first had a value that is not finite: the op, what went into it, and the ops before it."),
         tr_later("A click on the op or on one of its operands selects it in every view; so does a row of the table."),
         tr_later("Up and Down go through the table.")}});
}  // namespace

}  // namespace tenon::views
