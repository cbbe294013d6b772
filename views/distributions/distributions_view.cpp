#include "views/distributions/distributions_view.h"

#include <QLineEdit>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>
#include <bit>
#include <mutex>
#include <utility>

#include "tracing/record/step_record.h"
#include "views/frame/table_list.h"
#include "views/frame/wait_strip.h"
#include "views/shared/format.h"

namespace tenon::views {

namespace {
constexpr const char* kDistributionsTag = "distributions";
constexpr int kPartialMs = 100;  // live views change at most ten times a second
}  // namespace

/// What a reading has come to, between its thread and the window's.
struct DistributionsView::Latest {
  void put(DistributionsModel::Shared d) {
    const std::lock_guard lock(mutex_);
    d_ = std::move(d);
  }
  DistributionsModel::Shared take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(d_, nullptr);
  }

 private:
  std::mutex mutex_;
  DistributionsModel::Shared d_;
};

DistributionsView::DistributionsView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<DistributionsModel>()) {
  build();
  partial_.setInterval(kPartialMs);
  connect(&partial_, &QTimer::timeout, this, &DistributionsView::take_partial);
  model_.on_choose = [this] { follow(); };
  connect(&bench, &Bench::project_changed, this, &DistributionsView::refresh);
  connect(&bench, &Bench::run_changed, this, &DistributionsView::refresh);
  connect(&bench, &Bench::status_changed, this, [this] {
    if (!model_.distributions() || of_ != wanted()) refresh();
  });
  connect(&bench, &Bench::selection_changed, this, &DistributionsView::follow);
  connect(&bench, &Bench::state_changed, this, [this] {
    if (!can_read()) refresh();  // the model may have come to fit
  });
  // Cancelled among the jobs: nobody hands its result over.
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    if (!reading_ || bench_.jobs.has(kDistributionsTag)) return;
    cancelled_ = true;
    end_reading();
    refresh();
  });
  refresh();
}

DistributionsView::~DistributionsView() { model_.on_choose = nullptr; }

void DistributionsView::build() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  filter_ = new QLineEdit(bar);
  filter_->setObjectName("distributions.filter");
  filter_->setPlaceholderText(tr("Find a parameter"));
  filter_->setClearButtonEnabled(true);
  filter_->setFixedWidth(160);
  bar->add(filter_);
  headline_ = new ElidedLabel({}, bar);
  headline_->setObjectName("distributions.headline");
  bar->add(headline_, 1);
  bar->add_button("distributions.fit", tr("Fit"), tr("Show every step (F, or double click)"), [this] { model_.fit(); });
  again_ = bar->add_button("distributions.again", tr("Read again"), tr("With the checkpoints that the run has now"),
                           [this] { read(); });
  box->addWidget(bar);
  auto* split = new QSplitter(Qt::Horizontal, page);
  split->setChildrenCollapsible(false);
  list_ = new TableList(split);
  list_->setObjectName("distributions.parameters");
  list_->setAccessibleName(tr("Parameters"));
  list_->on_select = [this](const Selection& row) {
    model_.choose(row.name);
    bench_.select(model_.selection_of(row.name));
  };
  split->addWidget(list_);
  split->addWidget(with_table(make_canvas(model_), bar, [this] { return model_.points(model_.chosen()); }));
  split->setStretchFactor(0, 2);
  split->setStretchFactor(1, 3);
  split->setSizes({470, 560});
  box->addWidget(split, 1);
  set_content(page);
  connect(filter_, &QLineEdit::textChanged, list_, [this](const QString& t) { list_->set_filter(t); });
}

std::vector<Command> DistributionsView::commands() {
  return {{.id = "distributions.read",
           .title = tr_later("Read the distributions of the shown run again"),
           .menu = {},
           .run =
               [this] {
                 bench_.ask("view.distributions");
                 read();
               },
           .enabled = [this] { return can_read() && !reading_; }}};
}

QString DistributionsView::run_name() const {
  const auto* r = bench_.shown();
  return QString::fromStdString(r ? r->name : bench_.status().name);
}

size_t DistributionsView::known_checkpoints() const {
  const ProjectContents& c = bench_.contents();
  for (size_t i = 0; i < c.runs.size() && i < c.checkpoints.size(); ++i)
    if (c.runs[i].id == bench_.shown_run()) return c.checkpoints[i].size();
  return 0;
}

/// A run that trains is read by itself each time it has twice as many checkpoints: the machine is the training's.
DistributionsView::Of DistributionsView::wanted() const {
  const int64_t run = bench_.shown_run();
  return trains() ? Of{run, -static_cast<int64_t>(std::bit_width(known_checkpoints()))} : Of{run, bench_.shown_steps()};
}

void DistributionsView::refresh() {
  const bool same_project = bench_.has_project() && of_project_.lock() == bench_.project();
  if (!same_project || std::get<0>(of_) != bench_.shown_run()) {
    if (reading_) {
      end_reading();
      bench_.jobs.cancel_tag(kDistributionsTag);
    }
    of_project_.reset();
    of_ = {};
    fault_.clear();
    cancelled_ = false;
    if (model_.distributions()) model_.set_distributions(nullptr);
  }
  if (in_sight() && can_read() && !reading_ && of_ != wanted()) return read();
  if (!model_.distributions()) return show_why_empty();
  set_empty(false);
  const bool some = model_.distributions()->points.size() < model_.distributions()->wanted;
  if (reading_)
    strip_->wait_for(bench_.jobs, kDistributionsTag, some ? tr("a part of the points") : tr("what was read before"),
                     {});
  else
    strip_->hide();
  fill();
}

void DistributionsView::show_why_empty() {
  strip_->hide();
  const auto read_now = [this] { read(); };
  if (!bench_.has_project())
    return set_empty(true, tr("Open a project to see how the weights, gradients and updates of a run are spread."));
  if (!can_read())
    return set_empty(true,
                     tr("Train first. How the weights, gradients and updates of every parameter are spread along the "
                        "run will be here."),
                     bench_.training() || !bench_.model_fits() ? QString() : tr("Train"), [this] { bench_.train(); });
  if (reading_)
    return set_waiting(
        bench_.jobs, [](const Jobs::State& job) { return job.tag == kDistributionsTag; },
        tr("each checkpoint's next step is done again."));
  if (!fault_.isEmpty()) return set_empty(true, fault_, tr("Try again"), read_now);
  if (cancelled_)
    return set_empty(true, tr("The reading was cancelled before its first point."), tr("Read the distributions"),
                     read_now);
  set_empty(true, tr("The distributions of %1 are not read yet.").arg(run_name()), tr("Read the distributions"),
            read_now);
}

void DistributionsView::fill() {
  list_->set_table(model_.list());
  QString text = QString::fromStdString(model_.headline());
  const size_t there = known_checkpoints(), had = model_.distributions()->checkpoints;
  if (there > had) text += tr(" · %1 newer checkpoints: read again").arg(there - had);
  headline_->set_text(text);
  again_->setEnabled(!reading_);
  follow();
}

void DistributionsView::follow() {
  if (!model_.distributions()) return;
  list_->mark(DistributionsModel::row_of(model_.chosen()));
  refresh_table();
}

void DistributionsView::read() {
  if (!can_read() || reading_) return;
  of_project_ = bench_.project();
  of_ = wanted();
  fault_.clear();
  cancelled_ = false;
  reading_ = true;
  latest_ = std::make_shared<Latest>();
  const int64_t run = bench_.shown_run();
  bench_.jobs.start(
      kDistributionsTag, tr("Distributions of %1").arg(run_name()),
      [project = bench_.project(), run, latest = latest_](const Jobs::Report& report, const std::atomic<bool>&) {
        return std::make_shared<const projects::Distributions>(
            projects::distributions(*project, run, report, [&latest](const projects::Distributions& so_far) {
              latest->put(std::make_shared<const projects::Distributions>(so_far));
            }));
      },
      [this, latest = latest_](std::shared_ptr<const projects::Distributions> d) {
        if (latest != latest_) return;
        end_reading();
        take(std::move(d));
      },
      [this, latest = latest_](const QString& message, const QString& hint) {
        if (latest != latest_) return;
        end_reading();
        fault_ = message + (hint.isEmpty() ? "" : "\n" + hint);
        if (model_.distributions()) bench_.fail(tr("The distributions were not read again"), message, hint);
        refresh();
      });
  partial_.start();
  refresh();
}

void DistributionsView::end_reading() {
  reading_ = false;
  partial_.stop();
  latest_.reset();
}

/// Where there is nothing yet, what there is so far is shown; what was read before stays until the new is whole.
void DistributionsView::take_partial() {
  if (!latest_) return;
  const auto& shown = model_.distributions();
  if (shown && shown->points.size() >= shown->wanted) return;
  if (auto d = latest_->take()) take(std::move(d));
}

void DistributionsView::take(DistributionsModel::Shared d) {
  const bool first = !model_.distributions();
  model_.set_distributions(std::move(d));
  if (first) model_.set_selection(bench_.bus.current());  // of before its parameters were known
  refresh();
}

namespace {
/// A parameter or its gradient in the step that is loaded, or the module of one; of those that were read, if they were.
bool is_parameter(const Selection& s, const Bench& bench) {
  const auto& model = bench.model<DistributionsModel>();
  if (model.distributions()) return !model.parameter_of(s).empty();
  const Links& links = bench.links();
  if (s.kind != Selection::Kind::tensor || !links.hold(s)) return false;
  const tracing::TensorRecord& t = links.record()->tensors[static_cast<size_t>(s.id)];
  return t.category == Category::parameter || t.name.starts_with("grad of ");
}

const bool registered_distributions_view = register_view<DistributionsView, DistributionsModel>(
    {.id = "distributions",
     .title = tr_later("Distributions"),
     .icon = "heat",
     .order = 32,
     .spot = Spot::below,
     .rank = 6,
     .places = {{"Train", Spot::middle, 0}, {"Debug", Spot::below, 2}},
     .layouts = {"Build", "Train", "Debug"},
     .link = tr_later("Distributions"),
     .shows = is_parameter,
     // xgettext:no-c-format
     .help = {tr_later("How the weights, gradients and updates of every parameter are spread along the run that is "
                       "shown: the bands hold 90 % and 50 % of the numbers, the line is the median, the thin lines are "
                       "the smallest and the largest. In the list the size of the last update beside the weights: "
                       "yellow where it is above 1e-2 or below 1e-5, or the gradient is all 0, red where numbers are "
                       "not finite. All of it is worked out of the run's checkpoints; nothing is logged for it."),
              tr_later("A click on a row shows its charts and selects the parameter everywhere; a click on a point "
                       "goes to that step. Dragging over a chart or the wheel zooms, a double click shows all; log "
                       "makes an axis symmetric-logarithmic."),
              tr_later("Up and Down go through the parameters, Left and Right through the points, L makes the axes "
                       "logarithmic, W A S D zoom and pan, F shows all.")}});
}  // namespace

}  // namespace tenon::views
