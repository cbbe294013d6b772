// The builder from afar, where a layer is too small for its name, and the map of the whole in a corner.
#include <algorithm>
#include <cmath>

#include "views/builder/builder_ink.h"
#include "views/builder/builder_model.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr float kMapW = 176, kMapH = 116, kLabel = 13;
constexpr size_t kMostLabels = 400;
}  // namespace

void BuilderModel::draw_speck(Scene& scene, const GroupLayout::Cell& c, Box b) const {
  const int index = layout_.layer_of(c);
  const Box speck{b.x, b.y, std::max(b.w, 1.f), std::max(b.h, 1.f)};
  const Ink edge = rim(c);
  const Ink fill = edge != Ink::line ? edge
                   : index < 0       ? Ink::secondary
                                     : family_ink(spec_.layers[static_cast<size_t>(index)].type);
  if (heat_.shown() && edge == Ink::line) {
    scene.rect(speck, Ink::raised);
    scene.rect(speck, Ink::warning, 0.1f + 0.9f * heat_.strength(heat_of(c)));
  } else {
    scene.rect(speck, fill, edge != Ink::line ? 1.f : 0.75f);
  }
  if (layout_.picture().cells.size() <= 3000)
    scene.target(speck, index < 0 ? Hit{group, c.node} : Hit{layer, index}, Cursor::hand,
                 index < 0 ? layout_.title(c.node) : spec_.layers[static_cast<size_t>(index)].name);
}

/// Names beside the boxes where the ground is free, those of groups first (they stand on their frames), then every so
/// many layers': a name at least is near whatever one looks at.
void BuilderModel::draw_far_names(Scene& scene) const {
  const auto& cells = layout_.picture().cells;
  // What is taken, by cells of a coarse grid: boxes, and names that are drawn.
  constexpr float kGrid = 8;
  const int columns = static_cast<int>(size_.w / kGrid) + 2, rows = static_cast<int>(size_.h / kGrid) + 2;
  if (columns <= 0 || rows <= 0) return;
  std::vector<char> taken(static_cast<size_t>(columns) * static_cast<size_t>(rows), 0);
  const auto each = [&](Box b, auto&& with) {
    for (int r = std::max(0, static_cast<int>(b.y / kGrid));
         r <= std::min(rows - 1, static_cast<int>(b.bottom() / kGrid)); ++r)
      for (int c = std::max(0, static_cast<int>(b.x / kGrid));
           c <= std::min(columns - 1, static_cast<int>(b.right() / kGrid)); ++c)
        with(taken[static_cast<size_t>(r) * static_cast<size_t>(columns) + static_cast<size_t>(c)]);
  };
  for (const auto& c : cells)
    if (const Box b = to_canvas(c.box); seen(b)) each(b, [](char& t) { t = 1; });
  for (const auto& f : layout_.picture().frames)
    if (const Box b = to_canvas(f.box); seen(b) && b.w >= 30 && b.h >= 16)
      each({b.x, b.y, std::min(b.w, text_width(layout_.short_title(f), Face::small) + 24), kLabel},
           [](char& t) { t = 1; });
  size_t drawn = 0;
  for (const auto& c : cells) {
    const Box b = to_canvas(c.box);
    if (!seen(b) || drawn >= kMostLabels) continue;
    const std::string name = layout_.short_name(c);
    const float w = text_width(name, Face::small) + 4;
    const Box label{b.right() + 5, b.y + b.h / 2 - kLabel / 2, w, kLabel};
    if (label.right() > size_.w || label.y < 0 || label.bottom() > size_.h - 30) continue;
    bool free = true;
    each({label.x + 1, label.y + 1, label.w - 2, label.h - 2}, [&](char t) { free &= !t; });
    if (!free) continue;
    each(label, [](char& t) { t = 1; });
    scene.text(label, name, Ink::secondary, Face::small);
    ++drawn;
  }
}

/// Only where a part of the model is out of sight.
void BuilderModel::draw_minimap(Scene& scene) {
  map_ = {};
  const Box shown = to_canvas(whole_);
  const bool all = shown.x >= -1 && shown.y >= -1 && shown.right() <= size_.w + 1 && shown.bottom() <= size_.h - 27;
  if (all || whole_.w <= 0 || size_.w < 3 * kMapW || size_.h < 3 * kMapH) return;
  map_ = {size_.w - kMapW - 12, size_.h - 28 - kMapH - 12, kMapW, kMapH};
  scene.rect(map_, Ink::panel, 0.94f, 4);
  scene.outline(map_, Ink::line, 1, 4);
  map_zoom_ = std::min((kMapW - 12) / whole_.w, (kMapH - 12) / std::max(whole_.h, 1.f));
  const float left = map_.x + (kMapW - whole_.w * map_zoom_) / 2, top = map_.y + (kMapH - whole_.h * map_zoom_) / 2;
  const auto place = [&](Box b) {
    return Box{left + (b.x - whole_.x) * map_zoom_, top + (b.y - whole_.y) * map_zoom_, std::max(b.w * map_zoom_, 1.f),
               std::max(b.h * map_zoom_, 1.f)};
  };
  scene.clip(map_);
  for (const auto& f : layout_.picture().frames)
    if (const Box b = place(f.box); b.w > 4 && b.h > 4) scene.outline(b, Ink::line, 1, 1);
  // No two specks on the same pixels.
  std::vector<char> drawn(static_cast<size_t>(kMapW * kMapH), 0);
  for (const auto& c : layout_.picture().cells) {
    const Box b = place(c.box);
    const auto x = static_cast<size_t>(std::clamp(b.x - map_.x, 0.f, kMapW - 1)),
               y = static_cast<size_t>(std::clamp(b.y - map_.y, 0.f, kMapH - 1));
    char& at = drawn[y * static_cast<size_t>(kMapW) + x];
    if (std::exchange(at, 1)) continue;
    const int index = layout_.layer_of(c);
    scene.rect(b, index < 0 ? Ink::secondary : family_ink(spec_.layers[static_cast<size_t>(index)].type), 0.8f);
  }
  const Point a = from_canvas({0, 0}), z = from_canvas({size_.w, size_.h - 28});
  const Box sight = place({a.x, a.y, z.x - a.x, z.y - a.y});
  scene.rect(sight, Ink::accent, 0.1f);
  scene.outline(sight, Ink::accent, 1);
  scene.unclip();
  scene.target(map_, {minimap, 0}, Cursor::grab, tr("The whole model: click or drag to look elsewhere"));
}

void BuilderModel::move_by_minimap(float x, float y) {
  if (map_.w <= 0 || map_zoom_ <= 0) return;
  const float left = map_.x + (kMapW - whole_.w * map_zoom_) / 2, top = map_.y + (kMapH - whole_.h * map_zoom_) / 2;
  const Point to{(x - left) / map_zoom_ + whole_.x, (y - top) / map_zoom_ + whole_.y};
  pan_x_ = std::round(size_.w / 2 - to.x * zoom_);
  pan_y_ = std::round((size_.h - 28) / 2 - to.y * zoom_);
  own_view_ = true;
}

}  // namespace tenon::views
