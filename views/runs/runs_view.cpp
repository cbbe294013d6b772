#include "views/runs/runs_view.h"

#include <QLineEdit>
#include <QToolButton>
#include <QVBoxLayout>

namespace tenon::views {

RunsView::RunsView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  filter_ = new QLineEdit(bar);
  filter_->setObjectName("runs.filter");
  filter_->setAccessibleName("Filter of runs");
  filter_->setPlaceholderText("Filter: lr > 0.001 and best.accuracy >= 0.9 and name ~ cnn");
  filter_->setClearButtonEnabled(true);
  filter_->setMaximumWidth(460);
  bar->add(filter_, 2);
  found_ = new ElidedLabel({}, bar);
  found_->setObjectName("runs.found");
  bar->add(found_, 1);
  auto* clear = new QToolButton(bar);
  clear->setText("Compare none");
  clear->setToolTip("Takes the picked runs' curves out of Training");
  clear->setEnabled(false);
  connect(clear, &QToolButton::clicked, this, [this] { bench_.pick({}); });
  connect(&bench, &Bench::picked_changed, clear, [this, clear] { clear->setEnabled(!bench_.picked().empty()); });
  bar->add(clear);
  box->addWidget(bar);
  list_ = new TableList(page);
  list_->setObjectName("runs.table");
  list_->setAccessibleName("Runs");
  list_->on_select = [this](const Selection& s) { bench_.select(s); };
  list_->on_pick = [this](const Selection& s, bool on) {
    std::vector<int64_t> runs = bench_.picked();
    std::erase(runs, s.id);
    if (on) runs.push_back(s.id);
    bench_.pick(std::move(runs));
  };
  list_->row_commands = {"run.go_on", "run.continue", "run.compare", "run.baseline", "run.describe", "run.delete"};
  box->addWidget(list_, 1);
  set_content(page);
  later_.setSingleShot(true);
  later_.setInterval(250);  // a run that trains changes its row ten times a second: the table follows in peace
  connect(&later_, &QTimer::timeout, this, &RunsView::fill);
  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
    model_.set_filter(text.toStdString());
    fill();
  });
  connect(&bench, &Bench::project_changed, this, &RunsView::refresh);
  connect(&bench, &Bench::run_changed, this, &RunsView::refresh);
  connect(&bench, &Bench::status_changed, this, [this] {
    model_.set_status(bench_.status());
    if (!later_.isActive()) later_.start();
  });
  connect(&bench, &Bench::picked_changed, this, &RunsView::fill);
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) { list_->mark(s); });
  refresh();
}

std::vector<Command> RunsView::commands() {
  return {{.id = "run.compare",
           .title = "Compare this run's curves",
           .menu = "Run",
           .run =
               [this] {
                 std::vector<int64_t> runs = bench_.picked();
                 if (std::erase(runs, bench_.shown_run()) == 0) runs.push_back(bench_.shown_run());
                 bench_.pick(std::move(runs));
               },
           .enabled = [this] { return bench_.shown_run() != 0; },
           .checked =
               [this] {
                 const auto& runs = bench_.picked();
                 return std::find(runs.begin(), runs.end(), bench_.shown_run()) != runs.end();
               }},
          {.id = "run.filter", .title = "Filter runs…", .menu = "Run", .icon = "search", .run = [this] {
             bench_.ask(QString("view.") + def().id);
             filter_->setFocus();
           }}};
}

void RunsView::refresh() {
  if (!bench_.has_project()) {
    model_.set_rows({});
    return set_empty(true, "Open a project to see its runs beside each other.");
  }
  if (bench_.contents().runs.empty()) {
    model_.set_rows({});
    return set_empty(true,
                     "Nothing was trained yet. Every run will be a row here, with what it was told and its results.",
                     bench_.training() ? "" : "Train", [this] { bench_.train(); });
  }
  set_empty(false);
  read();
}

/// What came of runs is read away from the UI thread; of those that did nothing since, it is known.
void RunsView::read() {
  auto project = bench_.project();
  RunRows rows = take_over(bench_.contents().runs, model_.rows());
  std::vector<projects::RunInfo> missing;
  for (size_t i = 0; i < rows.size(); ++i)
    if (!rows[i]) missing.push_back(bench_.contents().runs[i]);
  bench_.files.start(
      "runs", "Read the runs",
      [project, missing = std::move(missing)](const Jobs::Report&, const std::atomic<bool>&) mutable {
        return read_runs(*project, std::move(missing));
      },
      [this, project, rows = std::move(rows)](RunRows fresh) mutable {
        if (project != bench_.project()) return;  // another one was opened meanwhile
        auto next = fresh.begin();
        for (auto& row : rows)
          if (!row) row = std::move(*next++);
        model_.set_rows(std::move(rows));
        fill();
      },
      {}, true);
}

void RunsView::fill() {
  model_.set_picked(bench_.picked());
  list_->set_table(model_.table());
  list_->mark(bench_.bus.current());
  set_style(filter_, "bad", model_.why().empty() ? "false" : "true");
  const size_t shown = list_->table().rows.size(), all = model_.rows().size();
  const QString said = !model_.why().empty() ? QString::fromStdString(model_.why())
                       : shown == all        ? (all == 1 ? QString("1 run") : QString("%1 runs").arg(all)) +
                                            " · tick runs to compare their curves in Training"
                                      : QString("%1 of %2 runs").arg(shown).arg(all);
  set_style(found_, "voice", model_.why().empty() ? "small" : "bad");
  found_->set_text(said);
}

namespace {
const bool registered_runs_view = register_view<RunsView>(
    {.id = "runs",
     .title = "Runs",
     .icon = "table",
     .order = 30,
     .link = "Runs",
     .shows = [](const Selection& s,
                 const Bench& bench) { return s.kind == Selection::Kind::run && bench.contents().run(s.id); },
     .help = {"Every run of the project: what it was told where the runs differ, and the last and best of its metrics.",
              "A click shows a run in every view, its box compares its curves in Training, a click on a column's head "
              "sorts. "
              "The field takes words such as lr > 0.001 and best.accuracy >= 0.9.",
              "Up and Down choose a run, Space ticks it, Ctrl+C copies its row."}});
}  // namespace

}  // namespace tenon::views
