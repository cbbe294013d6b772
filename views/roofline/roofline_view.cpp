#include "views/roofline/roofline_view.h"

#include <fmt/format.h>

#include <QLabel>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/parallel.h"
#include "views/frame/table_list.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr const char* kMeasureTag = "measure ceilings";
constexpr const char* kKeptTag = "kept ceilings";
}  // namespace

RooflineView::RooflineView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<RooflineModel>()) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  measured_ = new ElidedLabel({}, bar);
  measured_->setObjectName("roofline.measured");
  set_style(measured_, "voice", "secondary");
  bar->add(measured_, 1);
  again_ = bar->add_button("roofline.again", tr("Measure again"),
                           tr("What the processor computes and copies at most; best while nothing else runs"),
                           [this] { measure(); });
  box->addWidget(bar);
  headline_ = new QLabel(page);
  headline_->setObjectName("roofline.headline");
  headline_->setWordWrap(true);
  headline_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  headline_->setContentsMargins(12, 6, 12, 4);
  box->addWidget(headline_);
  auto* split = new QSplitter(Qt::Vertical, page);
  split->setChildrenCollapsible(false);
  split->addWidget(make_canvas(model_));
  list_ = new TableList(split);
  list_->setObjectName("roofline.table");
  list_->setAccessibleName(tr("%1 as a table").arg(title()));
  list_->on_select = [this](const Selection& s) { bench_.select(s); };
  split->addWidget(list_);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  split->setSizes({360, 220});
  box->addWidget(split, 1);
  set_content(page);
  connect(&bench, &Bench::step_changed, this, &RooflineView::refresh);
  connect(&bench, &Bench::project_changed, this, &RooflineView::refresh);
  connect(&bench, &Bench::status_changed, this, [this] {
    if (!model_.roofline()) return refresh();
    again_->setEnabled(can_measure());
  });
  connect(&bench, &Bench::selection_changed, this, &RooflineView::follow);
  // Cancelled among the jobs: nobody hands its result over.
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    if (!measuring_ || bench_.jobs.has(kMeasureTag)) return;
    measuring_ = false;
    refresh();
  });
  refresh();
}

std::vector<Command> RooflineView::commands() {
  return {{.id = "roofline.measure",
           .title = tr_later("Measure what the processor reaches at most"),
           .menu = {},
           .run =
               [this] {
                 bench_.ask("view.roofline");
                 measure();
               },
           .enabled = [this] { return can_measure(); }},
          {.id = "roofline.show",
           .title = tr_later("Hold a step against the processor's roofline"),
           .menu = {},
           .run =
               [this] {
                 bench_.ask("view.roofline");
                 if (!bench_.links()) bench_.ask("run.replay");
                 // What was measured before is looked up first.
                 if (looking_up_ || threads_ == 0)
                   measure_if_none_ = true;
                 else if (!model_.ceilings() && can_measure())
                   measure();
               },
           .enabled = [this] { return bench_.links() || (bench_.shown_run() && bench_.shown_steps() > 0); }}};
}

void RooflineView::refresh() {
  again_->setEnabled(can_measure());
  if (!step_state(tr("its roofline"))) return;
  if (threads_ != num_threads() && in_sight()) look_up();
  if (measuring_)
    return set_waiting(
        bench_.jobs, [](const Jobs::State& job) { return job.tag == kMeasureTag; },
        tr("the processor multiplies and copies as fast as it can."));
  if (!model_.ceilings()) {
    if (looking_up_ || threads_ == 0) return set_empty(true, tr("Looking up what the processor reaches at most."));
    if (!fault_.isEmpty()) return set_empty(true, fault_, tr("Measure now"), [this] { measure(); });
    if (bench_.training())
      return set_empty(true, tr("What the processor reaches at most is not measured yet. A run trains: measured "
                                "beside it, it would look slower than it is."));
    return set_empty(true,
                     tr("What the processor reaches at most, in arithmetic and in bytes copied, is not measured yet. "
                        "It takes about a second, and is best done while nothing else runs."),
                     tr("Measure now"), [this] { measure(); });
  }
  const auto& roofline = model_.roofline();
  if (roofline && roofline->rows.empty()) return set_empty(true, QString::fromStdString(model_.headline()));
  set_empty(false);
  list_->set_table(model_.table());
  headline_->setText(QString::fromStdString(model_.headline()));
  const kernels::Ceilings& c = *model_.ceilings();
  measured_->set_text(QString::fromStdString(
      fmt::format("{} · ", c.processor) +
      (c.threads == 1
           ? views::tr("one thread: {:.4g} GFLOP/s, {:.4g} GB/s", c.flops / 1e9, c.bytes / 1e9)
           : views::tr("{} threads: {:.4g} GFLOP/s, {:.4g} GB/s", c.threads, c.flops / 1e9, c.bytes / 1e9))));
  follow();
}

/// Of several rows that a module or a stretch of time has a part in, the one with the most to win.
void RooflineView::follow() {
  if (!model_.marked().empty()) list_->mark(model_.selection_of(model_.marked().front()));
}

void RooflineView::look_up() {
  threads_ = num_threads();
  looking_up_ = true;
  bench_.files.start(
      kKeptTag, tr("Look up what the processor reaches"),
      [](const Jobs::Report&, const std::atomic<bool>&) { return kernels::kept_ceilings(); },
      [this](const std::optional<kernels::Ceilings>& kept) {
        looking_up_ = false;
        if (!measuring_) model_.set_ceilings(kept);
        if (std::exchange(measure_if_none_, false) && !kept && can_measure()) measure();
        refresh();
      },
      [this](const QString& message, const QString&) {
        looking_up_ = false;
        fault_ = message;
        refresh();
      },
      true);
}

void RooflineView::measure() {
  if (!can_measure()) return;
  measuring_ = true;
  threads_ = num_threads();
  fault_.clear();
  bench_.jobs.start(
      kMeasureTag, tr("Measure what the processor reaches"),
      [](const Jobs::Report&, const std::atomic<bool>&) {
        const kernels::Ceilings c = kernels::measure_ceilings();
        kernels::keep_ceilings(c);
        return c;
      },
      [this](const kernels::Ceilings& c) {
        measuring_ = false;
        model_.set_ceilings(c);
        refresh();
      },
      [this](const QString& message, const QString& hint) {
        measuring_ = false;
        fault_ = message + (hint.isEmpty() ? "" : "\n" + hint);
        if (model_.ceilings()) bench_.fail(tr("The processor was not measured again"), message, hint);
        refresh();
      });
  refresh();
}

namespace {
const bool registered_roofline_view = register_view<RooflineView, RooflineModel>(
    {.id = "roofline",
     .title = tr_later("Roofline"),
     .icon = "overview",
     .order = 44,
     .places = {{"Profile", Spot::below, 4}},
     .layouts = {"Profile"},
     .fill = "roofline.show",
     .link = tr_later("Roofline"),
     .shows = [](const Selection& s, const Bench& bench) { return bench.links() && bench.links().op_of(s) != 0; },
     .help = {tr_later("What each op of the step reaches of what the processor can: along, how much it computes for a "
                       "byte that it moves, up, how fast it computes. The line is the roof: the slope is the copy "
                       "bandwidth, the flat part the peak of f32 multiply-adds, both measured here. A dot is as large "
                       "as the time of its calls; how far it lies below the roof is what there is to win. Ops without "
                       "arithmetic stand at the left. Data that lie in a cache may come faster than the copy "
                       "bandwidth, and what computes in fewer bits than 32 is faster than the peak."),
              tr_later("A click on a dot or a row selects the longest of its calls in every view; what is selected "
                       "elsewhere has a ring here."),
              tr_later("Left and Right, or Up and Down, go through the dots, those with the most to win first; Home "
                       "and End to the first and the last.")}});
}  // namespace

}  // namespace tenon::views
