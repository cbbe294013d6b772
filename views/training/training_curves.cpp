// The lines of the charts, and what is marked on them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"
#include "views/shared/meaning.h"
#include "views/training/training_model.h"

namespace tenon::views {

namespace {
constexpr float kMostPoints = 60'000;  ///< of compared runs in a frame; see TrainingModel::coarseness()
constexpr int kMostColumn = 8;         ///< pixels: wider ones would be stairs

bool smooths(const std::string& quantity) {
  return quantity == "loss" || quantity == "accuracy" || quantity == "grad_norm" || quantity == "samples_per_second";
}
}  // namespace

template <class F>
void TrainingModel::each_behind(const std::string& metric, F&& f) const {
  const auto one = [&](const Compared& c, int k) {
    const auto at = c.series.find(metric);
    if (at == c.series.end() || at->second.empty() || c.run == run_) return;
    const Series& s = at->second;
    if (scale(c).knows(s.step(s.size() - 1))) f(c, s, k);
  };
  one(baseline_, -1);
  for (size_t k = 0; k < compared_.size(); ++k) one(compared_[k], static_cast<int>(k));
}

/// The points that are seen, and one more at either side.
std::pair<size_t, size_t> TrainingModel::visible(const Series& s, const CurveScale& at) const {
  size_t a = s.lower_by(axis_.lo, at.at(s));
  size_t b = s.lower_by(axis_.hi, at.at(s), a);
  while (b < s.size() && at.of(s, b) <= axis_.hi) ++b;
  return {a > 0 ? a - 1 : a, b < s.size() ? b + 1 : b};
}

TrainingModel::Range TrainingModel::range(const Chart& c) const {
  Range r{1e300, -1e300, log(c.title)};
  double least = 1e300;  // of the positive values; the rest sits on the axis
  const auto take = [&](const Series& s, const CurveScale& at) {
    auto [a, b] = visible(s, at);
    if (a < b && at.of(s, a) < axis_.lo) ++a;
    if (a < b && at.of(s, b - 1) > axis_.hi) --b;
    const auto sum = s.summary(a, b);
    if (!sum.finite) return;
    r.lo = std::min(r.lo, sum.min);
    r.hi = std::max(r.hi, sum.max);
    if (sum.least > 0) least = std::min(least, sum.least);
  };
  for (const std::string& m : c.metrics) {
    take(series_.at(m), scale());
    each_behind(m, [&](const Compared& k, const Series& s, int) { take(s, scale(k)); });
  }
  if (r.hi < r.lo) r = {0, 1, false};
  if (r.log && r.hi <= 0) r.log = false;
  if (r.log) {
    r.lo = std::log10(least);
    r.hi = std::log10(r.hi);
    double pad = std::max((r.hi - r.lo) * 0.06, 0.02);
    r.lo -= pad;
    r.hi += pad;
    return r;
  }
  if (c.quantity == "accuracy" && r.hi <= 1.0) {  // zero is not where accuracy is read; one is
    double pad = std::max((r.hi - r.lo) * 0.08, 0.005);
    return {std::max(0.0, r.lo - pad), std::min(1.0, r.hi + pad), false};
  }
  if (r.lo > 0) r.lo = 0;
  double pad = std::max((r.hi - r.lo) * 0.06, 1e-12);
  r.hi += pad;
  if (r.lo < 0) r.lo -= pad;
  return r;
}

float TrainingModel::y_of(double v, const Range& r, const Box& area) const {
  double t = r.log ? (v > 0 ? std::log10(v) : r.lo) : v;
  return area.bottom() - static_cast<float>(std::clamp((t - r.lo) / (r.hi - r.lo), -0.5, 1.5)) * area.h;
}

int TrainingModel::coarseness(const std::vector<Chart>& charts, float width) const {
  float points = 0;  // at two of a pixel
  for (const Chart& c : charts)
    for (const std::string& m : c.metrics)
      each_behind(m, [&](const Compared& k, const Series& s, int) {
        const auto [a, b] = visible(s, scale(k));
        points += std::min(static_cast<float>(b - a), 2 * width);
      });
  return std::clamp(static_cast<int>(std::ceil(points / kMostPoints)), 1, kMostColumn);
}

void TrainingModel::draw_series(Scene& scene, const Series& s, const CurveScale& at, const Range& r, Box area,
                                const Pen& pen) {
  const int columns = std::max(static_cast<int>(area.w) / pen.column, 1);
  const auto [a, b] = visible(s, at);
  std::vector<Point> line;
  // A gap where there is no number, and a lone point between gaps stays a dot.
  const auto end_line = [&](float width) {
    if (line.size() == 1) scene.rect({line[0].x - 2, line[0].y - 2, 4, 4}, pen.ink, pen.alpha, 2);
    if (line.size() > 1) scene.polyline(line, pen.ink, width, pen.alpha);
    line.clear();
  };
  if (b - a <= static_cast<size_t>(columns) * 2) {
    const bool dots =
        pen.dots && b > a && area.w / axis_.span() * (at.of(s, b - 1) - at.of(s, a)) > 8.0 * static_cast<double>(b - a);
    for (size_t i = a; i < b; ++i) {
      if (!std::isfinite(s.value(i))) {
        end_line(pen.width);
        continue;
      }
      line.push_back({axis_.to_px(at.of(s, i)), y_of(s.value(i), r, area)});
      if (dots) scene.rect({line.back().x - 2.5f, line.back().y - 2.5f, 5, 5}, pen.ink, pen.alpha, 2.5f);
    }
    end_line(pen.width);
    return;
  }
  const float thin = pen.width < 2 ? 1 : pen.width;
  // More points than pixels: lowest and highest of each pixel column, so that no spike is lost, the nearer one first.
  const double per = axis_.span() / columns;
  const auto all = s.columns(axis_.lo, axis_.hi + per, columns + 1, at.at(s));
  for (int k = 0; k <= columns; ++k) {
    const Series::Column& c = all[static_cast<size_t>(k)];
    if (!c.finite) {
      if (c.bad) end_line(thin);
      continue;
    }
    const float x = axis_.to_px(axis_.lo + (k + 0.5) * per), low = y_of(c.min, r, area), high = y_of(c.max, r, area);
    const bool falls = !line.empty() && std::fabs(line.back().y - high) < std::fabs(line.back().y - low);
    line.push_back({x, falls ? high : low});
    if (low != high) line.push_back({x, falls ? low : high});
  }
  end_line(thin);
}

void TrainingModel::draw_curves(Scene& scene, const Chart& c, const Range& r, Box area) {
  for (const std::string& m : c.metrics)
    each_behind(m, [&](const Compared& k, const Series& s, int i) {
      const Ink ink = i < 0 ? Ink::baseline : compared_ink(i);
      draw_series(scene, s, scale(k), r, area, {ink, 1.6f, 1, i >= 0 && s.size() <= 60, i < 0 ? 1 : column_});
    });
  for (size_t i = 0; i < c.metrics.size(); ++i) {
    const Series& s = series_.at(c.metrics[i]);
    const bool smooth = smoothing_ > 0 && s.size() > 30 && smooths(quantity_of(c.metrics[i]));
    const Ink ink = series_ink(static_cast<int>(i));
    Pen pen{ink, 1.6f, 1, s.size() <= 60, 1};
    if (smooth) pen.width = 1, pen.alpha = 0.35f;
    draw_series(scene, s, scale(), r, area, pen);
    // The smoothed line lies over the raw one, never instead of it.
    if (smooth) draw_series(scene, smoothed_[c.metrics[i]].of(s, smoothing_), scale(), r, area, {ink, 2, 1, false, 1});
  }
}

void TrainingModel::draw_changes(Scene& scene, Box area) {
  for (const Change& c : changes_) {
    const float x = axis_.to_px((x_of(c.step) + x_of(c.step + 1)) / 2);  // between the steps that it parts
    if (x < area.x || x > area.right()) continue;
    scene.line({x, area.y}, {x, area.bottom()}, Ink::warning, 1, 0.8f);
    scene.rect({x - 3, area.y, 6, 6}, Ink::warning, 1, 3);
    scene.target({x - 5, area.y, 10, 14}, {}, Cursor::arrow,
                 fmt::format("after step {}: {}", format_grouped(c.step), c.text));
  }
}

/// Values that are no numbers stand on the axis in red: never hidden, never a gap without a reason.
void TrainingModel::draw_bad(Scene& scene, const std::string& run, const std::string& metric, const Series& s,
                             const CurveScale& at, Box area) {
  const auto [a, b] = visible(s, at);
  if (s.summary(a, b).bad == 0) return;
  const int columns = std::max(static_cast<int>(area.w / 3), 1);
  const double per = axis_.span() / columns;
  const auto all = s.columns(axis_.lo, axis_.hi + per, columns + 1, at.at(s));
  for (int c = 0; c <= columns; ++c) {
    const Series::Column& sum = all[static_cast<size_t>(c)];
    if (!sum.bad) continue;
    const float x =
        std::min(area.x + (static_cast<float>(c) + 0.5f) * area.w / static_cast<float>(columns), area.right());
    scene.rect({x - 1, area.bottom() - 8, 2, 8}, Ink::bad);
    scene.target({x - 3, area.bottom() - 10, 6, 12}, {plot, 0}, Cursor::hand,
                 fmt::format("{}{}: {} values of steps {} to {} are not finite", metric,
                             run == run_ ? std::string() : " of " + run, sum.bad, sum.first_step, sum.last_step));
  }
}

void TrainingModel::draw_marks(Scene& scene, const Chart& c, const Range& r, Box area) {
  for (const std::string& m : c.metrics) {
    each_behind(m, [&](const Compared& k, const Series& s, int) { draw_bad(scene, k.run, m, s, scale(k), area); });
    draw_bad(scene, run_, m, series_.at(m), scale(), area);
  }
  auto upright = [&](int64_t step, Ink ink, float width) {
    if (step < 0) return;
    const float x = axis_.to_px(x_of(step));
    if (x >= area.x && x <= area.right()) scene.line({x, area.y}, {x, area.bottom()}, ink, width);
  };
  upright(selected_, Ink::text, 2);  // a curve has the colour of the accent
  upright(hover_, Ink::secondary, 1);
  int64_t step = hover_ >= 0 ? hover_ : selected_;
  if (step < 0) return;
  const CurveScale at = scale();
  for (size_t i = 0; i < c.metrics.size(); ++i) {
    const Series& s = series_.at(c.metrics[i]);
    size_t k = s.nearest(step);
    if (!std::isfinite(s.value(k)) || at.of(s, k) < axis_.lo || at.of(s, k) > axis_.hi) continue;
    float x = axis_.to_px(at.of(s, k)), y = y_of(s.value(k), r, area);
    scene.rect({x - 4, y - 4, 8, 8}, Ink::panel, 1, 4);
    scene.rect({x - 3, y - 3, 6, 6}, series_ink(static_cast<int>(i)), 1, 3);
  }
}

}  // namespace tenon::views
