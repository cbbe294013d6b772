// The picture of the roofline; rows, selection and intents are in roofline_model.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "views/roofline/roofline_model.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

using tracing::Limit;
using tracing::RoofRow;

namespace {

constexpr float kRoofEdge = 12, kRoofLabels = 58, kRoofHead = 24, kRoofFoot = 38, kCopies = 58;
constexpr float kLeastDot = 4, kMostDot = 16;

Ink limit_ink(Limit l) {
  return l == Limit::memory ? Ink::series1 : l == Limit::arithmetic ? Ink::series2 : Ink::baseline;
}

std::vector<Point> ring_of(Point c, float r, int corners, double turned = 0) {
  std::vector<Point> points;
  for (int i = 0; i < corners; ++i) {
    const double a = turned + 2 * std::numbers::pi * i / corners;
    points.push_back({c.x + r * static_cast<float>(std::cos(a)), c.y + r * static_cast<float>(std::sin(a))});
  }
  return points;
}

/// Each limit has its shape beside its colour: a disc, a diamond, and for what is too small a ring.
void draw_sign(Scene& scene, Limit l, Point c, float r) {
  const Ink ink = limit_ink(l);
  if (l == Limit::arithmetic) return scene.polygon(ring_of(c, r * 1.15f, 4), ink, 0.85f);
  const Box box{c.x - r, c.y - r, 2 * r, 2 * r};
  if (l == Limit::memory) return scene.rect(box, ink, 0.85f, r);
  scene.outline(box, ink, 1.5f, r);
}

bool has_dot(const RoofRow& row) { return row.least_ns > 0 && row.ns > 0; }

bool is_free(const Box& b, const std::vector<Box>& taken) {
  return std::none_of(taken.begin(), taken.end(), [&](const Box& t) { return t.overlaps(b); });
}

/// "0.01", "1", "1,000": a power of ten.
std::string power_text(int power) {
  return power < 0 ? fmt::format("{:.{}f}", std::pow(10, power), -power)
                   : format_grouped(static_cast<int64_t>(std::llround(std::pow(10, power))));
}

}  // namespace

float RooflineModel::LogAxis::at(double value) const {
  const double l = std::clamp(std::log10(std::max(value, 1e-30)), lo, hi);
  return from + static_cast<float>((l - lo) / (hi - lo)) * (to - from);
}

bool RooflineModel::has_copies() const {
  return std::any_of(roofline_->rows.begin(), roofline_->rows.end(),
                     [](const RoofRow& r) { return r.flops <= 0 && r.bytes > 0; });
}

/// Both axes hold the ridge and every dot, with room about them.
RooflineModel::Plot RooflineModel::lay_out(Size size) const {
  Plot l;
  const kernels::Ceilings& c = roofline_->ceilings;
  l.x.lo = std::log10(c.ridge()) - 1, l.x.hi = std::log10(c.ridge()) + 1;
  for (const RoofRow& row : roofline_->rows)
    if (row.flops > 0 && row.bytes > 0) {
      l.x.lo = std::min(l.x.lo, std::log10(row.intensity()));
      l.x.hi = std::max(l.x.hi, std::log10(row.intensity()));
    }
  l.x.lo -= 0.25, l.x.hi += 0.25;
  constexpr double kMostDecades = 7;  // what lies below them is drawn on the edge
  const double peak = std::log10(c.flops / 1e9), left_roof = std::log10(c.at(std::pow(10, l.x.lo)) / 1e9);
  l.y.lo = left_roof, l.y.hi = peak;
  for (const RoofRow& row : roofline_->rows) {
    if (!has_dot(row)) continue;
    const double y = row.flops > 0 ? std::log10(row.gflops()) : left_roof + std::log10(row.reached());
    l.y.lo = std::min(l.y.lo, y), l.y.hi = std::max(l.y.hi, y);
  }
  l.y.lo = std::max(l.y.lo, l.y.hi - kMostDecades) - 0.3, l.y.hi += 0.35;
  const float left = kRoofEdge + kRoofLabels, copies = has_copies() ? kCopies : 0;
  l.area = {left + copies, kRoofHead, size.w - left - copies - kRoofEdge, size.h - kRoofHead - kRoofFoot};
  l.copies = {left, kRoofHead, copies, l.area.h};
  l.x.from = l.area.x, l.x.to = l.area.right();
  l.y.from = l.area.bottom(), l.y.to = l.area.y;
  return l;
}

Point RooflineModel::place_of(const RoofRow& row, const Plot& l) const {
  if (row.flops > 0) return {l.x.at(row.intensity()), l.y.at(row.gflops())};
  const double roof = roofline_->ceilings.at(std::pow(10, l.x.lo)) / 1e9;
  return {l.copies.x + l.copies.w / 2, l.y.at(roof * row.reached())};
}

/// Its area is its time.
float RooflineModel::radius_of(const RoofRow& row) const {
  int64_t longest = 1;
  for (const RoofRow& r : roofline_->rows) longest = std::max(longest, r.ns);
  return std::max(kLeastDot, kMostDot * std::sqrt(static_cast<float>(row.ns) / static_cast<float>(longest)));
}

void RooflineModel::draw_axes(Scene& scene, const Plot& l) const {
  const Box all{l.copies.x, l.area.y, l.copies.w + l.area.w, l.area.h};
  float above = all.bottom() + 40;  // of the label before
  for (int p = static_cast<int>(std::ceil(l.y.lo)); p <= l.y.hi; ++p) {
    const float y = l.y.at(std::pow(10, p));
    scene.line({all.x, y}, {all.right(), y}, Ink::grid);
    if (above - y < 16) continue;
    above = y;
    scene.text({kRoofEdge, y - 8, kRoofLabels - 6, 16}, power_text(p), Ink::secondary, Face::mono_small, Align::right);
  }
  float before = l.area.x - 60;
  for (int p = static_cast<int>(std::ceil(l.x.lo)); p <= l.x.hi; ++p) {
    const float x = l.x.at(std::pow(10, p));
    const std::string text = power_text(p);
    const float w = text_width(text, Face::mono_small) + 8;
    scene.line({x, l.area.y}, {x, l.area.bottom() + 4}, Ink::grid);
    if (x - w / 2 < before || x - w / 2 < l.area.x - 4 || x + w / 2 > scene.size().w) continue;
    before = x + w / 2;
    scene.text({x - w / 2, l.area.bottom() + 4, w, 15}, text, Ink::secondary, Face::mono_small, Align::center);
  }
  scene.line({all.x, all.bottom()}, {all.right(), all.bottom()}, Ink::secondary);
  scene.line({all.x, all.y}, {all.x, all.bottom()}, Ink::secondary);
  scene.text({l.area.x, l.area.bottom() + 20, l.area.w, 15}, tr("FLOP per byte"), Ink::secondary, Face::small,
             Align::center);
  if (l.copies.w > 0) {
    scene.line({l.area.x, l.area.y}, {l.area.x, l.area.bottom()}, Ink::line);
    scene.text({l.copies.x - 6, l.area.bottom() + 4, l.copies.w + 6, 15}, tr("no FLOP"), Ink::secondary, Face::small,
               Align::center);
  }
  scene.text({kRoofEdge, 4, kRoofLabels + 40, 16}, "GFLOP/s", Ink::secondary, Face::small);
}

void RooflineModel::draw_roof(Scene& scene, const Plot& l) const {
  const kernels::Ceilings& c = roofline_->ceilings;
  const double lo = std::pow(10, l.x.lo);
  const Point start{l.area.x, l.y.at(c.at(lo) / 1e9)}, ridge{l.x.at(c.ridge()), l.y.at(c.flops / 1e9)};
  if (l.copies.w > 0) scene.line({l.copies.x, start.y}, start, Ink::text, 2);
  scene.polyline({start, ridge, {l.area.right(), ridge.y}}, Ink::text, 2);
  scene.line(ridge, {ridge.x, l.area.bottom()}, Ink::secondary, 1, 0.5f);
}

/// The figures of the roof, where no dot is.
void RooflineModel::draw_figures(Scene& scene, const Plot& l, std::vector<Box>& taken) const {
  const kernels::Ceilings& c = roofline_->ceilings;
  const Point start{l.area.x, l.y.at(c.at(std::pow(10, l.x.lo)) / 1e9)},
      ridge{l.x.at(c.ridge()), l.y.at(c.flops / 1e9)};
  const auto label = [&](const std::string& text, std::initializer_list<Point> places) {
    const float w = text_width(text, Face::small) + 6;
    for (const Point& p : places) {
      const Box at{p.x, p.y, w, 15};
      if (at.x < l.copies.x || at.right() > l.area.right() + 1 || at.y < l.area.y - 2 || !is_free(at, taken)) continue;
      scene.text(at, text, Ink::text, Face::small);
      taken.push_back(at);
      return;
    }
  };
  const std::string peak = tr("{:.4g} GFLOP/s of f32 multiply-adds", c.flops / 1e9);
  const float wide = text_width(peak, Face::small) + 6, over = ridge.y - 18;
  label(peak, {{l.area.right() - wide, over}, {ridge.x + 8, over}, {(ridge.x + l.area.right() - wide) / 2, over}});
  const std::string copy = tr("{:.4g} GB/s copied", c.bytes / 1e9);
  const float w = text_width(copy, Face::small) + 6;
  const auto beside = [&](float part) {  // of the slope
    return Point{start.x + (ridge.x - start.x) * part - w - 8, start.y + (ridge.y - start.y) * part - 18};
  };
  label(copy, {beside(0.5f), beside(0.65f), beside(0.8f), beside(0.35f)});
  label(tr("ridge at {:.3g}", c.ridge()), {{ridge.x + 4, l.area.bottom() - 18}, {ridge.x + 4, l.area.bottom() - 48}});
}

void RooflineModel::draw_dots(Scene& scene, const Plot& l, std::vector<Box>& taken) const {
  const auto& rows = roofline_->rows;
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return !has_dot(rows[i]); });
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rows[a].ns > rows[b].ns; });
  for (const size_t i : order) {  // small ones lie above
    const Point at = place_of(rows[i], l);
    const float r = radius_of(rows[i]);
    draw_sign(scene, rows[i].limit, at, r);
    const bool on = std::binary_search(marked_.begin(), marked_.end(), i);
    if (on || hover_ == Hit{dot, static_cast<int64_t>(i)})
      scene.outline({at.x - r - 3, at.y - r - 3, 2 * r + 6, 2 * r + 6}, on ? Ink::accent : Ink::secondary, 2, r + 3);
    const float reach = std::max(r, 6.f);
    scene.target({at.x - reach, at.y - reach, 2 * reach, 2 * reach}, {dot, static_cast<int64_t>(i)}, Cursor::hand,
                 told_of(rows[i]));
    taken.push_back({at.x - r, at.y - r, 2 * r, 2 * r});
  }
}

void RooflineModel::draw_names(Scene& scene, const Plot& l, std::vector<Box>& taken) const {
  const auto& rows = roofline_->rows;
  for (float x = l.copies.x; x < l.area.right(); x += 6) {  // nor across the roof
    const double along =
        l.x.lo + static_cast<double>((std::max(x, l.area.x) - l.x.from) / (l.x.to - l.x.from)) * (l.x.hi - l.x.lo);
    taken.push_back({x, l.y.at(roofline_->ceilings.at(std::pow(10, along)) / 1e9) - 3, 6, 6});
  }
  constexpr size_t kNamed = 8;  // those with the most to win, and what is selected, where there is room
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool on = std::binary_search(marked_.begin(), marked_.end(), i);
    if ((i >= kNamed && !on) || !has_dot(rows[i])) continue;
    const Point at = place_of(rows[i], l);
    const float r = radius_of(rows[i]), w = text_width(rows[i].op, Face::small) + 4;
    for (const Box& box : {Box{at.x + r + 4, at.y - 8, w, 15}, Box{at.x - r - 4 - w, at.y - 8, w, 15},
                           Box{at.x - w / 2, at.y + r + 2, w, 15}}) {
      if (box.x < l.copies.x + 2 || box.right() > l.area.right() || box.bottom() > l.area.bottom() - 2 ||
          !is_free(box, taken))
        continue;
      scene.text(box, rows[i].op, on ? Ink::text : Ink::secondary, Face::small);
      taken.push_back(box);
      break;
    }
  }
}

void RooflineModel::draw_legend(Scene& scene, Box row) const {
  float right = row.right();
  const auto add = [&](Limit l, const std::string& text) {
    const float w = text_width(text, Face::small) + 4;
    if (right - w - 16 < row.x) return;
    scene.text({right - w, row.y, w, row.h}, text, Ink::secondary, Face::small);
    draw_sign(scene, l, {right - w - 9, row.y + row.h / 2}, 4.5f);
    right -= w + 28;
  };
  add(Limit::size, tr("too small to fill the machine"));
  add(Limit::arithmetic, tr("arithmetic is the limit"));
  add(Limit::memory, tr("memory is the limit"));
}

void RooflineModel::draw(Scene& scene) {
  if (!roofline_ || roofline_->rows.empty()) return;
  const Plot l = lay_out(scene.size());
  if (l.area.w < 60 || l.area.h < 40) return;
  draw_legend(scene, {kRoofEdge + 120, 4, scene.size().w - 2 * kRoofEdge - 120, 16});
  draw_axes(scene, l);
  std::vector<Box> taken;
  draw_roof(scene, l);
  draw_dots(scene, l, taken);
  draw_figures(scene, l, taken);
  draw_names(scene, l, taken);
}

}  // namespace tenon::views
