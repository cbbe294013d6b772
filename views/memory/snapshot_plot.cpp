#include "views/memory/snapshot_plot.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/parallel.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using snapshot::Element;
using snapshot::kNone;
using snapshot::StackedUsage;
using snapshot::Timeline;

namespace {

constexpr size_t kSeriesInks = 8;

/// FNV-1a: a name has its colour in every snapshot, as long as no other wants the same one.
size_t colour_of(const std::string& name) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : name) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return (h ^ h >> 32) % kSeriesInks;
}

std::vector<Ink> band_inks(const std::vector<StackedUsage::Band>& bands) {
  std::vector<Ink> inks;
  bool taken[kSeriesInks] = {};
  for (const auto& b : bands) {
    if (b.rest) {
      inks.push_back(Ink::memory_other);
      continue;
    }
    size_t i = colour_of(b.name);
    for (size_t tries = 0; taken[i] && tries < kSeriesInks; ++tries) i = (i + 1) % kSeriesInks;
    taken[i] = true;
    inks.push_back(series_ink(static_cast<int>(i)));
  }
  return inks;
}

bool goes_on_in_time(const snapshot::Events& events, const snapshot::DeviceTrace& trace) {
  const auto& times = events.time_us;
  if (trace.begin == trace.end || times[trace.begin] < 0 || times[trace.end - 1] <= times[trace.begin]) return false;
  std::atomic<bool> all = true;
  parallel_for(static_cast<int64_t>(trace.end - trace.begin), 1 << 18, [&](int64_t begin, int64_t end) {
    const auto from = static_cast<size_t>(std::max<int64_t>(begin - 1, 0));
    if (!times.ascending(trace.begin + from, trace.begin + static_cast<size_t>(end))) all = false;
  });
  return all;
}

}  // namespace

std::shared_ptr<const SnapshotHistory> read_history(
    const Document& document, const SnapshotHistory::Asked& asked,
    const std::function<bool(uint64_t done, uint64_t total)>& progress) {
  const auto& timeline = document.timelines.at(asked.trace);
  const bool timed = goes_on_in_time(document.snapshot->events, document.snapshot->traces.at(asked.trace));
  const auto& known = document.snapshot->divisions;
  const bool usual = asked.by == snapshot::UsageBy::place && asked.pinned.empty() && asked.trace < known.size();
  auto division = usual ? known[asked.trace]
                        : snapshot::divide_usage(*document.snapshot, *timeline,
                                                 {.by = asked.by, .pinned = asked.pinned, .progress = progress});
  return std::make_shared<const SnapshotHistory>(SnapshotHistory{
      asked, document.snapshot, timeline, StackedUsage(std::move(division), *document.snapshot, *timeline), timed,
      snapshot::regions(*document.snapshot, asked.trace)});
}

bool SnapshotPlot::goes_on_with(const SnapshotHistory& next) const {
  return history_ && history_->asked.document == Document::kBeginning &&
         next.snapshot->path == history_->snapshot->path &&
         next.snapshot->traces[next.asked.trace].device == history_->snapshot->traces[history_->asked.trace].device;
}

void SnapshotPlot::set_history(std::shared_ptr<const SnapshotHistory> history) {
  const bool same = history && history_ && history->timeline == history_->timeline;
  const bool goes_on = history && !same && goes_on_with(*history);
  const bool fitted = axis_.fitted(), at_peak = goes_on && cursor_ == history_->timeline->peak();
  const double lo = axis_.lo, hi = axis_.hi;
  const int before = history_ ? history_->asked.document : Document::kProject;
  if (history_ && before != Document::kBeginning) sights_[before] = sight_now();
  history_ = std::move(history);
  seen_ = {};
  if (!same) {
    map_ = nullptr;
    if (!goes_on) hover_ = {-1, -1}, dragging_ = panning_ = false;
  }
  if (!history_) return;
  inks_ = band_inks(history_->usage.bands());
  if (!same) {
    const auto& asked = history_->asked;
    const Sight* left = left_of(asked.document, asked.trace);
    const bool looked_into = goes_on && !fitted;  // of its beginning, just now
    if (left && !looked_into)
      over_time_ = left->over_time;
    else if (!goes_on && asked.document != before)
      over_time_ = false;
    over_time_ = over_time_ && history_->timed;
    fit_axis();
    if (looked_into)
      axis_.show(lo, hi);  // events are counted, and time is, from the recording's first event
    else if (left && !left->whole)
      axis_.show(left->lo, left->hi);
    if (!goes_on || at_peak) cursor_ = begins_at(asked.document, asked.trace, *history_->timeline);
  }
  look();
}

SnapshotPlot::Sight SnapshotPlot::sight_now() const {
  Sight s{history_->asked.trace, history_->asked.by, over_time_, axis_.fitted(), axis_.lo, axis_.hi, cursor_};
  s.usual = history_->snapshot->traces.size() == 1 && s.by == snapshot::UsageBy::place && !s.over_time && s.whole &&
            cursor_ == history_->timeline->peak();
  return s;
}

const SnapshotPlot::Sight* SnapshotPlot::left_of(int document, size_t trace) const {
  const auto known = sights_.find(document);
  return known != sights_.end() && known->second.trace == trace ? &known->second : nullptr;
}

size_t SnapshotPlot::begins_at(int document, size_t trace, const Timeline& timeline) const {
  const Sight* left = left_of(document, trace);
  return left && left->cursor < timeline.events() ? left->cursor : timeline.peak();
}

std::optional<SnapshotPlot::Sight> SnapshotPlot::sight(int document) const {
  if (history_ && history_->asked.document == document) return sight_now();
  const auto known = sights_.find(document);
  return known == sights_.end() ? std::nullopt : std::optional(known->second);
}

Bookmark SnapshotPlot::bookmark_here() const {
  Bookmark b;
  if (history_ && events() > 0) b.from = b.to = static_cast<double>(first_event() + cursor_);
  return b;
}

void SnapshotPlot::set_map(std::shared_ptr<const snapshot::AllocatorState> map) { map_ = std::move(map); }

void SnapshotPlot::set_over_time(bool on) {
  if (!history_ || on == over_time_ || (on && !history_->timed)) return;
  over_time_ = on;
  fit_axis();
}

void SnapshotPlot::fit_axis() {
  const size_t n = events();
  axis_.min_span = over_time_ ? 10'000 : 16;
  axis_.set_full(0, n == 0 ? 1 : over_time_ ? place_of(n - 1) : static_cast<double>(n));
  axis_.fit();
  seen_ = {};
}

double SnapshotPlot::place_of(size_t event) const {
  if (!over_time_) return static_cast<double>(event);
  const auto& times = history_->snapshot->events.time_us;
  const size_t begin = history_->snapshot->traces[history_->asked.trace].begin;
  return static_cast<double>(times[begin + event] - times[begin]) * 1000;
}

size_t SnapshotPlot::first_at(double place) const {
  const size_t n = events();
  if (!over_time_) return static_cast<size_t>(std::clamp(std::ceil(place), 0.0, static_cast<double>(n)));
  size_t low = 0, high = n;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (place_of(middle) < place)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

size_t SnapshotPlot::event_at(float x) const {
  if (const Column* c = column_at(x); c && c->end > c->begin) return c->event;
  const size_t next = first_at(axis_.to_value(x) + axis_.per_pixel() / 2);
  return next == 0 ? 0 : std::min(next - 1, events() - 1);
}

/// A column a pixel, with the highest moment within it; one that no event lies in goes on as the one before it ended.
void SnapshotPlot::make_columns() {
  const Seen now{axis_.lo, axis_.hi, axis_.w, history_.get()};
  if (now == seen_) return;
  seen_ = now;
  columns_.clear();
  constexpr size_t kBlock = StackedUsage::kEventsOfBlock;
  size_t from = first_at(axis_.lo);
  snapshot::StackedUsage::Walk walk;
  Column held;  // as of the last event before
  bool known = false;
  for (float x = axis_.x; x < axis_.x + axis_.w; x += 1) {
    size_t to = first_at(axis_.to_value(x + 1));
    if (to - std::min(from, to) >= 4 * kBlock) to = (to + kBlock / 2) / kBlock * kBlock;  // moved by an eighth at most
    to = std::min(to, events());
    if (to > from) {
      columns_.push_back(history_->usage.highest(from, to, &walk));
      known = false;
      from = to;
      continue;
    }
    if (!known && from > 0) {
      held.bands = history_->usage.bytes(from - 1);
      held.total = 0;
      for (const int64_t b : held.bands) held.total += b;
      held.begin = held.end = held.event = from - 1;
      known = true;
    }
    columns_.push_back(held);
  }
}

const SnapshotPlot::Column* SnapshotPlot::column_at(float x) const {
  const auto i = static_cast<ptrdiff_t>(std::floor(x - axis_.x));
  return i >= 0 && i < static_cast<ptrdiff_t>(columns_.size()) ? &columns_[static_cast<size_t>(i)] : nullptr;
}

int SnapshotPlot::band_at(float x, float y) const {
  const Column* c = column_at(x);
  if (!c || !plot_.contains(x, y)) return -1;
  const double at = (plot_.bottom() - y) / plot_.h * top_;
  double sum = 0;
  for (size_t b = 0; b < c->bands.size(); ++b) {
    sum += static_cast<double>(c->bands[b]);
    if (at < sum) return static_cast<int>(b);
  }
  return -1;
}

void SnapshotPlot::look() {
  alive_ = history_->timeline->live(cursor_);
  by_band_.assign(history_->usage.bands().size(), 0);
  bytes_ = 0;
  at_address_.clear();
  for (const uint32_t id : alive_) {
    const Element e = history_->timeline->element(id);
    by_band_[history_->usage.band_of(id)] += e.bytes;
    bytes_ += e.bytes;
    at_address_.emplace(e.address, id);
  }
  if (on_cursor) on_cursor();
}

void SnapshotPlot::set_cursor(size_t event) {
  if (!history_ || events() == 0) return;
  event = std::min(event, events() - 1);
  if (event == cursor_) return;
  cursor_ = event;
  map_ = nullptr;
  look();
}

void SnapshotPlot::set_selection(const Selection& s) {
  selection_ = s;
  if (!history_ || s.document != history_->asked.document || s.source == "memory") return;
  const snapshot::DeviceTrace& trace = history_->snapshot->traces[history_->asked.trace];
  size_t to = events();
  if (s.kind == Selection::Kind::event && s.id >= static_cast<int64_t>(trace.begin) &&
      s.id < static_cast<int64_t>(trace.end))
    to = static_cast<size_t>(s.id) - trace.begin;
  if (s.kind == Selection::Kind::alloc && s.allocation_trace() == history_->asked.trace &&
      s.allocation_element() < history_->timeline->elements())
    to = history_->timeline->element(s.allocation_element()).born;
  if (to >= events()) return;
  set_cursor(to);
  axis_.reveal(place_of(to), place_of(to));
}

Ink SnapshotPlot::ink_of_band(size_t band) const { return band < inks_.size() ? inks_[band] : Ink::memory_other; }

std::string SnapshotPlot::moment_text(size_t event) const {
  std::string text = tr("after event {}", format_grouped(static_cast<int64_t>(event)));
  if (history_ && history_->timed) {
    const auto& times = history_->snapshot->events.time_us;
    const size_t begin = history_->snapshot->traces[history_->asked.trace].begin;
    text += " (" + format_ns(static_cast<double>(times[begin + event] - times[begin]) * 1000) + ")";
  }
  return text;
}

std::string SnapshotPlot::element_text(uint32_t id) const {
  const Element e = history_->timeline->element(id);
  return format_bytes(static_cast<double>(e.bytes)) + "  " + history_->snapshot->site(e.stack);
}

Table SnapshotPlot::blocks() const {
  Table t;
  t.columns = {{tr("Allocated by")}, {tr("Size"), true}, {tr("Since event"), true}, {tr("Until event"), true}};
  if (!history_) return t;
  const auto& s = *history_->snapshot;
  std::vector<std::pair<int64_t, uint32_t>> largest;
  for (const uint32_t id : alive_) largest.emplace_back(-history_->timeline->element(id).bytes, id);
  const size_t rows = std::min(largest.size(), kMostRows);
  std::partial_sort(largest.begin(), largest.begin() + static_cast<ptrdiff_t>(rows), largest.end());
  largest.resize(rows);
  for (const auto& [negative, id] : largest) {
    const Element e = history_->timeline->element(id);
    const bool stays = e.died >= events();
    Table::Row row;
    row.selection = Selection::allocation(history_->asked.document, history_->asked.trace, id, "memory");
    row.cells = {{s.site(e.stack), 0, {}, ink_of_band(history_->usage.band_of(id))},
                 {format_bytes(static_cast<double>(e.bytes)), static_cast<double>(e.bytes),
                  tr("{} bytes", format_grouped(e.bytes)), Ink::none},
                 Table::Cell::number(e.before ? -1 : static_cast<double>(e.born),
                                     e.before ? tr("before") : format_grouped(static_cast<int64_t>(e.born))),
                 Table::Cell::number(stays ? 1e300 : static_cast<double>(e.died),
                                     stays ? tr("stays") : format_grouped(static_cast<int64_t>(e.died)))};
    t.rows.push_back(std::move(row));
  }
  return t;
}

Table SnapshotPlot::groups() const {
  Table t;
  const char* const heads[] = {tr_later("Allocated by"), tr_later("Size"), tr_later("Stream"), tr_later("Category")};
  t.columns = {{tr(history_ ? heads[static_cast<int>(history_->asked.by)] : heads[0])},
               {tr("At the cursor"), true},
               {tr("At the peak"), true}};
  if (!history_) return t;
  const auto& bands = history_->usage.bands();
  for (size_t b = bands.size(); b-- > 0;) {  // as they are stacked
    const double now = static_cast<double>(by_band_[b]), peak = static_cast<double>(bands[b].at_peak);
    Table::Row row;
    if (!bands[b].rest && history_->asked.by == snapshot::UsageBy::place)
      row.selection = Selection::place(history_->asked.document, bands[b].name, "memory");
    row.cells = {{bands[b].name, 0, {}, ink_of_band(b)},
                 Table::Cell::number(now, format_bytes(now)),
                 Table::Cell::number(peak, format_bytes(peak))};
    t.rows.push_back(std::move(row));
  }
  return t;
}

void SnapshotPlot::go_to_region(size_t which, bool fill) {
  if (which >= history_->regions.size()) return;
  const snapshot::Region& r = history_->regions[which];
  const size_t begin = std::min(r.begin, events() - 1), end = std::clamp(r.end, begin + 1, events());
  set_cursor(history_->usage.highest(begin, end).event);
  const double a = place_of(begin), b = place_of(end - 1);
  if (fill)
    axis_.show(a - (b - a) * 0.03, b + (b - a) * 0.03);
  else
    axis_.reveal(place_of(cursor_), place_of(cursor_));
}

void SnapshotPlot::choose_band(int band) {
  if (!history_ || band < 0 || history_->asked.by != snapshot::UsageBy::place || !on_select) return;
  const auto& b = history_->usage.bands()[static_cast<size_t>(band)];
  if (!b.rest) on_select(Selection::place(history_->asked.document, b.name, "memory"));
}

/// Up and down through the bands that something is alive of.
bool SnapshotPlot::next_band(int direction) {
  const auto& bands = history_->usage.bands();
  int at = direction > 0 ? -1 : static_cast<int>(bands.size());
  for (size_t b = 0; b < bands.size(); ++b)
    if (selection_.kind == Selection::Kind::place && bands[b].name == selection_.name && !bands[b].rest)
      at = static_cast<int>(b);
  for (int b = at + direction; b >= 0 && b < static_cast<int>(bands.size()); b += direction)
    if (!bands[static_cast<size_t>(b)].rest) {
      choose_band(b);
      return true;
    }
  return false;
}

bool SnapshotPlot::pointer(const PointerEvent& e, const Scene& last) {
  if (!history_ || events() == 0) return false;
  switch (e.type) {
    case PointerEvent::Type::press: {
      pull_.begin(axis_, e.x);
      if (e.button == Button::middle || (e.button == Button::left && e.mods.shift)) {
        panning_ = true;
        return false;
      }
      if (e.button != Button::left) return false;
      const Hit hit = last.hit_at(e.x, e.y);
      if (hit.kind == block) {
        if (on_select)
          on_select(Selection::allocation(history_->asked.document, history_->asked.trace,
                                          static_cast<uint32_t>(hit.id), "memory"));
        return true;
      }
      if (hit.kind == region) {
        go_to_region(static_cast<size_t>(hit.id), false);
        return true;
      }
      if (hit.kind == bookmark && static_cast<size_t>(hit.id) < bookmarks_.size()) {
        const double event = bookmarks_[static_cast<size_t>(hit.id)].from;
        if (on_select) on_select(Selection::event(history_->asked.document, static_cast<int64_t>(event), "bookmarks"));
        return true;
      }
      if (hit.kind != plot) return false;
      dragging_ = true;
      set_cursor(event_at(e.x));
      return true;
    }
    case PointerEvent::Type::move:
      hover_ = {e.x, e.y};
      if (panning_) {
        pull_.to(axis_, e.x);
      } else if (dragging_) {
        set_cursor(event_at(std::clamp(e.x, axis_.x, axis_.x + axis_.w - 1)));
      }
      return true;
    case PointerEvent::Type::release: {
      const bool was = dragging_ || panning_;
      // A click, not a drag, chooses the band under it.
      if (dragging_ && std::fabs(e.x - pull_.x) < 3) choose_band(band_at(e.x, e.y));
      dragging_ = panning_ = false;
      return was;
    }
    case PointerEvent::Type::double_click:
      if (const Hit hit = last.hit_at(e.x, e.y); hit.kind == region)
        go_to_region(static_cast<size_t>(hit.id), true);
      else
        axis_.fit();
      return true;
    case PointerEvent::Type::leave:
      hover_ = {-1, -1};
      return true;
  }
  return false;
}

bool SnapshotPlot::key(const KeyEvent& e) {
  if (!history_ || events() == 0) return false;
  if (axis_.key(e)) return true;
  if (e.key == "Up" || e.key == "Down") return next_band(e.key == "Up" ? 1 : -1);
  if (e.key == "P") {
    set_cursor(history_->timeline->peak());
  } else if (e.key == "Left" || e.key == "Right") {
    // By a pixel, and by an event where a pixel holds none.
    const auto pixel = static_cast<size_t>(over_time_ ? 1 : std::max(1.0, axis_.per_pixel()));
    set_cursor(e.key == "Right" ? cursor_ + pixel : cursor_ - std::min(cursor_, pixel));
  } else if (e.key == "Return" || e.key == "Enter") {
    for (const Timeline::Change& c : history_->timeline->changes(cursor_))
      if (c.element != kNone && on_select) {
        on_select(Selection::allocation(history_->asked.document, history_->asked.trace, c.element, "memory"));
        break;
      }
    return true;
  } else {
    return false;
  }
  axis_.reveal(place_of(cursor_), place_of(cursor_));
  return true;
}

std::string SnapshotPlot::summary() const {
  if (!history_) return tr("Memory: the snapshot is being looked at");
  if (events() == 0) return tr("Memory: the snapshot holds no recorded events");
  std::string text =
      tr("Memory of device {}: {} events, peak {} {}; at the cursor, {}: {} in {} blocks",
         history_->snapshot->traces[history_->asked.trace].device, format_grouped(static_cast<int64_t>(events())),
         format_bytes(static_cast<double>(history_->timeline->peak_bytes())), moment_text(history_->timeline->peak()),
         moment_text(cursor_), format_bytes(static_cast<double>(bytes_)), alive_.size());
  if (selection_.kind == Selection::Kind::place) text += tr("; chosen: {}", selection_.name);
  std::string within;
  for (const snapshot::Region& r : history_->regions)
    if (r.begin <= cursor_ && cursor_ < r.end) within += (within.empty() ? "" : " › ") + r.name;
  if (!within.empty()) text += tr("; within {}", within);
  return text;
}

}  // namespace tenon::views
