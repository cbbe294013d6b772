// The picture of lanes; their state and intents are in lane_model.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"
#include "views/timeline/lane_model.h"

namespace tenon::views {

using traces::EventId;
using traces::kNone;

namespace {
constexpr float kHeader = 24, kLaneGap = 8;
}

float LaneModel::lanes_height() const {
  float h = 0;
  for (const Group& g : groups_) h += static_cast<float>(std::max(1u, g.depths)) * row_ + kLaneGap;
  return h;
}

LaneModel::Look LaneModel::look(EventId e) const {
  return {ink_of(trace_->kind(e)), false, {event, static_cast<int64_t>(e)}};
}

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
  const std::string about = count > 1 ? fmt::format("{} {}, the longest of them:\n", count, called()) : std::string();
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

std::map<uint32_t, Box> LaneModel::draw_lanes(Scene& scene, float top, float bottom) {
  view_height_ = bottom - top;
  content_height_ = lanes_height();
  scroll_ = std::clamp(scroll_, 0.f, std::max(0.f, content_height_ - view_height_));
  float y = top - scroll_;
  std::map<uint32_t, Box> rows;
  for (const Group& g : groups_) {
    const float height = static_cast<float>(std::max(1u, g.depths)) * row_;
    if (y + height > top && y < bottom) {
      scene.text({8, y, gutter_ - 12, row_}, g.title, Ink::secondary, Face::small);
      scene.target({0, y, gutter_, height}, {lane, 0}, Cursor::arrow, g.tip);
      for (uint32_t d = 0; d < g.depths; ++d)
        if (const float at = y + static_cast<float>(d) * row_; at + row_ > top && at < bottom)
          draw_row(scene, g.first + d, rows[g.first + d] = {gutter_, at, axis_.w, row_});
      scene.line({8, y + height + kLaneGap / 2}, {scene.size().w - 12, y + height + kLaneGap / 2}, Ink::line, 1, 0.6f);
    }
    y += height + kLaneGap;
  }
  return rows;
}

void LaneModel::outline_chosen(Scene& scene, const std::map<uint32_t, Box>& rows) const {
  if (chosen_event_ == kNone) return;
  const auto row = rows.find(trace_->lane_of(chosen_event_));
  if (row == rows.end()) return;
  const float a = axis_.to_px(at(trace_->start(chosen_event_))), b = axis_.to_px(at(trace_->end(chosen_event_)));
  if (b < row->second.x || a > row->second.right()) return;
  const float left = std::max(a, row->second.x), right = std::min(b, row->second.right());
  scene.outline({left - 1, row->second.y, std::max(right - left, 1.f) + 2, row->second.h}, Ink::text, 2, 2);
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
  draw_time_axis(scene, axis_, {gutter_, 0, axis_.w, kHeader}, size.h - 4);
  const float top = kHeader + 6, bottom = size.h - 8;
  scene.clip({0, top, size.w, std::max(bottom - top, 0.f)});
  outline_chosen(scene, draw_lanes(scene, top, bottom));
  scene.unclip();
  draw_range(scene, kHeader, size.h - 4);
}

}  // namespace tenon::views
