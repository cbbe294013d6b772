#include "views/findings/what_if_model.h"

#include <algorithm>
#include <cmath>

#include "views/shared/axis.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

namespace {
constexpr float kCurvesAside = 12, kCurveLabels = 66, kUnderCurves = 20, kLegendEntry = 20;
}  // namespace

void WhatIfCurves::show(std::shared_ptr<const tracing::WhatIf> what_if) {
  if (what_if == what_if_) return;
  what_if_ = std::move(what_if);
  chosen_ = -1;
  changed();
}

void WhatIfCurves::choose(int which) {
  if (which < -1 || which >= tries()) return;
  chosen_ = which;
  changed();
}

bool WhatIfCurves::pointer(const PointerEvent& e) {
  if (e.type != PointerEvent::Type::release || e.button != Button::left) return false;
  const Hit hit = last_.hit_at(e.x, e.y);
  if (hit.kind != legend) return false;
  choose(static_cast<int>(hit.id) == chosen_ ? -1 : static_cast<int>(hit.id));
  return true;
}

bool WhatIfCurves::key(const KeyEvent& e) {
  if (tries() == 0 || (e.key != "Up" && e.key != "Down")) return false;
  const int by = e.key == "Down" ? 1 : -1;
  choose(std::clamp(chosen_ + by, 0, tries() - 1));
  return true;
}

/// An entry a try, in as many lines as it takes; their height.
float WhatIfCurves::draw_legend(Scene& scene, Box b) const {
  float x = b.x, y = b.y;
  for (int i = 0; i < tries(); ++i) {
    const auto& t = what_if_->tries[static_cast<size_t>(i)];
    const std::string peak = format_bytes(static_cast<double>(t.replay.peak_reserved));
    const std::string words = t.name + " · " + peak + (t.replay.failed ? tr(", out of memory") : "");
    const float w = std::min(text_width(words, Face::small) + 22, b.w);
    if (x > b.x && x + w > b.right()) x = b.x, y += kLegendEntry;
    if (y + kLegendEntry > b.bottom()) break;
    scene.rect({x, y + kLegendEntry / 2 - 4, 8, 8}, series_ink(i), 1, 2);
    scene.text({x + 14, y, w - 18, kLegendEntry}, words, i == chosen_ ? Ink::accent : Ink::text, Face::small);
    scene.target({x, y, w, kLegendEntry}, {legend, i}, Cursor::hand,
                 tr("{}\nreserves {} at its peak; out of memory: {}", t.name, peak, what_if_->verdict(t)));
    x += w + 12;
  }
  return y + kLegendEntry - b.y;
}

/// The largest of what is reserved within each pixel, so that no peak is left out.
void WhatIfCurves::draw_curve(Scene& scene, Box plot, int which, double top) const {
  const auto& t = what_if_->tries[static_cast<size_t>(which)];
  const auto& curve = t.replay.curve;
  if (curve.empty()) return;
  const double events = std::max<double>(1, static_cast<double>(what_if_->events));
  const auto to_x = [&](size_t event) {
    return plot.x + static_cast<float>(static_cast<double>(event) / events) * plot.w;
  };
  const auto to_y = [&](int64_t bytes) {
    return plot.bottom() - static_cast<float>(static_cast<double>(bytes) / top) * plot.h;
  };
  std::vector<Point> points;
  const auto add = [&](float x, float y) {
    if (points.empty() || points.back().x != x || points.back().y != y) points.push_back({x, y});
  };
  for (size_t i = 0; i < curve.size();) {
    const float x = std::floor(to_x(curve[i].first));
    int64_t most = curve[i].second, last = most;
    for (; i < curve.size() && std::floor(to_x(curve[i].first)) == x; ++i)
      most = std::max(most, last = curve[i].second);
    if (!points.empty()) add(x, points.back().y);
    add(x, to_y(most));
    add(x, to_y(last));
  }
  add(to_x(std::min(t.replay.reached, what_if_->events)), points.back().y);
  const bool dim = chosen_ >= 0 && chosen_ != which;
  scene.polyline(points, series_ink(which), which == chosen_ ? 2.5f : 1.5f, dim ? 0.35f : 1);
  if (!t.replay.failed) return;
  const Point end = points.back();  // a cross: it came no further
  scene.line({end.x - 4, end.y - 4}, {end.x + 4, end.y + 4}, Ink::bad, 2);
  scene.line({end.x - 4, end.y + 4}, {end.x + 4, end.y - 4}, Ink::bad, 2);
}

void WhatIfCurves::draw(Scene& scene) {
  const Size size = scene.size();
  if (tries() == 0 || size.w < 200 || size.h < 90) return;
  const float legend_h = draw_legend(scene, {kCurvesAside, 6, size.w - 2 * kCurvesAside, size.h / 2});
  const Box plot{kCurvesAside + kCurveLabels, legend_h + 12, size.w - 2 * kCurvesAside - kCurveLabels,
                 size.h - legend_h - 18 - kUnderCurves};
  if (plot.h < 30) return;
  int64_t most = 1;
  for (const auto& t : what_if_->tries) most = std::max(most, t.replay.peak_reserved);
  // A limit far above everything would leave the curves flat: it is drawn where it tells something.
  const bool limited = what_if_->limit > 0 && what_if_->limit <= 2 * most;
  const double top = 1.05 * static_cast<double>(limited ? std::max(most, what_if_->limit) : most);
  const Ticks bytes = byte_ticks(0, top, std::max(2, static_cast<int>(plot.h / 28)));
  for (int i = 0; i < bytes.count; ++i) {
    const float y = plot.bottom() - static_cast<float>(bytes.at(i) / top) * plot.h;
    if (y < plot.y) continue;
    scene.line({plot.x, y}, {plot.right(), y}, Ink::grid);
    scene.text({kCurvesAside, y - 8, kCurveLabels - 8, 16}, without_zeros(format_bytes(bytes.at(i))), Ink::secondary,
               Face::small, Align::right);
  }
  const Ticks events =
      nice_ticks(0, static_cast<double>(what_if_->events), std::max(2, static_cast<int>(plot.w / 110)));
  for (int i = 0; i < events.count; ++i) {
    const float x =
        plot.x + static_cast<float>(events.at(i) / std::max<double>(1, static_cast<double>(what_if_->events))) * plot.w;
    if (x > plot.right() - 20) continue;
    const std::string n = format_grouped(static_cast<int64_t>(events.at(i))), text = i == 0 ? tr("{} events", n) : n;
    scene.text({x - (i == 0 ? 0.f : 40.f), plot.bottom() + 2, 80, 16}, text, Ink::secondary, Face::small,
               i == 0 ? Align::left : Align::center);
  }
  for (int i = 0; i < tries(); ++i)
    if (i != chosen_) draw_curve(scene, plot, i, top);
  if (chosen_ >= 0) draw_curve(scene, plot, chosen_, top);
  if (!limited) return;
  const float y = plot.bottom() - static_cast<float>(static_cast<double>(what_if_->limit) / top) * plot.h;
  scene.line({plot.x, y}, {plot.right(), y}, Ink::bad, 1.5f);
  scene.text({plot.right() - 220, y > plot.y + 16 ? y - 16 : y + 1, 216, 16},
             tr("the device can give {}", format_bytes(static_cast<double>(what_if_->limit))), Ink::bad_text,
             Face::small, Align::right);
}

std::string WhatIfCurves::summary() const {
  if (tries() == 0) return tr("Reserved memory under other settings: nothing was tried yet");
  std::string out = tr("Reserved memory under {} settings of the allocator", tries());
  for (int i = 0; i < tries(); ++i) {
    if (chosen_ >= 0 && i != chosen_) continue;
    const auto& t = what_if_->tries[static_cast<size_t>(i)];
    out += tr("; {}: {}, out of memory: {}", t.name, format_bytes(static_cast<double>(t.replay.peak_reserved)),
              what_if_->verdict(t));
  }
  return out;
}

}  // namespace tenon::views
