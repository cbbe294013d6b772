// The picture of a plan; kernels, selection and intents are in plan_model.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/plan/plan_model.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using tracing::ArenaPiece;
using tracing::PlannedKernel;

namespace {
constexpr float kPlanGutter = 84, kPlanEdge = 12, kBands = 20, kKernelLane = 12, kChainLane = 5, kPlanFoot = 22;

/// The part of [a, b] that is seen.
bool seen(float& a, float& b, float lo, float hi) {
  a = std::max(a, lo), b = std::min(b, hi);
  return a < b;
}
}  // namespace

/// A band for each stretch of kernels of one phase, and under it the kernels: also those without a value in the arena
/// can be pointed at there.
void PlanModel::draw_bands(Scene& scene, Box bands, Box lane) const {
  const auto& kernels = plan_->kernels;
  for (size_t i = 0; i < kernels.size();) {
    size_t end = i + 1;
    while (end < kernels.size() && kernels[end].row.phase == kernels[i].row.phase) ++end;
    const Phase phase = kernels[i].row.phase;
    float a = x_.to_px(static_cast<double>(i)), b = x_.to_px(static_cast<double>(end));
    const bool last = end == kernels.size();
    i = end;
    if (!seen(a, b, bands.x, bands.right())) continue;
    scene.rect({a, bands.bottom() - 3, std::max(b - a - (last ? 0 : 1), 1.f), 2}, ink_of(phase));
    const std::string text = word(phase);
    const float w = text_width(text, Face::small) + 6;
    if (w < b - a) scene.text({a, bands.y, w, bands.h - 4}, text, Ink::secondary, Face::small);
  }
  const float wide = lane.w / static_cast<float>(x_.span());
  for (size_t i = 0; i < kernels.size(); ++i) {
    float a = x_.to_px(static_cast<double>(i)), b = x_.to_px(static_cast<double>(i + 1));
    if (!seen(a, b, lane.x, lane.right())) continue;
    const Hit hit{kernel, static_cast<int64_t>(i)};
    const bool on = std::binary_search(marked_.begin(), marked_.end(), i);
    const Box box{a, lane.y, std::max(b - a - (wide > 4 ? 1.f : 0.f), 0.5f), lane.h};
    scene.rect(box, on ? Ink::text : ink_of(kernels[i].row.phase), on || (hover_ && hover_.id == hit.id) ? 1 : 0.75f);
    scene.target({a, lane.y, b - a, lane.h}, hit, Cursor::hand, tips_[i]);
  }
}

/// A line under the kernels that run together.
void PlanModel::draw_chains(Scene& scene, Box lane) const {
  const auto& kernels = plan_->kernels;
  for (size_t i = 0; i < kernels.size();) {
    const int chain = kernels[i].row.chain;
    size_t end = i + 1;
    while (end < kernels.size() && kernels[end].row.chain == chain) ++end;
    float a = x_.to_px(static_cast<double>(i)), b = x_.to_px(static_cast<double>(end));
    i = end;
    if (chain < 0 || !seen(a, b, lane.x, lane.right())) continue;
    scene.rect({a, lane.y + 2, std::max(b - a - 2, 1.f), 2}, Ink::text);
  }
}

Box PlanModel::box_of(const ArenaPiece& p) const {
  const float a = x_.to_px(p.from), top = up(static_cast<double>(p.end));
  return {a, top, x_.to_px(p.to) - a, up(static_cast<double>(p.begin)) - top};
}

void PlanModel::draw_values(Scene& scene, Box plot) const {
  for (const ArenaPiece& p : plan_->pieces) {
    const Box box = box_of(p);
    if (!box.overlaps(plot)) continue;
    const PlannedKernel& k = plan_->kernels[static_cast<size_t>(p.kernel)];
    const Ink ink = ink_of(k.row.phase);
    const bool large = box.w > 4 && box.h > 4;  // what is smaller would be all border
    const float gap = large ? 1 : 0;
    scene.rect({box.x, box.y + gap, std::max(box.w - gap, 0.5f), std::max(box.h - gap, 0.5f)}, ink,
               hover_.id == p.kernel && hover_ ? 1 : 0.85f);
    float a = box.x, b = box.right(), top = box.y, bottom = box.bottom();
    if (!seen(a, b, plot.x, plot.right()) || !seen(top, bottom, plot.y, plot.bottom())) continue;
    scene.target({a, top, b - a, bottom - top}, {value, p.kernel}, Cursor::hand, tips_[static_cast<size_t>(p.kernel)]);
  }
}

/// The moment that is chosen, that of the peak, and the names of values beside it.
void PlanModel::draw_names(Scene& scene, Box plot) const {
  if (chosen_ >= 0) {  // the moment itself: what lies beside it is alive then
    const float x = x_.to_px(chosen_ + 0.5);
    scene.line({x, plot.y}, {x, plot.bottom()}, Ink::accent, 1);
  }
  const float peak = plan_->peak < 0 ? plot.x - 1 : x_.to_px(plan_->peak + 0.5);
  if (peak >= plot.x)
    for (float from = plot.y; from < plot.bottom(); from += 8)  // dashed: no edge of a value
      scene.line({peak, from}, {peak, std::min(from + 5, plot.bottom())}, Ink::text, 1);
  for (const ArenaPiece& p : plan_->pieces) {
    const Box box = box_of(p);
    float a = box.x, b = box.right() - 2, top = box.y, bottom = box.bottom();
    if (!seen(a, b, plot.x, plot.right()) || !seen(top, bottom, plot.y, plot.bottom()) || bottom - top < 15) continue;
    const PlannedKernel& k = plan_->kernels[static_cast<size_t>(p.kernel)];
    const std::string name = k.row.op, bytes = format_bytes(static_cast<double>(k.arena_bytes));
    const float w = text_width(name, Face::small) + 4, wide = text_width(bytes, Face::mono_small) + 4;
    const bool both = bottom - top >= 30 && wide + 4 <= b - a;
    const float most = both ? std::max(w, wide) : w;
    float x = a + 4;
    if (peak > x - 3 && peak < x + most) x = peak + 4;  // not across the line
    if (x + most > b) x = a + 4;
    if (x + w > b) continue;
    const Ink text = on_fill(ink_of(k.row.phase));
    const float y = (top + bottom) / 2 - (both ? 15 : 7.5f);
    scene.text({x, y, w, 15}, name, text, Face::small);
    if (both) scene.text({x, y + 15, wide, 15}, bytes, text, Face::mono_small);
  }
}

/// What is selected or pointed at, over all others.
void PlanModel::draw_marked(Scene& scene, Box plot) const {
  for (const ArenaPiece& p : plan_->pieces) {
    const bool on = std::binary_search(marked_.begin(), marked_.end(), static_cast<size_t>(p.kernel));
    if (!on && !(hover_ && hover_.id == p.kernel)) continue;
    const Box box = box_of(p);
    if (box.overlaps(plot))
      scene.outline({box.x, box.y, std::max(box.w, 2.f), std::max(box.h, 2.f)}, Ink::text, on ? 2 : 1);
  }
}

void PlanModel::draw_axes(Scene& scene, Box plot) const {
  const auto label = [&](double bytes, float y, Ink ink) {
    scene.text({4, y - 8, kPlanGutter - 12, 16}, bytes == 0 ? "0" : without_zeros(format_bytes(bytes)), ink,
               Face::mono_small, Align::right);
  };
  // The whole arena has a line of its own: no other label comes near it.
  const auto whole = static_cast<double>(plan_->figures.arena_bytes);
  float above = -100;
  if (whole > 0 && y_.hi >= whole) {
    above = up(whole);
    scene.line({plot.x, above}, {plot.right(), above}, Ink::secondary, 1);
    label(whole, above, Ink::text);
  }
  const Ticks t = byte_ticks(y_.lo, y_.hi, std::max(2, static_cast<int>(plot.h / 44)));
  for (int i = 0; i < t.count; ++i) {
    const double v = t.at(i);
    if (v < y_.lo || v > y_.hi || v < 0) continue;
    const float y = up(v);
    if (y - above < 16) continue;
    scene.line({plot.x - 4, y}, {plot.x, y}, Ink::secondary);
    label(v, y, Ink::secondary);
  }
  scene.line({plot.x, plot.y}, {plot.x, plot.bottom()}, Ink::secondary);
  scene.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, Ink::secondary);
}

/// What the peak is, and the numbers of kernels where it leaves room.
void PlanModel::draw_numbers(Scene& scene, Box plot) const {
  const auto& kernels = plan_->kernels;
  const float y = plot.bottom() + 4;
  Box peak{-100, y, 0, 16};
  const float at = plan_->peak < 0 ? -1 : x_.to_px(plan_->peak + 0.5);
  if (at >= plot.x && at <= plot.right()) {
    const PlannedKernel& k = kernels[static_cast<size_t>(plan_->peak)];
    const std::string text =
        tr("peak {} beside #{}", format_bytes(static_cast<double>(plan_->peak_bytes)), format_grouped(k.row.seq));
    const float w = std::min(text_width(text, Face::small) + 8, plot.w);
    scene.polygon({{at, plot.bottom()}, {at - 4, plot.bottom() + 6}, {at + 4, plot.bottom() + 6}}, Ink::text);
    peak = {std::clamp(at - w / 2, plot.x, plot.right() - w), y + 3, w, 15};
    scene.text(peak, text, Ink::text, Face::small, Align::center);
  }
  const Ticks t = nice_ticks(x_.lo, x_.hi, std::max(2, static_cast<int>(plot.w / 90)));
  float before = plot.x - 40;
  for (int i = 0; i < t.count; ++i) {
    const double v = std::round(t.at(i));
    if (v < x_.lo || v >= x_.hi || v >= static_cast<double>(kernels.size()) || v < 0) continue;
    const std::string text = "#" + format_grouped(kernels[static_cast<size_t>(v)].row.seq);
    const float x = x_.to_px(v + 0.5), w = text_width(text, Face::mono_small) + 6;
    const Box box{x - w / 2, y + 3, w, 15};
    if (x > plot.right() || box.x < before || box.right() > scene.size().w || box.overlaps(peak)) continue;
    scene.line({x, plot.bottom()}, {x, plot.bottom() + 4}, Ink::secondary);
    scene.text(box, text, Ink::secondary, Face::mono_small, Align::center);
    before = box.right() + 4;
  }
}

void PlanModel::draw(Scene& scene) {
  if (!planned()) return;
  const Size size = scene.size();
  const auto& kernels = plan_->kernels;
  const bool chains =
      std::any_of(kernels.begin(), kernels.end(), [](const PlannedKernel& k) { return k.row.chain >= 0; });
  const float w = size.w - kPlanGutter - kPlanEdge;
  const Box bands{kPlanGutter, 4, w, kBands}, lane{kPlanGutter, bands.bottom(), w, kKernelLane},
      linked{kPlanGutter, lane.bottom(), w, chains ? kChainLane : 0};
  const float top = linked.bottom() + 8;
  const Box plot{kPlanGutter, top, w, size.h - top - kPlanFoot - 4};
  if (plot.w < 60 || plot.h < 24) return;
  x_.x = plot.x, x_.w = plot.w;
  y_.x = plot.y, y_.w = plot.h;
  scene.text({4, lane.y - 2, kPlanGutter - 12, 16}, tr("kernels"), Ink::secondary, Face::small, Align::right);
  draw_bands(scene, bands, lane);
  if (chains) draw_chains(scene, linked);
  scene.rect(plot, Ink::raised);
  scene.clip(plot);
  draw_values(scene, plot);
  draw_names(scene, plot);
  draw_marked(scene, plot);
  scene.unclip();
  draw_axes(scene, plot);
  draw_numbers(scene, plot);
}

}  // namespace tenon::views
