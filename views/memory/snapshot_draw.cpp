// The picture of a snapshot; state and intents are in snapshot_plot.cpp.
#include <algorithm>
#include <cmath>

#include "views/memory/snapshot_plot.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

using snapshot::AllocatorState;
using snapshot::kNone;

namespace {

constexpr float kSnapshotGutter = 76, kSnapshotHeader = 24, kLifeLane = 16, kMapStrip = 52, kMapHead = 16,
                kRegionRow = 18;

void draw_event_axis(Scene& scene, const Axis& axis, Box header, float bottom) {
  const Ticks t = nice_ticks(axis.lo, axis.hi, std::max(2, static_cast<int>(axis.w / 120)));
  for (int i = 0; i < t.count; ++i) {
    const double v = t.at(i);
    const float px = axis.to_px(v);
    if (v != std::floor(v) || px < axis.x - 0.5f || px > axis.x + axis.w + 0.5f) continue;
    scene.line({px, header.bottom() - 4}, {px, bottom}, Ink::grid, 1);
    const std::string label = format_grouped(static_cast<int64_t>(v));
    const float width = text_width(label, Face::mono_small) + 8;
    if (px + width > axis.x + axis.w) continue;
    scene.text({px + 4, header.y, width, header.h}, label, Ink::secondary, Face::mono_small);
  }
  scene.line({header.x, header.bottom()}, {header.right(), header.bottom()}, Ink::line);
}

}  // namespace

void SnapshotPlot::draw_axes(Scene& scene, Box plot) const {
  const Box header{plot.x, 0, plot.w, kSnapshotHeader};
  if (over_time_)
    draw_time_axis(scene, axis_, header, plot.bottom());
  else
    draw_event_axis(scene, axis_, header, plot.bottom());
  scene.text({4, 0, kSnapshotGutter - 10, kSnapshotHeader}, over_time_ ? tr("time") : tr("event"), Ink::secondary,
             Face::small, Align::right);
  const double step = byte_ticks(0, top_, std::max(2, static_cast<int>(plot.h / 32))).step;
  for (double v = 0; v <= top_ * 1.0001; v += step) {
    const float y = plot.bottom() - static_cast<float>(v / top_) * plot.h;
    if (v > 0) scene.line({plot.x, y}, {plot.right(), y}, Ink::grid);
    if (y > plot.y + 4)
      scene.text({4, y - 8, kSnapshotGutter - 10, 16}, v == 0 ? "0" : format_bytes(v), Ink::secondary, Face::mono_small,
                 Align::right);
  }
}

/// Columns that are alike are one rectangle a band.
void SnapshotPlot::draw_stack(Scene& scene, Box plot) const {
  const auto& bands = history_->usage.bands();
  for (size_t first = 0; first < columns_.size();) {
    size_t last = first + 1;
    while (last < columns_.size() && columns_[last].bands == columns_[first].bands) ++last;
    float y = plot.bottom();
    for (size_t b = 0; b < columns_[first].bands.size(); ++b) {
      const int64_t bytes = columns_[first].bands[b];
      if (bytes <= 0) continue;
      const float h = static_cast<float>(static_cast<double>(bytes) / top_) * plot.h;
      const bool chosen = selection_.kind == Selection::Kind::place && bands[b].name == selection_.name;
      const bool quiet = selection_.kind == Selection::Kind::place && history_->asked.pinned == selection_.name &&
                         selection_.document == history_->asked.document && !chosen;
      const Box box{plot.x + static_cast<float>(first), y - h, static_cast<float>(last - first), h};
      scene.rect(box, ink_of_band(b), quiet ? 0.35f : 0.9f);
      if (chosen) scene.hatch(box, Ink::dark_on_fill, 0.35f);
      y -= h;
    }
    first = last;
  }
}

/// The life of a chosen allocation over the picture.
void SnapshotPlot::draw_chosen(Scene& scene, Box plot, Box lane) const {
  if (selection_.kind != Selection::Kind::alloc || selection_.document != history_->asked.document ||
      selection_.allocation_trace() != history_->asked.trace ||
      selection_.allocation_element() >= history_->timeline->elements())
    return;
  const uint32_t id = selection_.allocation_element();
  const snapshot::Element e = history_->timeline->element(id);
  const float a = axis_.to_px(place_of(std::min(e.born, events() - 1)));
  const float z = e.died >= events() ? plot.right() : axis_.to_px(place_of(e.died));
  const Box box{a, lane.y + 3, std::max(z - a, 2.f), lane.h - 6};
  scene.rect(box, ink_of_band(history_->usage.band_of(id)), 1, 3);
  scene.outline(box, Ink::text, 1, 3);
  scene.target(box, {block, id}, Cursor::hand, element_text(id));
}

void SnapshotPlot::draw_hover(Scene& scene, Box plot) const {
  const int band = dragging_ || panning_ ? -1 : band_at(hover_.x, hover_.y);
  const Column* c = column_at(hover_.x);
  if (band < 0 || !c) return;
  const auto& b = history_->usage.bands()[static_cast<size_t>(band)];
  const std::string text =
      tr("{}  {} of {}", b.name, format_bytes(static_cast<double>(c->bands[static_cast<size_t>(band)])),
         format_bytes(static_cast<double>(c->total)));
  const float w = std::min(text_width(text, Face::small) + 30, plot.w);
  const float x = std::clamp(hover_.x + 12, plot.x, plot.right() - w);
  const float y = hover_.y - 30 < plot.y ? hover_.y + 14 : hover_.y - 30;
  scene.rect({x, y, w, 22}, Ink::panel, 0.96f, 4);
  scene.outline({x, y, w, 22}, Ink::line, 1, 4);
  scene.rect({x + 7, y + 6, 10, 10}, ink_of_band(static_cast<size_t>(band)), 1, 2);
  scene.text({x + 23, y, w - 28, 22}, text, Ink::text, Face::small);
}

/// Segments by address, each as wide as it is large, with what lay in them and the gaps between.
void SnapshotPlot::draw_map(Scene& scene, Box row) const {
  auto label = [&](const std::string& text, float y) {
    scene.text({4, y, kSnapshotGutter - 10, 16}, text, Ink::secondary, Face::small, Align::right);
  };
  const Box strip{row.x, row.y + kMapHead, row.w, row.h - kMapHead};
  label(tr("segments"), strip.y + strip.h / 2 - 8);
  scene.rect(strip, Ink::raised, 1, 3);
  if (!map_) {
    scene.text(strip,
               history_->asked.document == Document::kBeginning
                   ? tr("What lies where is known once the whole recording is read")
                   : tr("What lies where is being worked out…"),
               Ink::secondary, Face::small, Align::center);
    return;
  }
  double total = 0, free = 0;
  for (const auto& g : map_->segments) total += static_cast<double>(g.total);
  if (total <= 0) {
    scene.text(strip, tr("Nothing is reserved"), Ink::secondary, Face::small, Align::center);
    return;
  }
  if (total < static_cast<double>(bytes())) {
    scene.text(strip, tr("The recording does not say which segments there were at this moment"), Ink::secondary,
               Face::small, Align::center);
    return;
  }
  int64_t largest = 0;
  uint64_t largest_at = 0;
  for (const auto& b : map_->blocks)
    if (b.state == snapshot::State::inactive) {
      free += static_cast<double>(b.size);
      if (b.size > largest) largest = b.size, largest_at = b.address;
    }
  scene.text({row.x, row.y, row.w, kMapHead},
             map_->segments.size() == 1
                 ? tr("{} reserved in 1 segment, {} of it free, the largest piece {}", format_bytes(total),
                      format_bytes(free), format_bytes(static_cast<double>(largest)))
                 : tr("{} reserved in {} segments, {} of it free, the largest piece {}", format_bytes(total),
                      map_->segments.size(), format_bytes(free), format_bytes(static_cast<double>(largest))),
             Ink::secondary, Face::small);
  scene.clip(strip);
  double before = 0;
  float drawn = strip.x;  // so far; of blocks that share a pixel the first is seen
  for (const auto& g : map_->segments) {
    const auto to_x = [&](double bytes) { return strip.x + static_cast<float>(bytes / total) * strip.w; };
    double at = before;
    const float first = to_x(before);
    for (size_t i = g.first_block; i < g.first_block + g.blocks; ++i) {
      const auto& b = map_->blocks[i];
      const float x0 = to_x(at), x1 = to_x(at + static_cast<double>(b.size));
      at += static_cast<double>(b.size);
      const Box box{x0, strip.y + 2, std::max(x1 - x0 - (x1 - x0 > 4 ? 1.f : 0.f), 1.f), strip.h - 4};
      if (b.state == snapshot::State::inactive) {
        if (b.address != largest_at || box.w < 3) continue;
        scene.outline({box.x + 1, box.y + 1, box.w - 2, box.h - 2}, Ink::secondary, 1);
        scene.target(box, {none, 0}, Cursor::arrow,
                     tr("the largest free piece: {}", format_bytes(static_cast<double>(largest))));
        continue;
      }
      if (x1 - drawn < 0.5f) continue;
      drawn = std::max(x1, box.right());
      const auto owner = at_address_.find(b.address);
      const uint32_t id = owner == at_address_.end() ? kNone : owner->second;
      const Ink ink = id == kNone ? Ink::memory_other : ink_of_band(history_->usage.band_of(id));
      scene.rect(box, ink, b.state == snapshot::State::active ? 0.9f : 0.4f);
      if (id == kNone) continue;
      if (selection_.kind == Selection::Kind::alloc && selection_.allocation_element() == id && box.w > 4)
        scene.outline({box.x + 1, box.y + 1, box.w - 2, box.h - 2}, Ink::text, 2);
      if (box.w > 3)
        scene.target(box, {block, id}, Cursor::hand, element_text(id) + "\n" + tr("address 0x{:x}", b.address));
    }
    before += static_cast<double>(g.total);
    const float end = to_x(before);
    constexpr float kLeastMarked = 4;  // lines between narrower ones would hide what is in them
    if (end < strip.right() - 1 && end - first > kLeastMarked)
      scene.line({end, strip.y}, {end, strip.bottom()}, Ink::base, 1);
  }
  scene.unclip();
}

size_t SnapshotPlot::region_rows() const {
  constexpr size_t kMost = 3;
  size_t rows = 0;
  for (const snapshot::Region& r : history_->regions) rows = std::max<size_t>(rows, r.depth + 1);
  return std::min(rows, kMost);
}

/// What the program marked, the outer above the inner. What is narrower than a pixel is drawn once a pixel.
void SnapshotPlot::draw_regions(Scene& scene, Box rows) const {
  const float h = rows.h / static_cast<float>(region_rows());
  std::vector<float> drawn(region_rows(), rows.x - 1);
  scene.clip(rows);
  for (size_t i = 0; i < history_->regions.size(); ++i) {
    const snapshot::Region& r = history_->regions[i];
    if (r.depth >= drawn.size()) continue;
    const float a = std::max(axis_.to_px(place_of(std::min(r.begin, events() - 1))), rows.x);
    const float z = std::min(r.end >= events() ? rows.right() : axis_.to_px(place_of(r.end)), rows.right());
    if (z < rows.x || a > rows.right() || z <= drawn[r.depth]) continue;
    const Box box{std::max(a, drawn[r.depth]), rows.y + static_cast<float>(r.depth) * h + 1, std::max(z - a, 1.f),
                  h - 2};
    drawn[r.depth] = box.x + 1;
    const bool here = r.begin <= cursor_ && cursor_ < r.end;
    scene.rect(box, here ? Ink::accent : Ink::raised, here ? 0.35f : 1.f, 2);
    if (box.w > 6) scene.outline(box, Ink::line, 1, 2);
    if (box.w > 28) scene.text({box.x + 5, box.y, box.w - 10, box.h}, r.name, Ink::text, Face::small);
    scene.target(box, {region, static_cast<int64_t>(i)}, Cursor::hand,
                 r.name + "\n" + tr("{} events", format_grouped(static_cast<int64_t>(r.end - r.begin))) +
                     (r.open ? "\n" + tr("its end was not recorded") : std::string()));
  }
  scene.unclip();
}

/// A flag in the axis for each of the shown device, and a line down.
void SnapshotPlot::draw_bookmarks(Scene& scene, Box header, float bottom) const {
  for (size_t i = 0; i < bookmarks_.size(); ++i) {
    const double event = bookmarks_[i].from - static_cast<double>(first_event());
    if (event < 0 || event >= static_cast<double>(events())) continue;
    const auto at = static_cast<size_t>(event);
    const float x = axis_.to_px(place_of(at));
    if (x < header.x || x > header.right()) continue;
    scene.line({x, header.y + 2}, {x, bottom}, Ink::warning, 1, 0.7f);
    scene.polygon({{x, header.y + 2}, {x + 9, header.y + 6}, {x, header.y + 10}}, Ink::warning);
    const std::string& note = bookmarks_[i].note;
    scene.target({x - 2, header.y, 14, header.h}, {bookmark, static_cast<int64_t>(i)}, Cursor::hand,
                 note.empty() ? moment_text(at) : note + "\n" + moment_text(at));
  }
}

void SnapshotPlot::draw(Scene& scene) {
  if (!history_) return;
  const Size size = scene.size();
  if (events() == 0) {
    scene.text({0, size.h / 2 - 10, size.w, 20},
               tr("The snapshot holds no recorded events. Findings says what its segments hold."), Ink::secondary,
               Face::body, Align::center);
    return;
  }
  axis_.x = kSnapshotGutter;
  axis_.w = std::max(std::floor(size.w - kSnapshotGutter - 12), 50.f);
  const Box lane{kSnapshotGutter, kSnapshotHeader + 2, axis_.w, kLifeLane};
  constexpr float kLeastPlot = 60;
  float strip = kMapStrip;
  Box marked{kSnapshotGutter, lane.bottom(), axis_.w, kRegionRow * static_cast<float>(region_rows())};
  auto room = [&] { return size.h - marked.bottom() - 4 - (strip > 0 ? strip + 14 : 6); };
  if (room() < kLeastPlot) strip = 0;
  if (room() < kLeastPlot) marked.h = 0;
  const Box plot{kSnapshotGutter, marked.bottom() + 4, axis_.w, room()};
  if (plot.h < 16) return;
  plot_ = plot;
  make_columns();
  top_ = std::max(static_cast<double>(history_->timeline->peak_bytes()) * 1.08, 1.0);
  draw_axes(scene, plot);
  scene.text({4, lane.y, kSnapshotGutter - 10, lane.h}, tr("lifetime"), Ink::secondary, Face::small, Align::right);
  if (marked.h > 0) {
    scene.text({4, marked.y, kSnapshotGutter - 10, kRegionRow}, tr("regions"), Ink::secondary, Face::small,
               Align::right);
    draw_regions(scene, marked);
  }
  scene.target(plot, {HitKind::plot, 0}, Cursor::cross);
  scene.clip({plot.x, 0, plot.w, plot.bottom()});
  draw_stack(scene, plot);
  draw_chosen(scene, plot, lane);
  const size_t peak = history_->timeline->peak();
  const float peak_x = axis_.to_px(place_of(peak));
  const float peak_y =
      plot.bottom() - static_cast<float>(static_cast<double>(history_->timeline->peak_bytes()) / top_) * plot.h;
  scene.polygon({{peak_x, peak_y - 2}, {peak_x - 4, peak_y - 9}, {peak_x + 4, peak_y - 9}}, Ink::text);
  const float cx = axis_.to_px(place_of(cursor_));
  scene.line({cx, lane.y}, {cx, plot.bottom()}, Ink::text, 1);
  draw_bookmarks(scene, {plot.x, 0, plot.w, kSnapshotHeader}, plot.bottom());
  scene.unclip();
  const std::string text = tr("peak {}", format_bytes(static_cast<double>(history_->timeline->peak_bytes())));
  const float w = text_width(text, Face::small) + 8;
  const bool left = peak_x + 8 + w > plot.right();
  if (peak_x >= plot.x && peak_x <= plot.right() && plot.h >= 32)
    scene.text({left ? std::max(peak_x - 8 - w, plot.x) : peak_x + 8, std::max(peak_y - 16, plot.y - 2), w, 16}, text,
               Ink::text, Face::small, left ? Align::right : Align::left);
  scene.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, Ink::secondary);
  if (strip > 0) draw_map(scene, {kSnapshotGutter, plot.bottom() + 8, axis_.w, strip});
  draw_hover(scene, plot);
}

}  // namespace tenon::views
