// The picture of an overview; state and intents are in overview_model.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "views/overview/overview_model.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

using tracing::Overview;
using tracing::PartTimes;
using tracing::StepPart;

namespace {
constexpr float kBarGutter = 70, kBarHead = 26, kBarFoot = 22, kPartRow = 20, kLegendWidth = 296, kLeastPlot = 260;
}  // namespace

/// A row a part: its colour, its name, its share and how long it takes of a step.
void OverviewModel::draw_legend(Scene& scene, Box box) const {
  const Overview& o = *page_->overview;
  const float share_x = box.right() - 130, mean_x = box.right() - 66;
  scene.text({box.x, 0, share_x - box.x, kBarHead}, tr("part"), Ink::secondary, Face::small);
  scene.text({share_x, 0, 60, kBarHead}, tr("share"), Ink::secondary, Face::small, Align::right);
  scene.text({mean_x, 0, 62, kBarHead}, tr("a step"), Ink::secondary, Face::small, Align::right);
  float y = kBarHead;
  const auto count = static_cast<int64_t>(o.steps.size());
  for (const StepPart p : tracing::step_parts(o.gpu)) {
    if (y + kPartRow > box.bottom()) break;
    const Box row{box.x, y, box.w, kPartRow};
    const bool any = o.sum[p] > 0;
    scene.rect({box.x, y + 5, 10, 10}, ink_of(p), any ? 1 : 0.35f, 2);
    scene.text({box.x + 17, y, share_x - box.x - 17, kPartRow}, name_of(p).head, any ? Ink::text : Ink::secondary);
    scene.text({share_x, y, 60, kPartRow}, tracing::share_text(o.share_of(p)), any ? Ink::text : Ink::secondary,
               Face::mono_small, Align::right);
    scene.text({mean_x, y, 62, kPartRow}, tracing::cell_text(o.sum[p] / count, tracing::Unit::nanoseconds),
               Ink::secondary, Face::mono_small, Align::right);
    if (any)
      scene.target(row, {part, static_cast<int64_t>(p)}, Cursor::hand,
                   tr("{}: a click selects the step with most of it", name_of(p).head));
    y += kPartRow;
  }
}

void OverviewModel::draw_axes(Scene& scene, Box plot, double top) const {
  const double unit = top >= 1e9 ? 1e9 : top >= 1e6 ? 1e6 : top >= 1e3 ? 1e3 : 1;
  const char* name = unit == 1e9 ? "s" : unit == 1e6 ? "ms" : unit == 1e3 ? "µs" : "ns";
  const Ticks t = nice_ticks(0, top, std::max(2, static_cast<int>(plot.h / 34)));
  for (int i = 0; i < t.count; ++i) {
    const double v = t.at(i);
    const float y = plot.bottom() - static_cast<float>(v / top) * plot.h;
    if (y < plot.y - 1 || y > plot.bottom() + 1) continue;
    scene.line({plot.x, y}, {plot.right(), y}, v > 0 ? Ink::grid : Ink::secondary);
    scene.text({2, y - 8, plot.x - 8, 16}, v > 0 ? fmt::format("{:.4g} {}", v / unit, name) : "0", Ink::secondary,
               Face::mono_small, Align::right);
  }
}

void OverviewModel::draw_bars(Scene& scene, Box plot, double top) const {
  const Overview& o = *page_->overview;
  scene.clip(plot);
  for (const Bar& b : bars_) {
    const float from = axis_.to_px(static_cast<double>(b.first)), to = axis_.to_px(static_cast<double>(b.last));
    const float gap = std::clamp((to - from) * 0.16f, 1.f, 10.f), wide = std::min(to - from - gap, 96.f);
    const float x = (from + to - wide) / 2;
    PartTimes sum;
    for (size_t i = b.first; i < b.last; ++i) sum += o.steps[i].parts;
    const auto n = static_cast<double>(b.last - b.first);
    float y = plot.bottom();
    for (const StepPart p : tracing::step_parts(o.gpu)) {
      const float h = static_cast<float>(static_cast<double>(sum[p]) / n / top) * plot.h;
      if (h <= 0) continue;
      scene.rect({x, y - h, wide, h}, ink_of(p), 0.95f);
      y -= h;
    }
    if (n > 1) {
      const float high = plot.bottom() - static_cast<float>(static_cast<double>(b.longest) / top) * plot.h;
      scene.line({x + wide / 2, y}, {x + wide / 2, high}, Ink::secondary);
      scene.line({x, high}, {x + wide, high}, Ink::secondary);
    }
    const bool here = at_ && b.first <= *at_ && *at_ < b.last;
    if (here || marked(b)) {
      scene.outline({x - 2, y - 2, wide + 4, plot.bottom() - y + 2}, Ink::accent, here ? 2.f : 1.f, 2);
      scene.rect({x - 2, plot.bottom() - 3, wide + 4, 3}, Ink::accent);
    }
    scene.target({from, plot.y, to - from, plot.h}, {bar, static_cast<int64_t>(b.first)}, Cursor::hand, told_of(b));
  }
  scene.unclip();
}

/// The numbers of the steps, as many as have room.
void OverviewModel::draw_numbers(Scene& scene, Box plot) const {
  const Overview& o = *page_->overview;
  float free = plot.x - 16;
  for (const Bar& b : bars_) {
    const int64_t number = o.steps[b.first].step.number;
    const std::string text = number < 0 ? step_text(b.first) : std::to_string(number);
    const float from = axis_.to_px(static_cast<double>(b.first)), to = axis_.to_px(static_cast<double>(b.last));
    const float w = text_width(text, Face::mono_small) + 10, x = (from + to - w) / 2;
    if (x < free || x + w > plot.right() + 10) continue;
    scene.text({x, plot.bottom() + 3, w, kBarFoot - 4}, text, Ink::secondary, Face::mono_small, Align::center);
    free = x + w;
  }
}

void OverviewModel::draw(Scene& scene) {
  const Size size = scene.size();
  if (!steps()) return;
  const bool beside = size.w >= kLegendWidth + kLeastPlot;
  const float right = beside ? size.w - kLegendWidth : size.w - 10;
  const Box plot{kBarGutter, kBarHead, std::max(right - kBarGutter - 6, 40.f),
                 std::max(size.h - kBarHead - kBarFoot, 20.f)};
  axis_.x = plot.x;
  axis_.w = plot.w;
  make_bars(plot.w);
  double top = 1;
  for (const Bar& b : bars_) top = std::max(top, static_cast<double>(b.longest));
  top *= 1.04;
  const size_t each = bars_.empty() ? 1 : bars_[0].last - bars_[0].first;
  std::string head = tr("time of a step, by part");
  if (each > 1) head = tr("a bar is the mean of {} steps, the line over it the longest of them", each);
  scene.text({8, 0, plot.right() - 8, kBarHead}, head, Ink::secondary, Face::small);
  draw_axes(scene, plot, top);
  draw_bars(scene, plot, top);
  draw_numbers(scene, plot);
  if (beside) draw_legend(scene, {right + 14, 0, kLegendWidth - 24, size.h});
}

}  // namespace tenon::views
