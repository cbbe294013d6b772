#include "views/flame/flame_view.h"

#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "tracing/record/step_record.h"
#include "tracing/snapshot/snapshot.h"
#include "views/frame/filter_bar.h"
#include "views/frame/rank_box.h"
#include "views/shared/format.h"

namespace tenon::views {

using tracing::Flame;

namespace {
constexpr const char* kFlameJob = "flame";

/// The device's trace of a snapshot that an event belongs to; null: none.
const snapshot::DeviceTrace* device_of(const snapshot::Snapshot& s, int64_t event) {
  for (const auto& t : s.traces)
    if (event >= static_cast<int64_t>(t.begin) && event < static_cast<int64_t>(t.end)) return &t;
  return nullptr;
}
}  // namespace

FlameView::FlameView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<FlameModel>()) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  subject_ = new ElidedLabel({}, bar);
  subject_->setObjectName("flame.subject");
  bar->add(subject_, 1);
  bar->add(new RankBox(bench, "flame", bar));
  whole_ = new QToolButton(bar);
  whole_->setObjectName("flame.whole");
  connect(whole_, &QToolButton::clicked, this, [this] {
    part_ = {};
    refresh();
  });
  bar->add(whole_);
  bar->add(new FilterBar(bench, FilterBar::Shows::name, bar));
  box->addWidget(bar);
  box->addWidget(with_table(make_canvas(model_), bar, [this] { return model_.names(); }), 1);
  set_content(page);
  connect(&bench, &Bench::selection_changed, this, &FlameView::follow);
  connect(&bench, &Bench::filter_changed, this, [this] {
    refresh();
    describe();
  });
  connect(&bench, &Bench::step_changed, this, [this] {
    if (!part_.document) part_ = {};
    refresh();
  });
  connect(&bench, &Bench::documents_changed, this, &FlameView::refresh);
  connect(&bench, &Bench::project_changed, this, &FlameView::refresh);
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    if (!model_.flame()) refresh();
  });
  refresh();
}

/// A stretch of time, or a moment of a snapshot, is what is looked at until another one is chosen.
void FlameView::follow(const Selection& s) {
  const Document* d = bench_.document(s.document);
  const bool range = s.kind == Selection::Kind::range && s.to > s.from;
  const bool moment = d && d->snapshot && (s.kind == Selection::Kind::event || s.kind == Selection::Kind::alloc);
  if ((range || moment) && s.source != "flame") part_ = s;
  refresh();
}

FlameView::Asked FlameView::wanted() const {
  const Document* d = bench_.shown_document();
  Asked a;
  a.document = d ? d->id : Document::kProject;
  const bool mine = part_ && part_.document == a.document;
  if (d && d->snapshot) {
    a.snapshot = d->snapshot;
    size_t most = 0;
    for (size_t i = 0; i < d->timelines.size(); ++i)
      if (d->timelines[i]->peak_bytes() > d->timelines[most]->peak_bytes()) most = i;
    if (most >= d->timelines.size() || d->timelines[most]->events() == 0) return {};
    a.timeline = d->timelines[most];
    a.moment = a.timeline->peak();
    if (!mine) return a;
    if (part_.kind == Selection::Kind::event) {
      if (const auto* device = device_of(*d->snapshot, part_.id)) {
        a.timeline = d->timelines[static_cast<size_t>(device - d->snapshot->traces.data())];
        a.moment = static_cast<size_t>(part_.id) - device->begin;
      }
    } else if (part_.id >= 0 && part_.allocation_trace() < d->timelines.size() &&
               part_.allocation_element() < d->timelines[part_.allocation_trace()]->elements()) {
      a.timeline = d->timelines[part_.allocation_trace()];
      a.moment = a.timeline->element(part_.allocation_element()).born;
    }
    return a;
  }
  const Filter& f = bench_.filter();
  traces::TracePart part = bench_.shown_part();
  // A filter on a thread tells which rank is looked at.
  for (size_t r = 0; d && f.row >= 0 && r < d->ranks.size(); ++r)
    if (f.row >= static_cast<int64_t>(d->ranks[r].first_row)) part = d->ranks[r];
  a.trace = part.trace;
  a.first_event = part.first_event;
  if (d && d->trace) a.origin = d->trace->begin() - part.shift;
  a.row = f.row < 0 ? -1 : f.row - static_cast<int64_t>(part.first_row);
  if (mine && part_.kind == Selection::Kind::range)
    a.from = part_.from, a.to = part_.to;
  else if (f.has_range())
    a.from = f.from, a.to = f.to;
  return a;
}

void FlameView::refresh() {
  const Document* d = bench_.shown_document();
  const Asked now = wanted();
  if (!now.trace && !now.snapshot) {
    if (std::exchange(asked_, std::nullopt)) bench_.jobs.cancel_tag(kFlameJob);
    shown_.reset();
    if (model_.flame()) model_.set_flame(nullptr, Document::kProject);
    if (!d && !bench_.reading().isEmpty())
      return set_waiting(bench_.jobs, &Bench::reads_document, tr("its flame graph will be here in a moment."));
    if (d) return set_empty(true, tr("What is shown has neither calls nor allocations over time."));
    step_state(tr("its flame graph"));
    return;
  }
  if (asked_ && *asked_ != now) asked_.reset();
  ask();
}

void FlameView::ask() {
  if (!in_sight()) return;
  const Asked now = wanted();
  if ((!now.trace && !now.snapshot) || asked_ == now) return;
  asked_ = now;
  std::shared_ptr<const tracing::StepRecord> step;
  if (now.document == Document::kProject) step = bench_.links().record();
  bench_.jobs.start(
      kFlameJob, tr("Flame graph"),
      [now](const Jobs::Report& report, const std::atomic<bool>&) {
        if (now.snapshot)
          return std::make_shared<const Flame>(tracing::flame_of(*now.snapshot, *now.timeline, now.moment));
        tracing::FlamePart part;
        part.row = now.row;
        if (now.to > now.from) {
          part.from = now.origin + static_cast<int64_t>(std::clamp(now.from, -1e18, 1e18));
          part.to = now.origin + static_cast<int64_t>(std::clamp(now.to, -1e18, 1e18));
        }
        part.progress = [&report](uint64_t done, uint64_t total) {
          return report(static_cast<int64_t>(done), static_cast<int64_t>(total));
        };
        Flame flame = tracing::flame_of(*now.trace, part);
        flame.move_events(now.first_event);
        return std::make_shared<const Flame>(std::move(flame));
      },
      [this, now, step](std::shared_ptr<const Flame> flame) {
        if (asked_ != now) return;  // something else is looked at by now
        shown_ = now;
        model_.set_flame(std::move(flame), now.document, step);
        describe();
      },
      {}, true);
  if (shown_ == now) return;
  model_.set_flame(nullptr, now.document);
  set_waiting(
      bench_.jobs, [](const Jobs::State& job) { return job.tag == kFlameJob; },
      tr("the flame graph will be here in a moment."),
      [this] {
        set_empty(true, tr("The flame graph was not worked out."), tr("Work it out"), [this] {
          asked_.reset();
          refresh();
        });
      });
}

/// Of a session with its rank, which a filter may have chosen.
std::string FlameView::part_title(const Document& d) const {
  const int rank = shown_->trace && shown_->trace->size() ? d.rank_of(shown_->first_event) : -1;
  return rank < 0 ? d.title : d.title + " · " + d.rank_title(static_cast<size_t>(rank));
}

/// What it is of, how much, and how much of it the name that is looked for takes.
void FlameView::describe() {
  if (!model_.flame() || !shown_) return;
  if (model_.flame()->empty())
    return set_empty(
        true, shown_->snapshot ? tr("Nothing was allocated then.") : tr("Nothing happened in what is looked at."),
        tr("Look at all of it"), [this] {
          part_ = {};
          refresh();
        });
  set_empty(false);
  const Document* d = bench_.document(shown_->document);
  const auto& record = bench_.links().record();
  QString text = d        ? QString::fromStdString(part_title(*d))
                 : record ? tr("step %1").arg(QString::fromStdString(format_grouped(record->step)))
                          : QString();
  const std::string event = format_grouped(static_cast<int64_t>(shown_->moment));
  if (shown_->snapshot)
    text += tr(" · alive after event %1").arg(QString::fromStdString(event));
  else if (shown_->to > shown_->from)
    text += tr(" · %1 to %2")
                .arg(QString::fromStdString(format_ns(shown_->from)), QString::fromStdString(format_ns(shown_->to)));
  text += " · " + QString::fromStdString(model_.amount(model_.flame()->nodes()[0].total));
  if (const double found = model_.found(); found >= 0)
    text += tr(" · %1 of it in “%2”")
                .arg(QString::fromStdString(format_percent(found)), QString::fromStdString(bench_.filter().name));
  subject_->set_text(text);
  whole_->setText(shown_->snapshot ? tr("At the peak") : tr("All of it"));
  whole_->setToolTip(shown_->snapshot ? tr("What is alive at the highest moment")
                                      : tr("Not only the stretch that was selected"));
  whole_->setVisible(part_ && part_.document == shown_->document);
  refresh_table();
}

namespace {
const bool registered_flame_view = register_view<FlameView, FlameModel>(
    {.id = "flame",
     .title = tr_later("Flame graph"),
     .icon = "flame",
     .order = 43,
     .places = {{"Profile", Spot::below, 2}, {"Memory", Spot::below, 1}},
     .layouts = {"Profile", "Memory"},
     .fill = "run.replay",
     .link = tr_later("Flame graph"),
     .shows =
         [](const Selection& s, const Bench& bench) {
           const Document* d = bench.document(s.document);
           return d ? d->trace || d->snapshot : s.kind == Selection::Kind::range && bench.links();
         },
     .help = {
         tr_later(
             "Who called whom and how long it took, in the step that is loaded or in a trace: callers above what they "
             "call, each as wide as its share; select a stretch in the Timeline to see that stretch alone. Of a memory "
             "snapshot what was alive at its peak, or at the moment that is selected, by the stack that allocated it."),
         tr_later(
             "A click marks a box and selects its longest event, or its line of code; a double click makes it fill the "
             "width, one beside the boxes shows everything again; the wheel scrolls to what lies deeper."),
         tr_later("Left and Right go to neighbours, Up and Down to the caller and to what takes most below, Enter "
                  "makes the box fill the width, Backspace goes one caller back, F or Escape shows everything.")}});
}  // namespace

}  // namespace tenon::views
