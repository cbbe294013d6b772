#include "views/training/training_view.h"

#include <QAction>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QMenu>
#include <QSignalBlocker>
#include <QSlider>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <optional>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/training/branch_form_view.h"
#include "views/training/charts_form_view.h"

namespace tenon::views {

TrainingView::TrainingView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<TrainingModel>()) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  where_ = new ElidedLabel({}, bar);
  bar->add(where_);
  bar->add_stretch();
  bar->add_label(tr("Over"));
  over_ = new QComboBox(bar);
  over_->setObjectName("training.over");
  over_->setAccessibleName(tr("What the curves stand over"));
  over_->setToolTip(tr("What the curves stand over (X): runs of other batch sizes meet at equal epochs or samples"));
  over_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  for (Over o : kOvers) over_->addItem(QString::fromStdString(over_title(o)));
  connect(over_, &QComboBox::activated, this, [this](int i) { model_.set_over(kOvers[i]); });
  bar->add(over_);
  bar->add_label(tr("Smoothing"));
  smooth_ = new QSlider(Qt::Horizontal, bar);
  smooth_->setRange(0, 98);
  smooth_->setValue(static_cast<int>(model_.smoothing() * 100));
  smooth_->setFixedWidth(110);
  smooth_->setToolTip(tr("Weight of the past in the smoothed line; the raw values stay under it"));
  connect(smooth_, &QSlider::valueChanged, this, [this](int v) { model_.set_smoothing(v / 100.0); });
  bar->add(smooth_);
  auto* charts = new QToolButton(bar);
  charts->setObjectName("training.charts");
  charts->setText(tr("Charts…"));
  charts->setToolTip(tr("Which metrics stand together, and which charts are seen"));
  connect(charts, &QToolButton::clicked, this, &TrainingView::open_charts);
  bar->add(charts);
  auto* fit = new QToolButton(bar);
  fit->setText(tr("Fit"));
  fit->setToolTip(tr("Show every step (F, or double click)"));
  connect(fit, &QToolButton::clicked, this, [this] { model_.fit(); });
  bar->add(fit);
  box->addWidget(bar);
  box->addWidget(with_table(make_canvas(model_), bar, [this] { return model_.table(); }), 1);
  set_content(page);
  connect(&bench, &Bench::picked_changed, this, &TrainingView::compare);
  connect(&bench, &Bench::project_changed, this, &TrainingView::compare);       // a compared run may have gone on
  connect(&bench, &Bench::project_changed, this, &TrainingView::show_changes);  // before what is said of it
  connect(&bench, &Bench::run_changed, this, &TrainingView::show_changes);
  connect(&bench, &Bench::watch_hits_changed, this, &TrainingView::show_marks);
  connect(&bench, &Bench::run_changed, this, &TrainingView::refresh);
  connect(&bench, &Bench::status_changed, this, &TrainingView::refresh);
  connect(&bench, &Bench::project_changed, this, &TrainingView::refresh);
  connect(&bench, &Bench::selection_changed, this, &TrainingView::refresh);
  connect(&bench, &Bench::state_changed, this, [this] {
    if (model_.empty()) refresh();  // the model may have come to fit
  });
  model_.on_state = [this] { show_state(); };
  show_state();
  refresh();
}

std::vector<Command> TrainingView::commands() {
  return {{.id = "run.baseline",
           .title = tr_later("Keep this run as the baseline"),
           .menu = "Run",
           .run =
               [this] {
                 model_.toggle_baseline(bench_.shown_run());
                 bench_.set_baseline(model_.baseline().id);
                 emit bench_.run_changed();
               },
           .enabled = [this] { return bench_.shown_run() != 0; },
           .checked = [this] { return bench_.shown_run() != 0 && model_.baseline().id == bench_.shown_run(); },
           .section = run_menu::curves},
          {.id = "run.charts",
           .title = tr_later("Charts of the curves…"),
           .menu = "Run",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 open_charts();
               },
           .enabled = [this] { return !model_.empty(); },
           .section = run_menu::curves},
          {.id = "run.branch",
           .title = tr_later("Branch from here…"),
           .menu = "Run",
           .icon = "train",
           .run = [this] { open_branch(false); },
           .enabled = [this] { return bench_.shown() && bench_.shown_steps() > 0 && !bench_.project()->read_only(); },
           .text =
               [this] {
                 return bench_.shown()
                            ? tr("Branch from step %1…").arg(QString::fromStdString(format_grouped(chosen_step())))
                            : tr("Branch from here…");
               },
           .section = run_menu::recipe},
          {.id = "run.give_model",
           .title = tr_later("Give the model to the run…"),
           .menu = "Model",
           .icon = "train",
           .run = [this] { open_branch(true); },
           .enabled =
               [this] {
                 const projects::RunInfo* run = bench_.shown();
                 return run && bench_.shown_steps() > 0 && !bench_.project()->read_only() &&
                        bench_.contents().has_another_model(*run);
               },
           .section = 5}};
}

int64_t TrainingView::chosen_step() const {
  const Selection& s = bench_.bus.current();
  const bool chosen = s.kind == Selection::Kind::step && s.document == Document::kProject;
  return std::clamp<int64_t>(chosen ? s.id : bench_.shown_steps(), 0, bench_.shown_steps());
}

void TrainingView::open_branch(bool with_model) {
  const projects::RunInfo* run = bench_.shown();
  if (!run || window()->findChild<BranchForm*>()) return;
  try {
    BranchDraft draft(*run, with_model && bench_.trains(run->id) ? bench_.shown_steps() : chosen_step());
    if (bench_.contents().has_another_model(*run))
      draft.offer_model(std::make_shared<const ModelSpec>(bench_.contents().model));
    auto* form = new BranchForm(std::move(draft), bench_, window());
    form->open_over(bench_);
    if (with_model) form->choose_model();
  } catch (const std::exception& e) {  // of a plug-in that is not here
    bench_.fail(tr("The recipe of this run cannot be read"), e.what(), {});
  }
}

/// At a step: the other button chooses it as the first one does.
void TrainingView::contextMenuEvent(QContextMenuEvent* e) {
  const QPoint at = canvas()->mapFromGlobal(e->globalPos());
  const bool by_key = e->reason() == QContextMenuEvent::Keyboard;
  if (empty() || (!by_key && !canvas()->rect().contains(at))) return View::contextMenuEvent(e);
  if (!by_key) {
    const int64_t step = model_.step_of(static_cast<float>(at.x()), static_cast<float>(at.y()));
    if (step < 0) return View::contextMenuEvent(e);
    bench_.select(Selection::step(step, "training"));
  }
  auto* menu = new QMenu(this);
  menu->setObjectName("training.menu");
  menu->setAttribute(Qt::WA_DeleteOnClose);
  for (const char* id : {"run.branch", "run.spike", "run.nan", "data.batch"})
    if (auto* action = window()->findChild<QAction*>(id)) menu->addAction(action);
  menu->popup(e->globalPos());
}

void TrainingView::open_charts() {
  if (model_.empty() || window()->findChild<ChartsForm*>()) return;
  auto* form = new ChartsForm(model_, window());
  form->open();
}

void TrainingView::show_state() {
  const QSignalBlocker quiet(smooth_);
  smooth_->setValue(static_cast<int>(std::lround(model_.smoothing() * 100)));
  over_->setCurrentIndex(static_cast<int>(model_.over()));
  bench_.set_baseline(model_.baseline().id);
  if (model_.baseline().id && model_.baseline().series.empty()) compare();
  refresh();
}

/// Reads the curves of the picked runs and of the baseline, away from the UI thread: those that were read, and have
/// done nothing since, are kept.
void TrainingView::compare() {
  std::vector<int64_t> wanted = bench_.picked();
  const int64_t baseline = model_.baseline().id;
  if (baseline) wanted.push_back(baseline);
  if (wanted.empty() && model_.compared().empty()) return;
  auto up_to_date = [](const TrainingModel::Compared& c, const projects::RunInfo& r) {
    return c.id == r.id && c.steps == r.steps && r.status != "running" && r.status != "paused";
  };
  std::vector<std::pair<int64_t, int64_t>> missing;  // with the steps they have done
  for (int64_t id : wanted)
    if (const auto* r = bench_.contents().run(id)) {
      const auto& known = model_.compared();
      if (std::none_of(known.begin(), known.end(), [&](const auto& c) { return up_to_date(c, *r); }) &&
          !(up_to_date(model_.baseline(), *r) && !model_.baseline().series.empty()))
        missing.emplace_back(id, r->steps);
    }
  auto project = bench_.project();
  bench_.files.start(
      "compare", tr("Read the curves of picked runs"),
      [project, missing](const Jobs::Report&, const std::atomic<bool>& cancelled) {
        std::vector<TrainingModel::Compared> all;
        for (const auto& [id, steps] : missing) {
          TrainingModel::Compared c;
          c.id = id;
          c.steps = steps;
          c.series = read_series(*project, id, cancelled);
          all.push_back(std::move(c));
        }
        return all;
      },
      [this, project](std::vector<TrainingModel::Compared> read) {
        if (project == bench_.project()) show_compared(std::move(read));
      },
      {}, true);
}

/// What was read just now, beside what was known.
void TrainingView::show_compared(std::vector<TrainingModel::Compared> read) {
  for (auto& known : model_.take_compared()) read.push_back(std::move(known));
  if (!model_.baseline().series.empty()) read.push_back(model_.baseline());
  auto take = [&](int64_t id, bool copy) -> std::optional<TrainingModel::Compared> {
    const auto* r = bench_.contents().run(id);
    // What was read just now stands before what was known.
    const auto at = std::find_if(read.begin(), read.end(), [&](const auto& c) { return c.id == id; });
    if (!r || at == read.end()) return {};
    at->run = r->name;
    at->epoch = epoch_of(*r);
    if (copy) return *at;
    auto taken = std::move(*at);
    at->id = 0;
    return taken;
  };
  const std::vector<int64_t>& picked = bench_.picked();
  if (const int64_t baseline = model_.baseline().id; baseline && !bench_.contents().run(baseline))
    model_.set_baseline({}), bench_.set_baseline(0);  // it was deleted
  else if (auto c = take(baseline, std::find(picked.begin(), picked.end(), baseline) != picked.end()))
    model_.set_baseline(std::move(*c));
  std::vector<TrainingModel::Compared> all;
  for (int64_t id : picked)
    if (auto c = take(id, false)) all.push_back(std::move(*c));
  model_.set_compared(std::move(all));
  refresh();
}

void TrainingView::show_marks() { model_.set_marks(TrainingModel::marks_of(bench_.watch_hits())); }

/// What the shown run was told on the way, and how it counts.
void TrainingView::show_changes() {
  if (const auto* r = bench_.shown()) model_.set_epoch(epoch_of(*r));
  std::vector<TrainingModel::Change> changes;
  try {
    if (const auto* r = bench_.shown()) changes = TrainingModel::changes_of(*r, bench_.contents().surgery_of(*r));
  } catch (const std::exception&) {  // of a plug-in that is not here: the curves are
  }
  model_.set_changes(std::move(changes));
}

void TrainingView::refresh() {
  const TrainingModel& m = model_;
  if (!bench_.has_project()) return set_empty(true, tr("Open a project to see its training curves."));
  if (m.empty() && bench_.training()) return set_empty(true, tr("The first step is on its way: curves begin with it."));
  if (m.empty())
    return set_empty(true, tr("Nothing was trained yet. The curves of a run will be here while it trains."),
                     bench_.model_fits() ? tr("Train") : QString(), [this] { bench_.train(); });
  set_empty(false);
  QString text = QString::fromStdString(m.run());
  const auto* shown = bench_.shown();
  const bool failed = shown && shown->status == "failed";
  const Selection& s = bench_.bus.current();
  if (s.kind == Selection::Kind::step)
    text += " · " + tr("step %1").arg(QString::fromStdString(format_grouped(s.id)));
  else
    text += " · " + (failed ? tr("failed after %1 of %2 steps") : tr("%1 of %2 steps"))
                        .arg(QString::fromStdString(format_grouped(m.last_step())),
                             QString::fromStdString(format_grouped(m.total_steps())));
  if (failed && !shown->error.empty()) text += " · " + QString::fromStdString(shown->error);
  if (!m.baseline().run.empty() && m.baseline().run != m.run())
    text += " · " + tr("grey: %1").arg(QString::fromStdString(m.baseline().run));
  if (const size_t n = m.compared().size())
    text += " · " + (n == 1 ? tr("1 run compared") : tr("%1 runs compared").arg(n));
  const QString over = QString::fromStdString(over_within(m.over()));
  if (m.over() != m.shown_over()) text += " · " + tr("over steps: the %1 of this run are not known").arg(over);
  if (const int n = m.left_out()) text += " · " + tr("%1 not drawn: %2 not known").arg(n).arg(over);
  where_->set_text(text + " · " + tr("click a point to go back to that step"));
}

namespace {
const bool registered_training_view = register_view<TrainingView, TrainingModel>(
    {.id = "training",
     .title = tr_later("Training"),
     .icon = "runs",
     .order = 20,
     .places = {{"Build", Spot::below, 0}, {"Train", Spot::middle, 0, true}},
     .layouts = {"Build", "Train", "Debug"},
     .link = tr_later("Training"),
     .shows = [](const Selection& s,
                 const Bench& bench) { return s.kind == Selection::Kind::run && bench.contents().run(s.id); },
     .help = {
         tr_later("The metrics of the run that is shown over its steps, live while it trains; red ticks on the axis "
                  "are values "
                  "that are not finite. Runs ticked in Runs, and the baseline, are drawn beside it. The smoothed line "
                  "lies over "
                  "the raw one."),
         tr_later(
             "A click goes to that step in every view. Drag to zoom, wheel to zoom at the pointer, Shift and wheel to "
             "move, "
             "double click to show every step. The other button at a step branches from it, or asks why its loss is so "
             "high. The log switch of a chart changes its axis, × hides it, and Charts… "
             "says "
             "which metrics stand together."),
         tr_later(
             "Left and Right go one step back and forth, with Shift ten. W and S zoom, A and D move, F shows every "
             "step, X changes what the curves stand over: steps, epochs, time or samples. Up and Down go from chart to "
             "chart, L makes one logarithmic, H hides it.")}});
}  // namespace

}  // namespace tenon::views
