// The picture of the timeline; its state and intents are in timeline_model.cpp.
#include <algorithm>
#include <cmath>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {

using tracing::OpRecord;

namespace {
constexpr float kGutter = 92, kTimeHeader = 24, kStrip = 20, kMemory = 56;
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

/// Boxes of the ops that are chosen, and of those that arrows of the selected one go to; `rows` by lane of the store.
void TimelineModel::place_chosen(const std::map<uint32_t, Box>& rows) {
  auto place = [&](uint32_t seq) {
    if (seq == 0 || seq >= event_of_.size() || event_of_[seq] == traces::kNone) return;
    const traces::EventId e = event_of_[seq];
    auto row = rows.find(trace_->lane_of(e));
    if (row == rows.end()) return;
    const float a = axis_.to_px(static_cast<double>(trace_->start(e))),
                b = axis_.to_px(static_cast<double>(trace_->end(e)));
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
  scene.text({row.x - kGutter + 8, row.y, kGutter - 12, 18}, tr("live memory"), Ink::secondary, Face::small);
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
               tr("Live memory of tensors, peak {}", format_bytes(peak)));
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

void TimelineModel::draw(Scene& scene) {
  placed_.clear();
  if (!links_) return LaneModel::draw(scene);
  merged_ = 0;
  Size size = scene.size();
  gutter_ = axis_.x = kGutter;
  axis_.w = std::max(size.w - kGutter - 12, 50.f);
  float memory_h = links_.record()->allocs.empty() ? 0 : kMemory;
  float top = kTimeHeader + 4, strips = (has_spans() ? 1 : 2) * (kStrip + 2) + 6, lanes_top = top + strips;
  constexpr float kFewLanes = 52;  // a low canvas shows what ran, and the memory where there is room for it
  if (size.h - memory_h - 8 - lanes_top < kFewLanes) memory_h = 0;
  float lanes_bottom = size.h - memory_h - 8;
  // Room that the lanes do not need makes them taller, then goes to the memory below.
  row_ = 22;
  if (lanes_height() * 1.5f < lanes_bottom - lanes_top) row_ = 32;
  float spare = lanes_bottom - lanes_top - lanes_height() - 28;
  if (memory_h > 0 && spare > 0) {
    memory_h += spare;
    lanes_bottom -= spare;
  }
  draw_time_axis(scene, axis_, {kGutter, 0, axis_.w, kTimeHeader}, size.h - 4);

  auto label = [&](float y, const std::string& text, float h) {
    scene.text({8, y, kGutter - 12, h}, text, Ink::secondary, Face::small);
  };
  float strip = top;
  for (bool modules : {false, true}) {
    if (!modules && has_spans()) continue;  // they are in the lane already
    label(strip, modules ? tr("module") : tr("phase"), kStrip);
    scene.clip({kGutter, 0, axis_.w, size.h});
    draw_spans(scene, modules ? modules_ : phases_, {kGutter, strip, axis_.w, kStrip}, modules);
    scene.unclip();
    strip += kStrip + 2;
  }

  scene.clip({0, lanes_top, size.w, std::max(lanes_bottom - lanes_top, 0.f)});
  place_chosen(draw_lanes(scene, lanes_top, lanes_bottom));
  int marked = 0;
  for (auto& [seq, box] : placed_) {
    if (!chosen_[seq] || ++marked > 400) continue;
    scene.outline({box.x - 1, box.y - 1, box.w + 2, box.h + 2}, Ink::text, seq == selected_ ? 2.f : 1.f, 2);
  }
  draw_arrows(scene);
  scene.unclip();
  if (memory_h > 0) draw_memory(scene, {kGutter, size.h - memory_h - 4, axis_.w, memory_h});
  draw_range(scene, kTimeHeader, size.h - 4);
}

}  // namespace tenon::views
