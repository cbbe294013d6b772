// The picture of lanes; their state and intents are in lane_model.cpp.
#include <algorithm>
#include <cmath>
#include <utility>

#include "tracing/analyses/trace_story.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"
#include "views/timeline/lane_model.h"

namespace tenon::views {

using traces::EventId;
using traces::kNone;

namespace {
constexpr float kHeader = 24;
}

float LaneModel::lanes_height() const { return layout_.height(row_); }

LaneModel::Look LaneModel::look(EventId e) const { return {colour_of(e), false, {event, static_cast<int64_t>(e)}}; }

void LaneModel::draw_run(Scene& scene, Box box, EventId longest, uint32_t count, bool found) {
  const Look of = look(longest);
  const Ink ink = of.bad ? Ink::bad : of.ink;
  scene.rect(box, ink, found ? 1 : 0.25f, box.w > 8 ? 2 : 0);
  if (of.bad) scene.hatch(box, Ink::dark_on_fill, 0.5f);
  if (count > 1) merged_ += static_cast<int>(count);
  if (count == 1 && box.w > 18) {
    std::string text(trace_->event_name(longest));
    if (box.w > 130) text += "  " + format_ns(static_cast<double>(trace_->duration(longest)));
    if (text_width(text, Face::small) * 0.7f < box.w - 6)
      scene.text({box.x + 4, box.y, box.w - 6, box.h}, text, on_fill(ink), Face::small);
  }
  const std::string about = count > 1 ? tr("{} {}, the longest of them:", count, tr(called())) + "\n" : std::string();
  scene.target(box, of.hit, of.hit.kind == lane ? Cursor::arrow : Cursor::hand, about + tip(longest));
}

void LaneModel::draw_row(Scene& scene, uint32_t lane_id, Box row) {
  const traces::Trace& t = *trace_;
  auto px = [&](int64_t time) { return axis_.to_px(at(time)); };
  // Neighbours below two pixels become one run that keeps the longest one's name and colour and says how many it holds.
  struct Run {
    float a = 0, b = -1;
    int64_t start = 0, end = 0;
    EventId longest = kNone;
    uint32_t count = 0;
  } run;
  auto flush = [&] {
    if (run.count == 0) return;
    const bool found = !filter_ || found_within(lane_id, run.start, run.end);
    draw_run(scene, {run.a, row.y + 1, std::max(run.b - run.a, 1.f), row.h - 2}, run.longest, run.count, found);
    run.count = 0;
  };
  auto add = [&](int64_t start, int64_t end, EventId longest, uint32_t count) {
    const float a = std::max(px(start), row.x), b = std::min(px(end), row.right());
    if (run.count && b - a < 2 && run.b - run.a < 3 && a - run.b < 1) {
      run.b = std::max(run.b, std::max(b, a + 1));
      run.end = std::max(run.end, end);
      run.count += count;
      if (t.duration(longest) > t.duration(run.longest)) run.longest = longest;
      return;
    }
    flush();
    run = {a, std::max(b - (b - a > 4 ? 1.f : 0.f), a + 1), start, end, longest, count};
  };
  const int64_t from = origin_ + static_cast<int64_t>(std::floor(axis_.lo)),
                to = origin_ + static_cast<int64_t>(std::ceil(axis_.hi)) + 1;
  for (const traces::Summary& s : t.summarise(lane_id, from, to, static_cast<size_t>(axis_.w) * 2)) {
    const bool hides_a_wide_one = s.count > 1 && px(t.end(s.longest)) - px(t.start(s.longest)) >= 2;
    if (!hides_a_wide_one) {
      add(s.start, s.end, s.longest, s.count);
      continue;
    }
    // The others of its summary are too narrow to be seen beside it.
    if (s.start < t.start(s.longest))
      add(s.start, t.start(s.longest), s.longest - 1, s.count - 1);
    else
      merged_ += static_cast<int>(s.count) - 1;
    add(t.start(s.longest), t.end(s.longest), s.longest, 1);
  }
  flush();
}

/// Where everything stands: what is pinned at the top, as long as it leaves room for the rest, which scrolls.
void LaneModel::place_bands(float top, float bottom) {
  constexpr float kPinnedShare = 0.6f;
  placed_bands_ = layout_.place_pinned(top, row_, (bottom - top) * kPinnedShare);
  stuck_ = placed_bands_.size();
  rest_top_ = stuck_ ? placed_bands_.back().y + placed_bands_.back().h + LaneLayout::kGap : top;
  view_height_ = bottom - rest_top_;
  content_height_ = layout_.height(row_, stuck_);
  if (std::exchange(bring_chosen_, false) && chosen_event_ != kNone) {
    const int band = layout_.band_of(trace_->lane_of(chosen_event_));
    for (const LaneLayout::Placed& at : layout_.place(0, row_, stuck_))
      if (band >= 0 && at.band == static_cast<size_t>(band) &&
          (at.y < scroll_ || at.y + std::min(at.h, view_height_) > scroll_ + view_height_))
        scroll_ = at.y + std::min(at.h, view_height_) / 2 - view_height_ / 2;
  }
  scroll_ = std::clamp(scroll_, 0.f, std::max(0.f, content_height_ - view_height_));
  const auto rest = layout_.place(rest_top_ - scroll_, row_, stuck_);
  placed_bands_.insert(placed_bands_.end(), rest.begin(), rest.end());
}

void LaneModel::draw_band(Scene& scene, const LaneLayout::Placed& at, float top, float bottom,
                          std::map<uint32_t, Box>& rows) {
  if (at.y + at.h <= top || at.y >= bottom) return;
  const LaneLayout::Band& b = layout_.bands()[at.band];
  draw_label(scene, at);
  if (b.kind == LaneLayout::Band::Kind::heading) return;
  if (b.kind == LaneLayout::Band::Kind::counter) draw_counter(scene, b, {gutter_, at.y, axis_.w, at.h});
  if (b.kind == LaneLayout::Band::Kind::row && b.depths > 0)
    for (uint32_t d = 0; d < b.shown_depths(); ++d)
      if (const float y = at.y + static_cast<float>(d) * row_; y + row_ > top && y < bottom)
        draw_row(scene, b.first + d, rows[b.first + d] = {gutter_, y, axis_.w, row_});
  const float below = at.y + at.h + LaneLayout::kGap / 2;
  scene.line({8, below}, {scene.size().w - 12, below}, Ink::line, 1, 0.6f);
}

std::map<uint32_t, Box> LaneModel::draw_lanes(Scene& scene, float top, float bottom) {
  place_bands(top, bottom);
  std::map<uint32_t, Box> rows;
  const float width = scene.size().w;
  scene.clip({0, rest_top_, width, std::max(bottom - rest_top_, 0.f)});
  for (size_t i = stuck_; i < placed_bands_.size(); ++i) draw_band(scene, placed_bands_[i], rest_top_, bottom, rows);
  scene.unclip();
  if (stuck_ == 0) return rows;
  scene.target({0, top, width, rest_top_ - top}, {lane, 0}, Cursor::arrow);  // what lies behind is not to be hit
  for (size_t i = 0; i < stuck_; ++i) draw_band(scene, placed_bands_[i], top, rest_top_, rows);
  const float edge = rest_top_ - LaneLayout::kGap / 2;
  scene.line({0, edge}, {width, edge}, Ink::secondary, 1.5f, 0.8f);
  return rows;
}

/// The name of a band, with a triangle where it folds, to the right while it is folded, down else, and with a pin where
/// it is pinned.
void LaneModel::draw_label(Scene& scene, const LaneLayout::Placed& at) {
  const LaneLayout::Band& b = layout_.bands()[at.band];
  const bool heading = b.kind == LaneLayout::Band::Kind::heading;
  const float h = heading ? at.h : row_, indent = b.under >= 0 && !b.pinned ? 6.f : 0.f, x = 8 + indent;
  if (heading) scene.rect({0, at.y, scene.size().w, at.h}, Ink::raised, 0.6f);
  if (b.folds()) {
    const float cx = x + 4, cy = at.y + h / 2;
    if (b.folded)
      scene.polygon({{cx - 2, cy - 4}, {cx + 3, cy}, {cx - 2, cy + 4}}, Ink::secondary);
    else
      scene.polygon({{cx - 4, cy - 2}, {cx + 4, cy - 2}, {cx, cy + 3}}, Ink::secondary);
  }
  constexpr float kPin = 14;
  const float left = x + (b.folds() ? 12 : 0),
              right = heading ? scene.size().w - 12 : gutter_ - 4 - (b.pinned ? kPin : 0.f);
  scene.text({left, at.y, right - left, h}, b.pinned ? b.full_title : b.title, heading ? Ink::text : Ink::secondary,
             Face::small);
  const Hit hit = b.folds() ? Hit{fold, static_cast<int64_t>(at.band)} : Hit{lane, 0};
  scene.target({0, at.y, heading ? scene.size().w : gutter_, at.h}, hit, b.folds() ? Cursor::hand : Cursor::arrow,
               b.folds() ? b.tip + "\n" + (b.folded ? tr("A click unfolds it.") : tr("A click folds it.")) : b.tip);
  if (!b.pinned) return;
  const float px = gutter_ - 4 - kPin / 2, py = at.y + h / 2;
  scene.polygon({{px - 4, py - 6}, {px + 4, py - 6}, {px + 2.5f, py}, {px - 2.5f, py}}, Ink::accent);
  scene.rect({px - 5, py, 10, 1.5f}, Ink::accent);
  scene.line({px, py + 1}, {px, py + 7}, Ink::accent, 1.5f);
  scene.target({px - kPin / 2, at.y, kPin, h}, {pin, static_cast<int64_t>(at.band)}, Cursor::hand,
               tr("Stays at the top while the rest scrolls.\nA click puts it back to its place."));
}

void LaneModel::outline_chosen(Scene& scene) const {
  Box row;
  if (chosen_event_ == kNone || !box_of(trace_->lane_of(chosen_event_), row)) return;
  if (behind_pins(trace_->lane_of(chosen_event_), row)) return;
  const float a = axis_.to_px(at(trace_->start(chosen_event_))), b = axis_.to_px(at(trace_->end(chosen_event_)));
  if (b < row.x || a > row.right()) return;
  const float left = std::max(a, row.x), right = std::min(b, row.right());
  scene.outline({left - 1, row.y, std::max(right - left, 1.f) + 2, row.h}, Ink::text, 2, 2);
}

void LaneModel::draw_range(Scene& scene, float top, float bottom) {
  if (!has_range_) return;
  float a = std::clamp(axis_.to_px(range_a_), axis_.x, axis_.x + axis_.w),
        b = std::clamp(axis_.to_px(range_b_), axis_.x, axis_.x + axis_.w);
  scene.rect({a, top, b - a, bottom - top}, Ink::accent, 0.12f);
  scene.line({a, top}, {a, bottom}, Ink::accent);
  scene.line({b, top}, {b, bottom}, Ink::accent);
  std::string text = format_ns(range_b_ - range_a_);
  float w = text_width(text, Face::mono_small) + 12;
  float x = std::clamp((a + b - w) / 2, axis_.x, std::max(axis_.x, axis_.x + axis_.w - w));  // a narrow axis is no room
  scene.rect({x, bottom - 22, w, 18}, Ink::accent, 1, 3);
  scene.text({x, bottom - 22, w, 18}, text, Ink::on_accent, Face::mono_small, Align::center);
}

void LaneModel::draw(Scene& scene) {
  merged_ = 0;
  if (!trace_) return;
  const Size size = scene.size();
  gutter_ = std::clamp(size.w * 0.16f, 92.f, 190.f);
  row_ = 20;
  axis_.x = gutter_;
  axis_.w = std::max(size.w - gutter_ - 12, 50.f);
  // From the top: the whole trace, the axis, what explains the time, the lanes. A low canvas keeps the lanes.
  constexpr float kOverview = 22, kStrip = 20, kLow = 200;
  float y = 0;
  overview_box_ = {};
  if (size.h >= kLow) {
    draw_overview(scene, {gutter_, 2, axis_.w, kOverview - 4});
    y += kOverview;
  }
  draw_time_axis(scene, axis_, {gutter_, y, axis_.w, kHeader}, size.h - 4);
  draw_bookmarks(scene, {gutter_, y, axis_.w, kHeader}, size.h - 4);
  const float header = y + kHeader;
  y = header + 4;
  if (story_ && show_path_) {
    draw_path_strip(scene, {gutter_, y, axis_.w, kStrip});
    y += kStrip + 2;
  }
  if (story_ && show_gaps_ && story_->gpu) {
    draw_gap_strip(scene, {gutter_, y, axis_.w, kStrip});
    y += kStrip + 2;
  }
  const float top = y + 2, bottom = size.h - 8;
  scene.clip({0, top, size.w, std::max(bottom - top, 0.f)});
  draw_lanes(scene, top, bottom);
  if (story_ && show_path_) draw_path(scene);
  outline_chosen(scene);
  draw_links(scene);
  scene.unclip();
  draw_range(scene, header, size.h - 4);
}

}  // namespace tenon::views
