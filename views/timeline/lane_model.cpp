#include "views/timeline/lane_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tracing/analyses/trace_story.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using traces::EventId;
using traces::kNone;

void LaneModel::set_trace(std::shared_ptr<const traces::Trace> trace, int document, int64_t origin, int64_t length,
                          std::shared_ptr<const std::vector<traces::CounterCurve>> curves,
                          const std::vector<LaneLayout::Group>& groups) {
  trace_ = std::move(trace);
  curves_ = std::move(curves);
  document_ = document;
  origin_ = origin;
  matches_.clear();
  linked_.clear();
  module_of_.clear();
  overview_.clear();
  story_.reset();
  bookmarks_.clear();
  chosen_event_ = kNone;
  has_range_ = false;
  scroll_ = 0;
  bring_chosen_ = false;
  layout_.set(trace_.get(), curves_.get(), document == Document::kProject, groups);
  if (trace_) {
    axis_.min_span = 200;
    axis_.set_full(0, static_cast<double>(std::max<int64_t>(length, 1)));
    axis_.fit();
    set_filter(filter_);
  }
  changed();
}

void LaneModel::set_curves(std::shared_ptr<const std::vector<traces::CounterCurve>> curves,
                           const std::vector<LaneLayout::Group>& groups) {
  if (!trace_) return;
  const std::vector<bool> folded = layout_.state(), pinned = layout_.pins();
  curves_ = std::move(curves);
  layout_.set(trace_.get(), curves_.get(), document_ == Document::kProject, groups);  // counters stand behind all rows
  layout_.restore(folded);
  layout_.restore_pins(pinned);
  changed();
}

void LaneModel::toggle(size_t band) {
  layout_.toggle(band);
  changed();
}

void LaneModel::colour_by(ColourBy by) {
  colour_ = by;
  changed();
}

void LaneModel::set_story(std::shared_ptr<const tracing::TraceStory> story, std::string of) {
  story_ = std::move(story);
  story_of_ = std::move(of);
  changed();
}

void LaneModel::show_path(bool shown) {
  show_path_ = shown;
  changed();
}

void LaneModel::show_gaps(bool shown) {
  show_gaps_ = shown;
  changed();
}

void LaneModel::set_bookmarks(std::vector<Bookmark> bookmarks) {
  bookmarks_ = std::move(bookmarks);
  changed();
}

Bookmark LaneModel::bookmark_here() const {
  Bookmark b;
  if (marked(b.from, b.to)) return b;
  if (selected_span(b.from, b.to)) {
    if (chosen_event_ != kNone) b.note = trace_->event_name(chosen_event_);
    return b;
  }
  b.from = b.to = (axis_.lo + axis_.hi) / 2;
  return b;
}

/// Selects a stretch of time, for every view.
void LaneModel::mark(double from, double to) {
  if (to <= from) return;
  has_range_ = true;
  range_a_ = from, range_b_ = to;
  Selection s = Selection::range(from, to, "timeline");
  s.document = document_;
  select(s);
}

void LaneModel::unmark() {
  has_range_ = false;
  if (document_ != Document::kProject) select(Selection::of_document(document_, "timeline"));
}

bool LaneModel::marked(double& from, double& to) const {
  if (!has_range_ || range_b_ <= range_a_) return false;
  from = range_a_, to = range_b_;
  return true;
}

void LaneModel::follow(const Selection& s) {
  const bool own = trace_ && s.document == document_;
  chosen_event_ = own && s.kind == Selection::Kind::event && s.id >= 0 && s.id < static_cast<int64_t>(trace_->size())
                      ? static_cast<EventId>(s.id)
                      : kNone;
  has_range_ = own && s.kind == Selection::Kind::range;
  if (has_range_) {
    range_a_ = s.from;
    range_b_ = s.to;
  }
  if (chosen_event_ != kNone && s.source != "timeline") {
    axis_.reveal(at(trace_->start(chosen_event_)), at(trace_->end(chosen_event_)));
    layout_.reveal(trace_->lane_of(chosen_event_));
    bring_chosen_ = true;
  }
  // A stretch that another view chose is to be seen, not only to lie somewhere in the picture.
  if (const double length = range_b_ - range_a_; has_range_ && s.source != "timeline" && length > 0)
    if (range_a_ < axis_.lo || range_b_ > axis_.hi || length * 10 < axis_.span())
      axis_.show(range_a_ - length * 0.05, range_b_ + length * 0.05);
  gather_links();
  changed();
}

std::vector<EventId> LaneModel::find(const Filter& f) const {
  const std::string q = lower(f.name);
  std::vector<bool> named(trace_->names());
  for (uint32_t n = 0; n < named.size(); ++n)
    named[n] = lower(std::string(trace_->text(n))).find(q) != std::string::npos;
  std::vector<EventId> found;
  const auto names = trace_->columns().name;
  for (EventId e = 0; e < names.size(); ++e)
    if (named[names[e]]) found.push_back(e);
  return found;
}

void LaneModel::set_filter(const Filter& f) {
  filter_ = f;
  matches_ = trace_ && by_name() ? find(f) : std::vector<EventId>();
  changed();
}

std::pair<EventId, EventId> LaneModel::left_of(uint32_t lane) const {
  const traces::Lane& l = trace_->lanes()[lane];
  if (filter_.row >= 0 && filter_.row != l.row) return {l.begin, l.begin};
  if (!filter_.has_range()) return {l.begin, l.end};
  return trace_->range(lane, origin_ + static_cast<int64_t>(std::floor(filter_.from)),
                       origin_ + static_cast<int64_t>(std::ceil(filter_.to)));
}

bool LaneModel::found_within(uint32_t lane, int64_t from, int64_t to) const {
  auto [first, last] = trace_->range(lane, from, std::max(to, from + 1));
  const auto [begin, end] = left_of(lane);
  first = std::max(first, begin), last = std::min(last, end);
  if (!by_name()) return first < last;
  const auto at = std::lower_bound(matches_.begin(), matches_.end(), first);
  return at != matches_.end() && *at < last;
}

bool LaneModel::leaves(EventId e) const {
  if (!filter_) return true;
  if (by_name() && !std::binary_search(matches_.begin(), matches_.end(), e)) return false;
  const auto [begin, end] = left_of(trace_->lane_of(e));
  return e >= begin && e < end;
}

template <class F>
void LaneModel::each_found(F&& f) const {
  for (uint32_t l = 0; l < trace_->lanes().size(); ++l) {
    const auto [begin, end] = left_of(l);
    if (!by_name()) {
      for (EventId e = begin; e < end; ++e) f(e);
      continue;
    }
    for (auto at = std::lower_bound(matches_.begin(), matches_.end(), begin); at != matches_.end() && *at < end; ++at)
      f(*at);
  }
}

int64_t LaneModel::found() const {
  if (!trace_) return 0;
  if (!filter_) return static_cast<int64_t>(trace_->size());
  int64_t n = 0;
  if (by_name())
    each_found([&](EventId) { ++n; });
  else
    for (uint32_t l = 0; l < trace_->lanes().size(); ++l) n += left_of(l).second - left_of(l).first;
  return n;
}

void LaneModel::select_event(EventId e) {
  Selection s = Selection::event(document_, e, "timeline");
  select(s);
  axis_.reveal(at(trace_->start(e)), at(trace_->end(e)));
  if (const uint32_t lane = trace_->lane_of(e); layout_.band_of(lane) < 0) layout_.reveal(lane);
  bring_chosen_ = true;
}

void LaneModel::next_match(int direction) {
  if (!trace_ || trace_->size() == 0) return;
  const auto& names = trace_->columns().name;
  const bool searching = static_cast<bool>(filter_);
  if (!searching && chosen_event_ == kNone) return;
  // By start, then by number: every event has one place in this order.
  auto before = [&](EventId a, EventId b) {
    return trace_->start(a) != trace_->start(b) ? trace_->start(a) < trace_->start(b) : a < b;
  };
  EventId best = kNone, around = kNone;
  auto look_at = [&](EventId e) {
    const bool ahead = chosen_event_ == kNone || (direction > 0 ? before(chosen_event_, e) : before(e, chosen_event_));
    EventId& into = ahead ? best : around;  // past the end it goes on from the other one
    if (e != chosen_event_ && (into == kNone || (direction > 0 ? before(e, into) : before(into, e)))) into = e;
  };
  if (searching)
    each_found(look_at);
  else
    for (EventId e = 0; e < names.size(); ++e)
      if (names[e] == names[chosen_event_]) look_at(e);
  if (best == kNone) best = around;
  if (best != kNone) select_event(best);
}

void LaneModel::step_aside(int direction) {
  if (!trace_ || trace_->size() == 0) return;
  if (chosen_event_ == kNone) return select_event(0);
  const traces::Lane& lane = trace_->lanes()[trace_->lane_of(chosen_event_)];
  const int64_t to = static_cast<int64_t>(chosen_event_) + direction;
  if (to >= lane.begin && to < lane.end) select_event(static_cast<EventId>(to));
}

/// To what runs at that time in the lane above or below, passing over empty ones.
void LaneModel::next_lane(int direction) {
  const auto& lanes = trace_->lanes();
  const int64_t start = trace_->start(chosen_event_);
  for (int64_t l = static_cast<int64_t>(trace_->lane_of(chosen_event_)) + direction;
       l >= 0 && l < static_cast<int64_t>(lanes.size()); l += direction) {
    EventId best = kNone;
    for (EventId e = lanes[l].begin; e < lanes[l].end && (best == kNone || trace_->start(e) <= start); ++e)
      if (leaves(e)) best = e;
    if (best != kNone) return select_event(best);
  }
}

bool LaneModel::selected_span(double& a, double& b) const {
  if (chosen_event_ == kNone) return false;
  a = at(trace_->start(chosen_event_));
  b = at(trace_->end(chosen_event_));
  return true;
}

void LaneModel::fit() {
  axis_.fit();
  changed();
}

void LaneModel::fit_selection() {
  double a = 0, b = 0;
  if (selected_span(a, b) && b > a)
    axis_.show(a - (b - a) * 0.1, b + (b - a) * 0.1);
  else
    axis_.fit();
  changed();
}

void LaneModel::click(Hit hit) {
  if (hit.kind == event) select(Selection::event(document_, hit.id, "timeline"));
  if (hit.kind == bookmark && hit.id < static_cast<int64_t>(bookmarks_.size())) {
    const Bookmark& b = bookmarks_[static_cast<size_t>(hit.id)];
    mark(b.from, std::max(b.to, b.from + 1));
  }
  if (hit.kind == fold) toggle(static_cast<size_t>(hit.id));
  if (hit.kind == pin) toggle_pin(static_cast<size_t>(hit.id));
  if (hit.kind == piece && story_ && hit.id < static_cast<int64_t>(story_->path.size())) {
    const tracing::PathPiece& p = story_->path[static_cast<size_t>(hit.id)];
    if (p.event != kNone)
      select_event(p.event);
    else
      mark(at(p.from), at(p.to));
  }
  if (hit.kind == gap && story_ && hit.id < static_cast<int64_t>(story_->gaps.size())) {
    const tracing::Gap& g = story_->gaps[static_cast<size_t>(hit.id)];
    mark(at(g.from), at(g.to));
  }
}

bool LaneModel::pointer(const PointerEvent& e) {
  if (!trace_) return false;
  switch (e.type) {
    case PointerEvent::Type::press:
      if (e.button != Button::left) return false;
      looking_ = document_ != Document::kProject && overview_box_.contains(e.x, e.y);
      if (looking_) {
        look_at(e.x);
        return true;
      }
      dragging_ = true;
      moved_ = false;
      selecting_ = e.mods.shift;
      pull_.begin(axis_, e.x);
      press_y_ = e.y;
      drag_scroll_ = scroll_;
      return false;
    case PointerEvent::Type::move:
      if (looking_) {
        look_at(e.x);
        return true;
      }
      if (!dragging_ || e.button != Button::left) return false;
      if (std::fabs(e.x - pull_.x) + std::fabs(e.y - press_y_) > 4) moved_ = true;
      if (!moved_) return false;
      if (selecting_) {
        has_range_ = true;
        range_a_ = std::clamp(axis_.to_value(std::min(pull_.x, e.x)), axis_.lo, axis_.hi);
        range_b_ = std::clamp(axis_.to_value(std::max(pull_.x, e.x)), axis_.lo, axis_.hi);
      } else {
        pull_.to(axis_, e.x);
        scroll_ = drag_scroll_ + press_y_ - e.y;
      }
      return true;
    case PointerEvent::Type::release: {
      if (std::exchange(looking_, false)) return true;
      if (!dragging_ || e.button != Button::left) return false;
      dragging_ = false;
      if (moved_) {
        if (selecting_ && range_b_ > range_a_) mark(range_a_, range_b_);
        return true;
      }
      click(last_.hit_at(e.x, e.y));
      return true;
    }
    case PointerEvent::Type::double_click: {
      const int kind = last_.hit_at(e.x, e.y).kind;
      if (kind == op || kind == module || kind == event)
        fit_selection();
      else if (kind != fold && kind != overview)
        axis_.fit();
      return true;
    }
    case PointerEvent::Type::leave:
      return false;
  }
  return false;
}

bool LaneModel::wheel(const WheelEvent& e) {
  if (!trace_) return false;
  // Over the names of the lanes the wheel scrolls them; so it does anywhere with Ctrl held.
  if ((e.x < axis_.x || e.mods.ctrl) && content_height_ > view_height_) {
    scroll_ -= e.dy * 40;
    return true;
  }
  return axis_.wheel(e);
}

bool LaneModel::key(const KeyEvent& e) {
  if (!trace_) return false;
  double a = 0, b = 0;
  if (e.key == "F" && axis_.fitted() && selected_span(a, b)) {
    fit_selection();
    return true;
  }
  if (axis_.key(e)) return true;
  if (e.key == "N")
    next_match(e.mods.shift ? -1 : 1);
  else if (e.key == "M" && selected_span(a, b))
    mark(a, b);
  else if (e.key == "Esc" && has_range_)
    unmark();
  else if (e.key == "C" && e.mods.shift)
    layout_.fold_all(layout_.any_unfolded());
  else if (e.key == "C" && chosen_event_ != kNone)
    fold_chosen();
  else if (e.key == "P" && chosen_band() >= 0)
    toggle_pin(static_cast<size_t>(chosen_band()));
  else if ((e.key == "Up" || e.key == "Down") && chosen_event_ != kNone)
    next_lane(e.key == "Down" ? 1 : -1);
  else if ((e.key == "PgUp" || e.key == "PgDown") && content_height_ > view_height_)
    scroll_ += (e.key == "PgDown" ? 0.8f : -0.8f) * view_height_;
  else if ((e.key == "Up" || e.key == "Down") && content_height_ > view_height_)
    scroll_ += e.key == "Down" ? 40.f : -40.f;
  else if (e.key == "Up" || e.key == "Down")
    step_aside(e.key == "Down" ? 1 : -1);
  else if (e.key == "Return" || e.key == "Enter")
    fit_selection();
  else if (e.key == "Right" || e.key == "Left")
    step_aside(e.key == "Right" ? 1 : -1);
  else
    return false;
  return true;
}

/// The thread of the selected event to its outermost calls, and back.
void LaneModel::fold_chosen() {
  const int band = layout_.band_of(trace_->lane_of(chosen_event_));
  if (band >= 0) layout_.toggle(static_cast<size_t>(band));
}

std::string LaneModel::summary() const {
  if (!trace_) return tr("Timeline: nothing is loaded");
  std::string pinned;
  for (const LaneLayout::Band& b : layout_.bands())
    if (b.pinned) pinned += (pinned.empty() ? tr("; pinned: ") : ", ") + b.full_title;
  return tr("Timeline of a trace: {} events on {} threads and streams, {}{}{}",
            format_grouped(static_cast<int64_t>(trace_->size())), layout_.rows(),
            format_ns(axis_.full_hi - axis_.full_lo), pinned, chosen_words());
}

std::string LaneModel::chosen_words() const {
  if (!trace_ || chosen_event_ == kNone) return {};
  return tr("; chosen: {}, {}, starts at {}", trace_->event_name(chosen_event_),
            format_ns(static_cast<double>(trace_->duration(chosen_event_))),
            format_ns(at(trace_->start(chosen_event_))));
}

std::string LaneModel::tip(EventId e) const {
  const std::string times =
      tr("{}, starts at {}", format_ns(static_cast<double>(trace_->duration(e))), format_ns(at(trace_->start(e))));
  std::string text = fmt::format("{}\n{}\n{}", trace_->event_name(e), times, trace_->category(e).name);
  if (colour_ == ColourBy::module && module_of(e) != kNone) text += fmt::format("\n{}", trace_->text(module_of(e)));
  return text;
}

LaneNames LaneModel::names_asked() const {
  LaneNames n;
  n.trace = trace_;
  if (!trace_) return n;
  for (uint32_t l = 0; l < trace_->lanes().size(); ++l) n.lanes.push_back(left_of(l));
  n.by_match = by_name();
  if (n.by_match) n.matches = matches_;
  n.origin = origin_;
  n.marked = marked(n.from, n.to);
  return n;
}

Table LaneModel::names_table(const std::vector<NameSum>& sums) const {
  Table t;
  t.columns = {{tr("Name")},        {tr("Kind")},       {tr("Calls"), true},
               {tr("Total"), true}, {tr("Mean"), true}, {tr("Longest"), true}};
  for (const NameSum& s : sums) {
    Table::Row row;
    row.selection = Selection::event(document_, s.longest, "timeline table");
    const double longest = static_cast<double>(trace_->duration(s.longest)), mean = s.ns / static_cast<double>(s.calls);
    row.cells = {{std::string(trace_->text(s.name)), 0, {}, look(s.longest).ink},
                 {trace_->category(s.longest).name, 0, {}, Ink::none},
                 Table::Cell::number(static_cast<double>(s.calls), format_grouped(s.calls)),
                 Table::Cell::number(s.ns, format_ns(s.ns)),
                 Table::Cell::number(mean, format_ns(mean)),
                 Table::Cell::number(longest, format_ns(longest))};
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace tenon::views
