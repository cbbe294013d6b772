// The picture of a step's memory; state and intents are in memory_model.cpp.
#include <algorithm>
#include <cmath>

#include "views/memory/memory_model.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

namespace {
constexpr float kMemoryGutter = 76, kAxisHeader = 24, kLegend = 28, kAxisLane = 16, kMemoryStrip = 44;

/// Categories that share a hue with another meaning get a hatch as a second sign.
bool hatched(Category c) { return c == Category::gradient || c == Category::workspace; }
}  // namespace

void MemoryModel::draw_axes(Scene& scene, Box plot, double top) {
  draw_time_axis(scene, axis_, {plot.x, 0, plot.w, kAxisHeader}, plot.bottom());
  double step = byte_ticks(0, top, std::max(2, static_cast<int>(plot.h / 44))).step;
  for (double v = 0; v <= top * 1.0001; v += step) {
    float y = plot.bottom() - static_cast<float>(v / top) * plot.h;
    if (v > 0) scene.line({plot.x, y}, {plot.right(), y}, Ink::grid);
    if (y > plot.y + 4)
      scene.text({4, y - 8, kMemoryGutter - 10, 16}, v == 0 ? "0" : format_bytes(v), Ink::secondary, Face::mono_small,
                 Align::right);
  }
}

void MemoryModel::draw_stack(Scene& scene, Box plot, double top) {
  size_t next = state_at(axis_.lo);
  Live live = next ? states_[next - 1].live : Live{};
  // One column a pixel (two where there are very many states) shows the highest state within it: a peak never vanishes.
  int step = states_.size() > 400 ? 2 : 1;
  float run_x = plot.x;
  Live run{};
  bool open = false;
  auto flush = [&](float until) {
    if (!open || until <= run_x) return;
    float y = plot.bottom();
    for (Category c : stack_order()) {
      double v = run.by[static_cast<int>(c)];
      if (v <= 0) continue;
      float h = static_cast<float>(v / top) * plot.h;
      scene.rect({run_x, y - h, until - run_x, h}, ink_of(c), 0.9f);
      y -= h;
    }
  };
  for (float x = plot.x; x < plot.right(); x += static_cast<float>(step)) {
    double until = axis_.to_value(x + static_cast<float>(step));
    Live most = live;
    while (next < states_.size() && static_cast<double>(states_[next].time) < until) {
      live = states_[next++].live;
      if (live.total > most.total) most = live;
    }
    bool same = open && most.total == run.total && std::equal(most.by, most.by + kCategories, run.by);
    if (same) continue;
    flush(x);
    run = most;
    run_x = x;
    open = true;
  }
  flush(plot.right());
}

void MemoryModel::draw_legend(Scene& scene, Box row) {
  Live now = live_at(cursor_);
  float x = row.x;
  auto item = [&](const std::string& text, const std::string& value, Ink ink, bool hatch) {
    float w = (ink == Ink::none ? 0 : 16) + text_width(text, Face::small) + 8 + 68;
    if (x + w > row.right() + 8) return;
    if (ink != Ink::none) {
      scene.rect({x, row.y + 9, 10, 10}, ink, 1, 2);
      if (hatch) scene.hatch({x, row.y + 9, 10, 10}, Ink::dark_on_fill, 0.7f);
      x += 16;
    }
    float tw = text_width(text, Face::small) + 8;
    scene.text({x, row.y, tw, row.h}, text, Ink::secondary, Face::small);
    scene.text({x + tw, row.y, 66, row.h}, value, Ink::text, Face::mono_small);
    x += tw + 78;
  };
  for (auto c = stack_order().rbegin(); c != stack_order().rend(); ++c)
    if (most_.by[static_cast<int>(*c)] > 0)
      item(word(*c), format_bytes(now.by[static_cast<int>(*c)]), ink_of(*c), hatched(*c));
}

void MemoryModel::draw_blocks(Scene& scene, Box row) {
  std::vector<const Block*> live;
  double total = 0;
  for (const Block& b : blocks_)
    if (static_cast<double>(b.from) <= cursor_ && (b.outlives || static_cast<double>(b.to) > cursor_)) {
      live.push_back(&b);
      total += static_cast<double>(b.bytes);
    }
  scene.text({4, row.y + row.h / 2 - 8, kMemoryGutter - 10, 16}, tr("{} blocks", live.size()), Ink::secondary,
             Face::small, Align::right);
  scene.rect(row, Ink::raised, 1, 3);
  if (live.empty()) return;
  std::sort(live.begin(), live.end(), [](const Block* a, const Block* b) { return a->address < b->address; });
  scene.clip(row);
  double at = 0;
  for (const Block* b : live) {
    float x0 = row.x + static_cast<float>(at / total) * row.w;
    at += static_cast<double>(b->bytes);
    float x1 = row.x + static_cast<float>(at / total) * row.w;
    if (x1 - x0 < 0.35f) continue;
    Box box{x0, row.y, std::max(x1 - x0 - (x1 - x0 > 4 ? 1.f : 0.f), 0.5f), row.h};
    Ink ink = ink_of(b->origin.category);
    scene.rect(box, ink, 0.9f);
    if (hatched(b->origin.category)) scene.hatch(box, Ink::dark_on_fill, 0.25f);
    if (box.w > 52)
      scene.text({box.x + 4, box.y, box.w - 8, box.h}, format_bytes(static_cast<double>(b->bytes)), on_fill(ink),
                 Face::small, Align::center);
    if (std::binary_search(chosen_.begin(), chosen_.end(), b->id))
      scene.outline({box.x + 1, box.y + 1, box.w - 2, box.h - 2}, Ink::text, 2);
    scene.target(box, {block, b->id}, Cursor::hand, block_text(*b) + "\n" + tr("address 0x{:x}", b->address));
  }
  scene.unclip();
}

void MemoryModel::draw_selected(Scene& scene, Box plot, Box lane) {
  uint32_t seq = links_.op_of(selection_);
  if (selection_.kind == Selection::Kind::range) {
    float a = axis_.to_px(selection_.from), b = axis_.to_px(selection_.to);
    scene.rect({a, plot.y, b - a, plot.h}, Ink::text, 0.12f);
  } else if (seq && selection_.kind != Selection::Kind::module) {
    const auto& op = links_.record()->ops[seq - 1];
    float a = axis_.to_px(static_cast<double>(op.start_ns)),
          b = axis_.to_px(static_cast<double>(op.start_ns + op.duration_ns));
    scene.rect({a, plot.y, std::max(b - a, 2.f), plot.h}, Ink::text, 0.18f);
  }
  int drawn = 0;
  for (const Block& b : blocks_) {
    if (!std::binary_search(chosen_.begin(), chosen_.end(), b.id) || ++drawn > 300) continue;
    float a = axis_.to_px(static_cast<double>(b.from)), z = axis_.to_px(static_cast<double>(b.to));
    Box box{a, lane.y + 3, std::max(z - a, 2.f), lane.h - 6};
    scene.rect(box, ink_of(b.origin.category), 1, 3);
    scene.outline(box, Ink::text, 1, 3);
    scene.target(box, {block, b.id}, Cursor::hand,
                 block_text(b) + "\n" + tr("alive {}", format_ns(static_cast<double>(b.to - b.from))));
  }
}

void MemoryModel::draw(Scene& scene) {
  if (shows_snapshot_) return snapshot_.draw(scene);
  if (!links_) return;
  Size size = scene.size();
  axis_.x = kMemoryGutter;
  axis_.w = std::max(size.w - kMemoryGutter - 12, 50.f);
  constexpr float kLeastPlot = 48;
  float strip = size.h > 260 ? kMemoryStrip : 24, legend = kLegend;
  Box lane{kMemoryGutter, kAxisHeader + 2, axis_.w, kAxisLane};
  auto room = [&] { return size.h - lane.bottom() - 4 - legend - strip - 8; };
  if (room() < kLeastPlot) strip = 0;  // on a low canvas the plot stays: the tables say the rest
  if (room() < kLeastPlot) legend = 0;
  Box plot{kMemoryGutter, lane.bottom() + 4, axis_.w, room()};
  if (plot.h < 16) return;
  double top = std::max(peak_.total * 1.08, 1.0);
  draw_axes(scene, plot, top);
  scene.text({4, lane.y, kMemoryGutter - 10, lane.h}, tr("lifetime"), Ink::secondary, Face::small, Align::right);
  scene.target(plot, {HitKind::plot, 0}, Cursor::cross);
  scene.clip({plot.x, 0, plot.w, plot.bottom()});
  draw_stack(scene, plot, top);
  draw_selected(scene, plot, lane);
  float peak_x = axis_.to_px(peak_time_), peak_y = plot.bottom() - static_cast<float>(peak_.total / top) * plot.h;
  scene.polygon({{peak_x, peak_y - 2}, {peak_x - 4, peak_y - 9}, {peak_x + 4, peak_y - 9}}, Ink::text);
  float cx = axis_.to_px(cursor_);
  scene.line({cx, lane.y}, {cx, plot.bottom()}, Ink::text, 1);
  scene.unclip();
  std::string peak = tr("peak {}", format_bytes(peak_.total));
  float w = text_width(peak, Face::small) + 8;
  bool left = peak_x + 8 + w > plot.right();
  if (peak_x >= plot.x && peak_x <= plot.right() && plot.h >= 32 && (!left || peak_x - 8 - w >= plot.x))
    scene.text({left ? peak_x - 8 - w : peak_x + 8, std::max(peak_y - 16, plot.y - 2), w, 16}, peak, Ink::text,
               Face::small, left ? Align::right : Align::left);
  scene.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, Ink::secondary);
  if (legend > 0) draw_legend(scene, {kMemoryGutter, plot.bottom() + 2, axis_.w, legend});
  if (strip > 0) draw_blocks(scene, {kMemoryGutter, size.h - strip - 6, axis_.w, strip});
}

}  // namespace tenon::views
