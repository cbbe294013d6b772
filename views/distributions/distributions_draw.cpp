// The picture of the distributions; state, tables and intents are in distributions_model.cpp.
#include <algorithm>
#include <cmath>

#include "views/distributions/distributions_model.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr float kPlotsEdge = 12, kHeadRow = 20, kLabels = 62, kUnderPlot = 18, kUnderTitle = 14, kPlotsGap = 10;
constexpr float kOverPlot = kHeadRow + 4, kLeastPlot = 30;
constexpr float kLogButton = 34;

const char* side_title(DistributionsModel::Side side) {
  return side == DistributionsModel::Side::weights     ? tr_later("Weights")
         : side == DistributionsModel::Side::gradients ? tr_later("Gradients")
                                                       : tr_later("Updates");
}
/// What a part of a network is has one colour everywhere.
Ink side_ink(DistributionsModel::Side side) {
  return side == DistributionsModel::Side::weights     ? Ink::memory_activation
         : side == DistributionsModel::Side::gradients ? Ink::memory_gradient
                                                       : Ink::memory_optimizer;
}
}  // namespace

float DistributionsModel::height_of(Foot foot) {
  return foot == Foot::bare ? 4 : foot == Foot::ticks ? kUnderPlot : kUnderPlot + kUnderTitle;
}

double DistributionsModel::Range::place(double v) const {
  return linear > 0 ? std::copysign(std::log10(1 + std::fabs(v) / linear), v) : v;
}

bool DistributionsModel::any(Side side) const {
  return std::any_of(d_->points.begin(), d_->points.end(), [&](const auto& p) { return spread(p, side).any(); });
}

DistributionsModel::Range DistributionsModel::range(Side side) const {
  double lo = 0, hi = 0, least = 0;
  bool any = false;
  for (const auto& p : d_->points) {
    const projects::Spread& s = spread(p, side);
    if (s.count == s.bad || p.step < axis_.lo || p.step > axis_.hi) continue;
    const double a = s.quantiles.front(), b = s.quantiles.back();
    lo = any ? std::min(lo, a) : a;
    hi = any ? std::max(hi, b) : b;
    any = true;
    for (const size_t q : {2u, 4u})
      if (const double v = std::fabs(static_cast<double>(s.quantiles[q])); v > 0)
        least = least > 0 ? std::min(least, v) : v;
  }
  Range r;
  if (!any) return r;
  const double most = std::max(std::fabs(lo), std::fabs(hi));
  if (log(side) && most > 0) {
    constexpr double kMostDecades = 6;
    r.linear = std::max(least > 0 ? least : most / 100, most / std::pow(10, kMostDecades));
  }
  r.lo = r.place(lo), r.hi = r.place(hi);
  const double pad = std::max({(r.hi - r.lo) * 0.06, std::fabs(r.hi) * 1e-6, 1e-30});
  r.lo -= pad, r.hi += pad;
  return r;
}

void DistributionsModel::draw_head(Scene& scene, Side side, Box box) const {
  const std::string title = tr(side_title(side));
  float name = text_width(title, Face::body) + 12;
  scene.text({box.x, box.y, std::min(name, box.w), kHeadRow}, title);
  if (side == kSides.front()) {  // once is enough
    const float wide = text_width(chosen_, Face::small) + 12;
    if (box.w > name + wide + kLogButton + 120) {
      scene.text({box.x + name, box.y, wide, kHeadRow}, chosen_, Ink::secondary, Face::small);
      name += wide;
    }
  }
  const Box button{box.right() - kLogButton + 4, box.y + 1, kLogButton - 4, kHeadRow - 2};
  if (any(side) && box.w > name + kLogButton) {
    const bool on = log(side);
    scene.outline(button, on ? Ink::accent : Ink::line, 1, 3);
    scene.text(button, "log", on ? Ink::accent : Ink::secondary, Face::small, Align::center);
    scene.target(button, {log_toggle, static_cast<int64_t>(side)}, Cursor::hand,
                 on ? tr("Linear scale (L)") : tr("Symmetric-logarithmic scale: of both signs, linear about 0 (L)"));
  }
  const float room = box.w - name - kLogButton - 8;
  for (int parts = 4; parts >= 0; --parts) {
    const std::string said = read_out(side, parts);
    if (text_width(said, Face::small) > room && parts > 0) continue;
    if (text_width(said, Face::small) <= room)
      scene.text({box.x + name, box.y, room, kHeadRow}, said, Ink::secondary, Face::small, Align::right);
    break;
  }
}

void DistributionsModel::draw_y(Scene& scene, const Range& r, Box area) const {
  std::vector<double> values;
  if (r.linear > 0) {
    values.push_back(0);
    const double first = std::ceil(std::log10(r.linear) - 1e-9);
    for (double k = first; k < first + 12; ++k)
      for (const double sign : {1.0, -1.0}) values.push_back(sign * std::pow(10, k));
  } else {
    const Ticks t = nice_ticks(r.lo, r.hi, std::max(4, static_cast<int>(area.h / 22)));
    for (int i = 0; i < t.count; ++i) values.push_back(std::fabs(t.at(i)) < t.step / 1e6 ? 0 : t.at(i));
  }
  std::vector<float> taken;
  for (const double v : values) {
    const float y = area.bottom() - static_cast<float>((r.place(v) - r.lo) / (r.hi - r.lo)) * area.h;
    if (y < area.y + 3 || y > area.bottom() + 1) continue;
    if (std::any_of(taken.begin(), taken.end(), [y](float t) { return std::fabs(t - y) < 15; })) continue;
    taken.push_back(y);
    scene.line({area.x, y}, {area.right(), y}, Ink::grid);
    scene.text({area.x - kLabels, y - 8, kLabels - 6, 16}, without_zeros(format_value(v)), Ink::secondary,
               Face::mono_small, Align::right);
  }
}

void DistributionsModel::draw_x(Scene& scene, Box area, Foot foot) const {
  const Ticks t = nice_ticks(axis_.lo, axis_.hi, std::max(2, static_cast<int>(area.w / 80)));
  scene.line({area.x, area.bottom()}, {area.right(), area.bottom()}, Ink::secondary);
  for (int i = 0; i < t.count; ++i) {
    const double v = t.at(i);
    if (v < axis_.lo || v > axis_.hi || v != std::floor(v)) continue;
    scene.line({axis_.to_px(v), area.bottom()}, {axis_.to_px(v), area.bottom() + 4}, Ink::secondary);
    if (foot == Foot::bare) continue;
    const std::string text = format_grouped(static_cast<int64_t>(v));
    const float w = text_width(text, Face::mono_small) + 6, left = area.x - w / 2;
    const float x = std::clamp(axis_.to_px(v) - w / 2, left, std::max(left, area.right() - w));
    scene.text({x, area.bottom() + 3, w, 15}, text, Ink::secondary, Face::mono_small, Align::center);
  }
  if (foot == Foot::titled)
    scene.text({area.x, area.bottom() + kUnderPlot, area.w, kUnderTitle}, tr("Step"), Ink::secondary, Face::small,
               Align::center);
}

/// From point to point the bands of 5 to 95 % and 25 to 75 %, the median, and thin the smallest and the largest. A gap
/// where a point has no numbers.
void DistributionsModel::draw_spreads(Scene& scene, Side side, const Range& r, Box area) const {
  const Ink ink = side_ink(side);
  const auto y = [&](const projects::Spread& s, size_t q) {
    return area.bottom() - static_cast<float>((r.place(s.quantiles[q]) - r.lo) / (r.hi - r.lo)) * area.h;
  };
  struct Place {
    float x;
    const projects::Spread* s;
  };
  std::vector<Place> stretch;
  const auto end_stretch = [&] {
    if (stretch.size() == 1) {  // alone between gaps: as wide as a mark
      const auto [x, s] = stretch.front();
      for (const auto& [a, b, alpha] : {std::tuple{1u, 5u, 0.28f}, {2u, 4u, 0.4f}})
        scene.rect({x - 4, y(*s, b), 8, std::max(1.f, y(*s, a) - y(*s, b))}, ink, alpha);
      scene.line({x, y(*s, 0)}, {x, y(*s, 6)}, ink, 1, 0.7f);
      scene.line({x - 4, y(*s, 3)}, {x + 4, y(*s, 3)}, Ink::text, 2);
    }
    for (size_t i = 0; i + 1 < stretch.size(); ++i)
      for (const auto& [a, b, alpha] : {std::tuple{1u, 5u, 0.28f}, {2u, 4u, 0.4f}}) {
        const auto& [x, s] = stretch[i];
        const auto& [to, t] = stretch[i + 1];
        scene.polygon({{x, y(*s, b)}, {to, y(*t, b)}, {to, y(*t, a)}, {x, y(*s, a)}}, ink, alpha);
      }
    if (stretch.size() > 1)
      for (const size_t q : {0u, 6u, 3u}) {
        std::vector<Point> line;
        for (const auto& [x, s] : stretch) line.push_back({x, y(*s, q)});
        scene.polyline(line, q == 3 ? Ink::text : ink, q == 3 ? 1.6f : 1, q == 3 ? 1 : 0.7f);
      }
    stretch.clear();
  };
  for (const auto& p : d_->points) {
    const projects::Spread& s = spread(p, side);
    if (s.bad == s.count)
      end_stretch();
    else
      stretch.push_back({axis_.to_px(static_cast<double>(p.step)), &s});
  }
  end_stretch();
}

/// Numbers that are not finite as red ticks on the axis, the selected and the hovered step.
void DistributionsModel::draw_marks(Scene& scene, Side side, Box area) const {
  for (const auto& p : d_->points) {
    const float x = axis_.to_px(static_cast<double>(p.step));
    const projects::Spread& s = spread(p, side);
    if (!s.bad || x < area.x - 1 || x > area.right() + 1) continue;
    scene.rect({x - 1, area.bottom() - 8, 2, 8}, Ink::bad);
    scene.target({x - 3, area.bottom() - 10, 6, 12}, {plot, static_cast<int64_t>(side)}, Cursor::hand,
                 tr("step {}: {} of {} numbers are not finite", format_grouped(p.step), format_grouped(s.bad),
                    format_grouped(s.count)));
  }
  const auto upright = [&](int64_t step, Ink ink, float width) {
    const float x = axis_.to_px(static_cast<double>(step));
    if (step >= 0 && x >= area.x && x <= area.right()) scene.line({x, area.y}, {x, area.bottom()}, ink, width);
  };
  upright(selected_, Ink::accent, 2);
  upright(hover_, Ink::secondary, 1);
  if (dragging_ && moved_)
    scene.rect({std::min(press_x_, drag_x_), area.y, std::fabs(drag_x_ - press_x_), area.h}, Ink::accent, 0.15f);
}

void DistributionsModel::draw_plot(Scene& scene, Side side, Box box, Foot foot) {
  const Box area{box.x + kLabels, box.y + kOverPlot, box.w - kLabels - 8, box.h - kOverPlot - height_of(foot)};
  if (area.w < 60 || area.h < kLeastPlot) return;
  axis_.x = area.x;
  axis_.w = area.w;
  draw_head(scene, side, box);
  if (!any(side)) {
    draw_x(scene, area, foot);
    const char* why = !d_->last_replayed()
                          ? tr_later("Known once a step was replayed: the state at the end has the weights alone.")
                      : learning_of(*d_, at_) == Learning::frozen ? tr_later("The parameter is frozen: it has none.")
                                                                  : tr_later("No step that was replayed gave it one.");
    scene.text(area, tr(why), Ink::secondary, Face::small, Align::center);
    return;
  }
  const Range r = range(side);
  draw_y(scene, r, area);
  draw_x(scene, area, foot);
  scene.target(area, {plot, static_cast<int64_t>(side)}, Cursor::cross);
  scene.clip({area.x - 4, area.y - 4, area.w + 8, area.h + 8});
  draw_spreads(scene, side, r, area);
  draw_marks(scene, side, area);
  scene.unclip();
}

/// Beneath each other, where the lowest may tell the steps of all; beside each other where there is no height for it.
void DistributionsModel::draw(Scene& scene) {
  if (!d_ || d_->points.empty() || d_->parameters.empty()) return;
  const Size size = scene.size();
  const Box all{kPlotsEdge, kPlotsEdge - 4, size.w - 2 * kPlotsEdge, size.h - 2 * kPlotsEdge + 8};
  constexpr size_t kPlots = kSides.size();
  if (all.w > 3 * (all.h < 216 ? 160 : 240) && all.h < 300) {
    const float w = (all.w - (kPlots - 1) * kPlotsGap) / kPlots;
    for (size_t i = 0; i < kPlots; ++i)
      draw_plot(scene, kSides[i], {all.x + static_cast<float>(i) * (w + kPlotsGap), all.y, w, all.h},
                all.h > 110 ? Foot::titled : Foot::ticks);
    return;
  }
  const Foot upper = all.h < 380 ? Foot::bare : Foot::ticks;
  const auto plot_height = [&](size_t plots) {
    const auto n = static_cast<float>(plots);
    return (all.h - height_of(Foot::titled) - (n - 1) * (height_of(upper) + kPlotsGap)) / n - kOverPlot;
  };
  size_t plots = kPlots;  // what has no room is in the table
  while (plots > 1 && plot_height(plots) < kLeastPlot) --plots;
  float y = all.y;
  for (size_t i = 0; i < plots; ++i) {
    const Foot foot = i + 1 == plots ? Foot::titled : upper;
    const float h = plot_height(plots) + kOverPlot + height_of(foot);
    draw_plot(scene, kSides[i], {all.x, y, all.w, h}, foot);
    y += h + kPlotsGap;
  }
}

}  // namespace tenon::views
