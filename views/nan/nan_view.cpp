#include "views/nan/nan_view.h"

#include <QSplitter>

#include "views/shared/format.h"

namespace tenon::views {

NanView::NanView(Workbench& bench, QWidget* parent) : View("nan", "NaN doctor", "nan", bench, parent) {
  auto* split = new QSplitter(Qt::Vertical, this);
  split->addWidget(make_canvas(bench.nan));
  table_ = new TableList(split);
  table_->on_select = [&bench](const Selection& s) { bench.select(s); };
  split->addWidget(table_);
  split->setSizes({440, 150});
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 1);
  set_content(split);
  connect(&bench, &Workbench::step_changed, this, &NanView::refresh);
  connect(&bench, &Workbench::run_changed, this, &NanView::refresh);
  connect(&bench, &Workbench::status_changed, this, &NanView::refresh);
  connect(&bench, &Workbench::project_changed, this, &NanView::refresh);
  connect(&bench, &Workbench::selection_changed, this,
          [this](const Selection& s) { table_->mark(Selection::op(bench_.links().op_of(s))); });
  refresh();
}

void NanView::refresh() {
  auto search = [this] { bench_.find_nan(); };
  if (!bench_.has_project()) return set_empty(true, "Open a project to look for values that are not finite.");
  if (!bench_.shown_run() || bench_.shown_steps() < 1)
    return set_empty(true, "Train first: the doctor replays a run and finds where it stopped being finite.");
  switch (bench_.nan.state()) {
    case NanModel::State::unknown: {
      bool sick = bench_.status().nan && bench_.status().run == bench_.shown_run();
      QString text = sick ? QString(
                                "This run stopped being finite at step %1. The doctor replays that step with every "
                                "check on and names the first op.")
                                .arg(QString::fromStdString(format_grouped(bench_.status().nan_step)))
                          : QString(
                                "The doctor looks for the first value of this run that is not finite, replays that "
                                "step with every check on and names the op.");
      if (const auto* run = bench_.shown(); run && !run->error.empty() && !sick)
        text = QString("%1 failed: %2\n\n%3")
                   .arg(QString::fromStdString(run->name), QString::fromStdString(run->error), text);
      return set_empty(true, text, "Find the origin", search);
    }
    case NanModel::State::searching:
      return set_empty(true, "The run is being searched.", "Cancel", [this] {
        bench_.jobs.cancel_tag("nan");
        bench_.nan.reset();
        refresh();
      });
    case NanModel::State::clean:
      return set_empty(true, QString("Every value of %1 is finite.").arg(QString::fromStdString(bench_.nan.run())),
                       "Search again", search);
    case NanModel::State::found:
      break;
  }
  set_empty(false);
  table_->set_table(bench_.nan.table());
}

}  // namespace tenon::views
