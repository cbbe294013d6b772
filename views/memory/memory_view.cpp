#include "views/memory/memory_view.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QShortcut>
#include <QSplitter>
#include <QTabBar>
#include <QTabWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "core/give_way.h"
#include "views/frame/bookmark_list.h"
#include "views/frame/table_list.h"
#include "views/frame/wait_strip.h"
#include "views/memory/snapshot_bookmarks.h"
#include "views/shared/format.h"

namespace tenon::views {

namespace {
constexpr const char* kHistoryJob = "memory history";
constexpr const char* kMapJob = "memory map";
/// What lies where is found by undoing what came after. With more events than these that takes seconds: it waits until
/// the cursor rests.
constexpr size_t kManyEvents = 2'000'000;
}  // namespace

MemoryView::MemoryView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<MemoryModel>()) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  box->addWidget(make_bar(page));
  auto* split = new QSplitter(Qt::Vertical, page);
  split->addWidget(make_canvas(model_));
  split->addWidget(make_tables(split));
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  split->setSizes({340, 180});
  box->addWidget(split, 1);
  set_content(page);
  later_.setSingleShot(true);
  later_.setInterval(60);  // scrubbing: the tables follow a few times a second, the picture at once
  connect(&later_, &QTimer::timeout, this, &MemoryView::refresh);
  map_later_.setSingleShot(true);
  connect(&map_later_, &QTimer::timeout, this, &MemoryView::ask_map);
  model_.on_cursor = [this] { later_.start(); };
  connect(&bench, &Bench::step_changed, this, &MemoryView::refresh);
  connect(&bench, &Bench::project_changed, this, &MemoryView::refresh);
  connect(&bench, &Bench::documents_changed, this, &MemoryView::refresh_document);
  connect(&bench, &Bench::status_changed, this, [this] {
    if (!model_.snapshot() && !bench_.links()) step_state(tr("its memory"));
  });
  connect(&bench, &Bench::selection_changed, this, &MemoryView::follow);
  auto* keep = new QShortcut(QKeySequence("B"), canvas());
  keep->setContext(Qt::WidgetShortcut);
  connect(keep, &QShortcut::activated, this, &MemoryView::bookmark);
  refresh();
}

MemoryView::~MemoryView() { model_.on_cursor = nullptr; }

QWidget* MemoryView::make_tables(QWidget* parent) {
  tabs_ = new QTabWidget(parent);
  tabs_->setDocumentMode(true);
  auto* tables = new QSplitter(Qt::Horizontal, tabs_);
  live_ = new TableList(tables);
  live_->setObjectName("memory.live");
  categories_ = new TableList(tables);
  categories_->setObjectName("memory.groups");
  for (TableList* list : {live_, categories_}) {
    list->on_select = [this](const Selection& s) { bench_.select(s); };
    tables->addWidget(list);
  }
  tables->setStretchFactor(0, 3);
  tables->setStretchFactor(1, 2);
  tables->setSizes({570, 380});
  tabs_->addTab(tables, tr("At the cursor"));
  bookmarks_ = new BookmarkList(bench_, std::make_unique<SnapshotBookmarks>(model_), "memory",
                                tr("Keep the moment at the cursor (B in the picture)"), tabs_);
  tabs_->addTab(bookmarks_, bookmarks_->title());
  tabs_->tabBar()->hide();
  connect(bookmarks_, &BookmarkList::counted, this, &MemoryView::refresh_bookmarks);
  return tabs_;
}

std::vector<Command> MemoryView::commands() {
  return {{.id = "memory.bookmark",
           .title = tr_later("Bookmark the moment of the snapshot at the cursor"),
           .menu = {},
           .run = [this] { bookmark(); },
           .enabled = [this] { return can_bookmark(); }}};
}

bool MemoryView::can_bookmark() const {
  return model_.snapshot() && !model_.shows_beginning() && model_.snapshot()->events() > 0;
}

void MemoryView::bookmark() {
  if (!can_bookmark()) return;
  bench_.ask("view.memory");
  tabs_->setCurrentWidget(bookmarks_);
  bookmarks_->add();
}

void MemoryView::refresh_bookmarks() {
  bookmarks_->refresh();
  tabs_->setTabText(tabs_->indexOf(bookmarks_), bookmarks_->title());
  const bool kept = model_.snapshot() && !model_.shows_beginning();
  tabs_->tabBar()->setVisible(kept);
  if (!kept) tabs_->setCurrentIndex(0);
}

const Document* MemoryView::shown() const {
  return model_.shows_beginning() ? bench_.beginning() : bench_.shown_document();
}

/// What it shows is worked out for who sees it.
void MemoryView::came_into_sight() {
  if (!model_.snapshot()) return;
  refresh_document();
  follow(bench_.bus.current());
}

void MemoryView::follow(const Selection& s) {
  if (!model_.snapshot()) return live_->mark(Selection::alloc(bench_.links().block_of(s)));
  live_->mark(s);
  categories_->mark(s);
  const Document* d = shown();
  if (!d || s.document != d->id) return;
  if (s.kind == Selection::Kind::place) ask_history(QString::fromStdString(s.name));
  std::optional<size_t> trace;
  if (s.kind == Selection::Kind::alloc) trace = s.allocation_trace();
  if (s.kind == Selection::Kind::event) trace = trace_of_event(*d, s.id);
  if (!trace || *trace >= d->timelines.size()) return;
  if (const int row = device_->findData(static_cast<int>(*trace)); row != device_->currentIndex()) {
    device_->setCurrentIndex(row);
    ask_history({});
  }
}

ViewBar* MemoryView::make_bar(QWidget* page) {
  auto* bar = new ViewBar(page);
  device_ = new QComboBox(bar);
  device_->setObjectName("memory.device");
  device_->setAccessibleName(tr("Device of the snapshot"));
  connect(device_, &QComboBox::activated, this, [this] { ask_history({}); });
  bar->add(device_);
  by_ = new QComboBox(bar);
  by_->setObjectName("memory.by");
  by_->setAccessibleName(tr("What the memory is divided by"));
  connect(by_, &QComboBox::activated, this, [this] { ask_history({}); });
  bar->add(by_);
  over_time_ = new QToolButton(bar);
  over_time_->setObjectName("memory.over_time");
  over_time_->setText(tr("Over time"));
  over_time_->setToolTip(tr("The axis is the time of the recording, not the count of its events"));
  over_time_->setCheckable(true);
  connect(over_time_, &QToolButton::clicked, this, [this](bool on) {
    if (SnapshotPlot* plot = model_.snapshot()) plot->set_over_time(on);
    canvas()->update();
  });
  bar->add(over_time_);
  at_ = new ElidedLabel({}, bar);
  bar->add(at_, 1);
  who_ = new QToolButton(bar);
  who_->setObjectName("memory.who");
  who_->setText(tr("By stack"));
  who_->setToolTip(tr("The flame graph of what is alive at the cursor"));
  connect(who_, &QToolButton::clicked, this, [this] {
    const SnapshotPlot* plot = model_.snapshot();
    if (!plot || !plot->history() || plot->events() == 0) return;
    const auto& asked = plot->history()->asked;
    const size_t begin = plot->history()->snapshot->traces[asked.trace].begin;
    bench_.select(Selection::event(asked.document, static_cast<int64_t>(begin + plot->cursor()), "memory"));
    bench_.ask("view.flame");
  });
  bar->add(who_);
  auto* peak = new QToolButton(bar);
  peak->setText(tr("Go to peak"));
  peak->setObjectName("memory.peak");
  peak->setToolTip(tr("Put the cursor at the highest moment (P)"));
  connect(peak, &QToolButton::clicked, this, [this] {
    if (SnapshotPlot* plot = model_.snapshot())
      plot->key({.key = "P", .text = {}, .mods = {}});
    else
      model_.set_cursor(model_.peak_time());
    canvas()->update();
  });
  bar->add(peak);
  return bar;
}

void MemoryView::refresh() {
  if (!model_.snapshot()) return refresh_step();
  refresh_snapshot();
}

void MemoryView::refresh_step() {
  for (QWidget* w : std::initializer_list<QWidget*>{device_, by_, over_time_, who_}) w->hide();
  if (!step_state(tr("its memory"))) return;
  told_ = {};
  live_->set_table(model_.live_table());
  categories_->set_table(model_.categories());
  auto now = model_.live_at(model_.cursor());
  at_->set_text(
      tr("%1 live at %2 in %3 blocks · peak %4 at %5")
          .arg(QString::fromStdString(format_bytes(now.total)), QString::fromStdString(format_ns(model_.cursor())))
          .arg(live_->table().rows.size())
          .arg(QString::fromStdString(format_bytes(static_cast<double>(model_.peak_bytes()))),
               QString::fromStdString(format_ns(model_.peak_time()))));
}

/// Another document is shown, or none.
void MemoryView::refresh_document() {
  refresh_bookmarks();
  const bool begun = model_.shows_beginning() && bench_.beginning();
  if (!std::exchange(begun_, begun) && begun_) bench_.ask("view.memory");
  const Document* d = shown();
  // Nothing of what is closed is held.
  if (!model_.snapshot() || told_.first != model_.snapshot()->shared_history()) told_ = {};
  if (!d || map_of_.snapshot != d->snapshot) map_of_ = {}, map_ = nullptr;
  if (!d || !d->snapshot) {
    if (std::exchange(asked_, std::nullopt)) {
      bench_.jobs.cancel_tag(kHistoryJob);
      bench_.jobs.cancel_tag(kMapJob);
    }
    map_later_.stop();
    return refresh();
  }
  const SnapshotPlot* plot = model_.snapshot();
  const bool more = begun && plot->history() && plot->history()->snapshot != d->snapshot;  // than was seen of it
  if (asked_ && asked_->document == d->id && !more) return refresh_snapshot();
  if (asked_ && !in_sight()) {
    asked_.reset();
    bench_.jobs.cancel_tag(kHistoryJob);
  }
  if (!in_sight()) return refresh_snapshot();
  if (!more) fill_choices(*d);
  asked_.reset();
  ask_history({});
}

void MemoryView::fill_choices(const Document& d) {
  const SnapshotPlot* plot = model_.snapshot();
  const bool goes_on = plot && plot->history();  // of its beginning: what was chosen stays
  QVariant by = by_->currentData();
  const auto left = model_.snapshots().sight(d.id);  // as it was the last time
  device_->clear();
  for (size_t i = 0; i < d.snapshot->traces.size(); ++i) {
    const int64_t device = d.snapshot->traces[i].device;
    device_->addItem(device == snapshot::kHost ? tr("host, pinned") : tr("device %1").arg(device), static_cast<int>(i));
  }
  size_t most = 0;
  for (size_t i = 0; i < d.timelines.size(); ++i)
    if (d.timelines[i]->peak_bytes() > d.timelines[most]->peak_bytes()) most = i;
  if (left && left->trace < d.timelines.size()) most = left->trace;
  device_->setCurrentIndex(static_cast<int>(most));
  const bool usual = !goes_on || by == QVariant(static_cast<int>(snapshot::UsageBy::place));
  if (left && usual) by = static_cast<int>(left->by);
  by_->clear();
  const auto& categories = d.snapshot->events.category;
  const bool named = std::any_of(categories.begin(), categories.end(), [](uint32_t c) { return c != snapshot::kNone; });
  const char* const words[] = {tr_later("by place"), tr_later("by size"), tr_later("by stream"),
                               tr_later("by category")};
  for (int b = 0; b < snapshot::kUsageBys; ++b)
    if (b != static_cast<int>(snapshot::UsageBy::category) || named) by_->addItem(tr(words[b]), b);
  if ((goes_on || left) && by_->findData(by) >= 0) by_->setCurrentIndex(by_->findData(by));
}

/// Divides the memory of the chosen device anew, in the background; what is seen stays until then.
void MemoryView::ask_history(const QString& pinned) {
  const Document* d = shown();
  if (!d || !d->snapshot || !in_sight()) return;
  if (d->timelines.empty()) {
    asked_ = SnapshotHistory::Asked{.document = d->id};
    return refresh_snapshot();
  }
  const auto by = static_cast<snapshot::UsageBy>(by_->currentData().toInt());
  SnapshotHistory::Asked asked{d->id, static_cast<size_t>(std::max(0, device_->currentData().toInt())), by,
                               by == snapshot::UsageBy::place ? pinned.toStdString() : std::string()};
  const SnapshotPlot* plot = model_.snapshot();
  if (asked_ == asked) return;
  // A place that has a band already needs no other picture.
  if (plot && plot->history() && !asked.pinned.empty()) {
    const auto& h = *plot->history();
    const auto& bands = h.usage.bands();
    if (h.asked.document == asked.document && h.asked.trace == asked.trace && h.asked.by == asked.by &&
        std::any_of(bands.begin(), bands.end(), [&](const auto& b) { return !b.rest && b.name == asked.pinned; }))
      return;
  }
  asked_ = asked;
  // It is known where the cursor will stand: what lies where is worked out beside the picture.
  if (d->id != Document::kBeginning && d->timelines.at(asked.trace)->events() > 0 &&
      (!plot || !plot->history() || plot->history()->snapshot != d->snapshot))
    work_out_map(
        {d->snapshot, asked.trace, model_.snapshots().begins_at(d->id, asked.trace, *d->timelines.at(asked.trace))});
  bench_.jobs.start(
      kHistoryJob, tr("Divide the memory of %1").arg(QString::fromStdString(d->title)),
      [document = *d, asked](const Jobs::Report& report, const std::atomic<bool>&) {
        const auto progress = [&report](uint64_t done, uint64_t total) {
          return report(static_cast<int64_t>(done), static_cast<int64_t>(total));
        };
        return giving_way([&] { return read_history(document, asked, progress); });
      },
      [this, asked](std::shared_ptr<const SnapshotHistory> history) {
        if (asked_ != asked) return;  // another one is asked for by now
        model_.set_history(std::move(history));
        refresh_snapshot();
        later_.stop();  // that was what the cursor asked for
      },
      {}, true);
  refresh_snapshot();
}

void MemoryView::ask_map() {
  SnapshotPlot* plot = model_.snapshot();
  if (!plot || !plot->history() || plot->events() == 0 || plot->map() || !in_sight()) return;
  if (plot->history()->asked.document == Document::kBeginning) return;  // its end is not known yet
  work_out_map({plot->history()->snapshot, plot->history()->asked.trace, plot->cursor()});
}

/// What lay where after an event. The picture may not be there yet: it takes what was worked out for it meanwhile.
void MemoryView::work_out_map(const Moment& of) {
  if (of == map_of_ && (map_ || bench_.jobs.has(kMapJob))) return;
  map_of_ = of;
  map_ = nullptr;
  bench_.jobs.start(
      kMapJob, tr("What lies where"),
      [of](const Jobs::Report&, const std::atomic<bool>&) {
        return std::make_shared<const snapshot::AllocatorState>(
            snapshot::state_after(*of.snapshot, of.trace, of.event + 1));
      },
      [this, of](std::shared_ptr<const snapshot::AllocatorState> map) {
        if (!(of == map_of_)) return;  // another moment is asked for by now
        map_ = std::move(map);
        take_map();
      },
      {}, true);
}

bool MemoryView::take_map() {
  const SnapshotPlot* plot = model_.snapshot();
  if (!map_ || !plot || !plot->history()) return false;
  if (!(map_of_ == Moment{plot->history()->snapshot, plot->history()->asked.trace, plot->cursor()})) return false;
  model_.set_map(map_);
  return true;
}

void MemoryView::refresh_snapshot() {
  const SnapshotPlot* plot = model_.snapshot();
  if (!plot) return;
  const Document* d = shown();
  const bool begins = plot->history() && plot->history()->asked.document == Document::kBeginning;
  if (d && begins)
    strip_->wait_for(bench_.jobs, d->id == Document::kBeginning ? Bench::reading_tag(*d) : QString(kHistoryJob),
                     tr("the beginning of the snapshot"), {});
  else
    strip_->stop();
  if (d && d->timelines.empty()) {
    return set_empty(true,
                     tr("The snapshot holds no recorded events, only what its segments held at the end: Findings says "
                        "who held them."),
                     tr("Show the findings"), [this] { bench_.ask("view.findings"); });
  }
  if (!plot->history())
    return set_waiting(
        bench_.jobs, [](const Jobs::State& job) { return job.tag == kHistoryJob; },
        tr("its picture will be here in a moment."));
  set_empty(false);
  device_->setVisible(device_->count() > 1);
  by_->show();
  over_time_->show();
  who_->setVisible(!begins);
  over_time_->setEnabled(plot->history()->timed);
  over_time_->setChecked(plot->over_time());
  if (std::pair now(plot->shared_history(), plot->cursor()); now != told_) {
    told_ = std::move(now);
    live_->set_table(plot->blocks());
    categories_->set_table(plot->groups());
  }
  live_->mark(bench_.bus.current());
  categories_->mark(bench_.bus.current());
  if (plot->events() == 0) return at_->set_text(tr("No events were recorded on this device"));
  const size_t alive = plot->blocks_alive();
  const QString shown =
      alive > SnapshotPlot::kMostRows
          ? tr(" (the %1 largest below)").arg(QString::fromStdString(format_grouped(SnapshotPlot::kMostRows)))
          : QString();
  const QString held = QString::fromStdString(format_bytes(static_cast<double>(plot->bytes())));
  const QString text =
      alive == 1
          ? tr("%1 alive in 1 block").arg(held)
          : tr("%1 alive in %2 blocks").arg(held, QString::fromStdString(format_grouped(static_cast<int64_t>(alive))));
  at_->set_text(
      text + shown +
      tr(" %1 · peak %2 %3")
          .arg(QString::fromStdString(plot->moment_text(plot->cursor())),
               QString::fromStdString(format_bytes(static_cast<double>(plot->history()->timeline->peak_bytes()))),
               QString::fromStdString(plot->moment_text(plot->history()->timeline->peak()))));
  const Moment moment{plot->history()->snapshot, plot->history()->asked.trace, plot->cursor()};
  if (!plot->map() && !begins && !take_map() && !(moment == map_of_ && bench_.jobs.has(kMapJob)))
    map_later_.start(plot->events() > kManyEvents ? 1000 : 200);
}

namespace {
const bool registered_memory_view = register_view<MemoryView, MemoryModel>(
    {.id = "memory",
     .title = tr_later("Memory"),
     .icon = "memory",
     .order = 50,
     .places = {{"Profile", Spot::below, 0}, {"Memory", Spot::middle, 0, true}},
     .layouts = {"Profile", "Memory"},
     .fill = "run.replay",
     .link = tr_later("Memory"),
     .opens = Document::Kind::snapshot,
     .shows =
         [](const Selection& s, const Bench& bench) {
           const Document* d = bench.document(s.document);
           return d ? d->snapshot != nullptr : bench.links().hold(s);
         },
     .help = {
         tr_later("The bytes that were alive during the step, stacked by what they were for, with the peak; below "
                  "it the blocks of the allocator at the cursor, and the list of what was alive then. Of a memory "
                  "snapshot the same over its recording, stacked by the line of code that allocated them, or by "
                  "size, stream or category, with its segments and the gaps in them."),
         tr_later(
             "Click or drag to move the cursor, Shift and drag to move the picture, wheel to zoom, double "
             "click to show all of it. A click on a block selects who made it; in a snapshot a click on a "
             "colour selects its place, one on a region that the program marked goes to where most was alive in it, "
             "and a double click shows it alone."),
         tr_later("Left and Right go from change to change, P goes to the peak, W and S zoom, A and D move, F "
                  "shows all of it; Up and Down go through the blocks, or the places of a snapshot. B bookmarks the "
                  "moment of a snapshot at the cursor: it is there, and the picture as it was left, when the file is "
                  "opened again.")}});
}  // namespace

}  // namespace tenon::views
