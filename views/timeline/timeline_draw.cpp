// The picture of the timeline; its state and intents are in timeline_model.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"
#include "views/shared/meaning.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {

using tracing::OpRecord;

namespace {
constexpr float kGutter = 92, kHeader = 24, kStrip = 20, kMemory = 56, kLaneGap = 8;
}

float TimelineModel::lanes_height() const {
  float h = 0;
  for (const Lane& lane : lanes_) h += static_cast<float>(std::max(1u, lane.depths)) * row_ + kLaneGap;
  return h;
}

void TimelineModel::draw_spans(Scene& scene, const std::vector<Span>& spans, Box row, bool modules) {
  float last = -1;
  for (const Span& s : spans) {
    float a = std::max(axis_.to_px(s.a), row.x), b = std::min(axis_.to_px(s.b), row.right());
    if (b < row.x || a > row.right() || b < last) continue;
    b = std::max(b, a + 1);
    last = b;
    Box box{a, row.y + 1, std::max(b - a - 1, 1.f), row.h - 2};
    if (modules) {
      bool chosen = selection_.kind == Selection::Kind::module && in_module(s.text, selection_.name);
      scene.rect(box, Ink::raised, 1, box.w > 6 ? 3 : 0);
      scene.rect({box.x, box.bottom() - 2, box.w, 2}, s.ink);
      if (chosen) scene.outline(box, Ink::accent, 1.5f, 3);
      // The whole path, else its last part, else nothing: a few letters from both ends of a path say little.
      std::string text = s.text;
      bool telling = text.size() - text.find_last_of('.') > 3;
      if (telling && text_width(text, Face::small) > box.w - 8 && text.find('.') != std::string::npos)
        text = "…" + text.substr(text.find_last_of('.') + 1);
      if (text_width(text, Face::small) <= box.w - 6)
        scene.text({box.x + 4, box.y, box.w - 5, box.h - 2}, text, Ink::text, Face::small);
      scene.target(box, {module, s.module}, Cursor::hand, s.text + "\n" + word(s.phase) + " " + format_ns(s.b - s.a));
    } else {
      scene.rect(box, s.ink, 0.9f, box.w > 6 ? 3 : 0);
      std::string text = box.w > 150 ? s.text + "  " + format_ns(s.b - s.a) : s.text;
      if (box.w > 28) scene.text({box.x + 5, box.y, box.w - 8, box.h}, text, on_fill(s.ink), Face::small);
      scene.target(box, {lane, 0}, Cursor::arrow, s.text + "\n" + format_ns(s.b - s.a));
    }
  }
}

void TimelineModel::draw_row(Scene& scene, uint32_t lane_id, Box row) {
  const traces::Trace& t = store();
  auto px = [&](int64_t time) { return axis_.to_px(static_cast<double>(time)); };
  // Neighbours below two pixels become one run that keeps the longest one's name and colour and says how many it holds.
  struct Run {
    float a = 0, b = -1;
    traces::EventId longest = traces::kNone;
    uint32_t count = 0;
  } run;
  auto flush = [&] {
    if (run.count == 0) return;
    const OpRecord* of = op_of(run.longest);
    const Phase phase = links_.record()->timeline.op(run.longest).phase;
    Box box{run.a, row.y + 1, std::max(run.b - run.a, 1.f), row.h - 2};
    float dim = !match_.empty() && !(of && match_[of->seq]) ? 0.25f : 1;
    bool bad = of && bad_[of->seq];
    Ink ink = bad ? Ink::bad : ink_of(phase);
    scene.rect(box, ink, dim, box.w > 8 ? 2 : 0);
    if (bad) scene.hatch(box, Ink::dark_on_fill, 0.5f);
    if (run.count > 1) merged_ += static_cast<int>(run.count);
    if (run.count == 1 && box.w > 18) {
      std::string text(t.event_name(run.longest));
      if (box.w > 130) text += "  " + format_ns(static_cast<double>(t.duration(run.longest)));
      if (text_width(text, Face::small) * 0.7f < box.w - 6)
        scene.text({box.x + 4, box.y, box.w - 6, box.h}, text, on_fill(ink), Face::small);
    }
    std::string about = run.count > 1 ? fmt::format("{} ops, the longest of them:\n", run.count) : std::string();
    scene.target(box, {of ? op : lane, of ? of->seq : 0}, of ? Cursor::hand : Cursor::arrow, about + tip(run.longest));
    run.count = 0;
  };
  auto add = [&](int64_t start, int64_t end, traces::EventId longest, uint32_t count) {
    const float a = std::max(px(start), row.x), b = std::min(px(end), row.right());
    if (run.count && b - a < 2 && run.b - run.a < 3 && a - run.b < 1) {
      run.b = std::max(run.b, std::max(b, a + 1));
      run.count += count;
      if (t.duration(longest) > t.duration(run.longest)) run.longest = longest;
      return;
    }
    flush();
    run = {a, std::max(b - (b - a > 4 ? 1.f : 0.f), a + 1), longest, count};
  };
  const auto from = static_cast<int64_t>(std::floor(axis_.lo)), to = static_cast<int64_t>(std::ceil(axis_.hi)) + 1;
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

/// Boxes of the ops that are chosen, and of those that arrows of the selected one go to; `rows` by lane of the store.
void TimelineModel::place_chosen(const std::map<uint32_t, Box>& rows) {
  auto place = [&](uint32_t seq) {
    if (seq == 0 || seq >= event_of_.size() || event_of_[seq] == traces::kNone) return;
    const traces::EventId e = event_of_[seq];
    auto row = rows.find(store().lane_of(e));
    if (row == rows.end()) return;
    const float a = axis_.to_px(static_cast<double>(store().start(e))),
                b = axis_.to_px(static_cast<double>(store().end(e)));
    if (b < row->second.x || a > row->second.right()) return;
    const float left = std::max(a, row->second.x), right = std::min(b - (b - a > 4 ? 1.f : 0.f), row->second.right());
    placed_[seq] = {left, row->second.y + 1, std::max(right - left, 1.f), row->second.h - 2};
  };
  for (uint32_t seq = 1; seq < chosen_.size(); ++seq)
    if (chosen_[seq]) place(seq);
  if (!selected_) return;
  place(selected_);
  place(links_.record()->ops[selected_ - 1].forward_seq);
  for (uint32_t seq : links_.backward_of(selected_)) place(seq);
}

void TimelineModel::draw_memory(Scene& scene, Box row) {
  const auto& r = *links_.record();
  double live = 0, peak = 1;
  for (const auto& a : r.allocs) {
    live += static_cast<double>(a.bytes);
    peak = std::max(peak, live);
  }
  if (r.allocs.empty()) return;
  scene.text({row.x - kGutter + 8, row.y, kGutter - 12, 18}, "live memory", Ink::secondary, Face::small);
  scene.text({row.x - kGutter + 8, row.y + 18, kGutter - 12, 18}, format_bytes(peak), Ink::secondary, Face::mono_small);
  auto y = [&](double v) { return row.bottom() - 2 - static_cast<float>(v / peak) * (row.h - 8); };
  scene.line({row.x, row.bottom() - 1}, {row.right(), row.bottom() - 1}, Ink::line);
  live = 0;
  size_t i = 0;
  int columns = static_cast<int>(axis_.w);
  float run_x = row.x;
  double run_v = -1;
  for (int c = 0; c <= columns; ++c) {
    double until = axis_.lo + (c + 1) * axis_.per_pixel(), most = live;
    while (i < r.allocs.size() && static_cast<double>(r.allocs[i].time_ns) < until) {
      live += static_cast<double>(r.allocs[i].bytes);
      most = std::max(most, live);
      ++i;
    }
    float px = row.x + static_cast<float>(c);
    if (most != run_v || c == columns) {
      if (run_v > 0 && px > run_x)
        scene.rect({run_x, y(run_v), px - run_x, row.bottom() - 1 - y(run_v)}, Ink::accent, 0.35f);
      run_x = px;
      run_v = most;
    }
  }
  scene.target({row.x, row.y, row.w, row.h}, {memory, 0}, Cursor::arrow,
               "Live memory of tensors, peak " + format_bytes(peak));
}

void TimelineModel::draw_arrows(Scene& scene) {
  if (!selected_) return;
  const OpRecord& op = links_.record()->ops[selected_ - 1];
  auto arrow = [&](uint32_t from, uint32_t to) {
    auto a = placed_.find(from), b = placed_.find(to);
    if (a == placed_.end() || b == placed_.end()) return;
    Point p{a->second.x + a->second.w / 2, a->second.bottom() + 1},
        q{b->second.x + b->second.w / 2, b->second.bottom() + 1};
    float sag = std::min(36.f, 12 + std::fabs(q.x - p.x) * 0.06f);
    std::vector<Point> points;
    for (int i = 0; i <= 24; ++i) {
      float t = static_cast<float>(i) / 24;
      points.push_back({p.x + (q.x - p.x) * t, p.y + (q.y - p.y) * t + 4 * sag * t * (1 - t)});
    }
    scene.polyline(points, Ink::accent, 1.5f);
    scene.polygon({{q.x, q.y}, {q.x + 4, q.y + 8}, {q.x - 4, q.y + 8}}, Ink::accent);
  };
  for (uint32_t b : links_.backward_of(selected_)) arrow(selected_, b);
  if (op.forward_seq) arrow(op.forward_seq, selected_);
}

void TimelineModel::draw_range(Scene& scene, float top, float bottom) {
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

void TimelineModel::draw(Scene& scene) {
  merged_ = 0;
  placed_.clear();
  if (!links_) return;
  Size size = scene.size();
  axis_.x = kGutter;
  axis_.w = std::max(size.w - kGutter - 12, 50.f);
  float memory_h = links_.record()->allocs.empty() ? 0 : kMemory;
  float top = kHeader + 4, strips = (has_spans() ? 1 : 2) * (kStrip + 2) + 6, lanes_top = top + strips,
        lanes_bottom = size.h - memory_h - 8;
  // Room that the lanes do not need makes them taller, then goes to the memory below.
  row_ = 22;
  if (lanes_height() * 1.5f < lanes_bottom - lanes_top) row_ = 32;
  float spare = lanes_bottom - lanes_top - lanes_height() - 28;
  if (memory_h > 0 && spare > 0) {
    memory_h += spare;
    lanes_bottom -= spare;
  }
  view_height_ = lanes_bottom - lanes_top;
  content_height_ = lanes_height();
  scroll_ = std::clamp(scroll_, 0.f, std::max(0.f, content_height_ - view_height_));
  draw_time_axis(scene, axis_, {kGutter, 0, axis_.w, kHeader}, size.h - 4);

  auto label = [&](float y, const std::string& text, float h) {
    scene.text({8, y, kGutter - 12, h}, text, Ink::secondary, Face::small);
  };
  float strip = top;
  for (bool modules : {false, true}) {
    if (!modules && has_spans()) continue;  // they are in the lane already
    label(strip, modules ? "module" : "phase", kStrip);
    scene.clip({kGutter, 0, axis_.w, size.h});
    draw_spans(scene, modules ? modules_ : phases_, {kGutter, strip, axis_.w, kStrip}, modules);
    scene.unclip();
    strip += kStrip + 2;
  }

  scene.clip({0, lanes_top, size.w, std::max(lanes_bottom - lanes_top, 0.f)});
  float y = lanes_top - scroll_;
  std::map<uint32_t, Box> rows;
  for (const Lane& lane : lanes_) {
    label(y, lane.title, row_);
    for (uint32_t l = lane.first; l < lane.first + lane.depths; ++l) {
      if (y + row_ > lanes_top && y < lanes_bottom) draw_row(scene, l, rows[l] = {kGutter, y, axis_.w, row_});
      y += row_;
    }
    if (lane.depths == 0) y += row_;
    scene.line({8, y + kLaneGap / 2}, {size.w - 12, y + kLaneGap / 2}, Ink::line, 1, 0.6f);
    y += kLaneGap;
  }
  place_chosen(rows);
  int marked = 0;
  for (auto& [seq, box] : placed_) {
    if (!chosen_[seq] || ++marked > 400) continue;
    scene.outline({box.x - 1, box.y - 1, box.w + 2, box.h + 2}, Ink::text, seq == selected_ ? 2.f : 1.f, 2);
  }
  draw_arrows(scene);
  scene.unclip();
  if (memory_h > 0) draw_memory(scene, {kGutter, size.h - memory_h - 4, axis_.w, memory_h});
  draw_range(scene, kHeader, size.h - 4);
}

}  // namespace tenon::views
