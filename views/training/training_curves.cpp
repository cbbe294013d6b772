// The lines of the charts, and what is marked on them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"
#include "views/training/training_model.h"

namespace tenon::views {

namespace {
// Software GL draws some ten thousand shapes in the time of a frame.
constexpr float kMostLines = 5'000;  ///< pixel columns of compared runs that are drawn as lines; more are bands
constexpr float kMostBands = 5'000;  ///< see TrainingModel::coarseness()
constexpr int kMostColumn = 8;       ///< pixels: wider ones would be stairs

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
  float columns = 0;
  for (const Chart& c : charts)
    for (const std::string& m : c.metrics)
      each_behind(m, [&](const Compared& k, const Series& s, int) {
        const auto [a, b] = visible(s, scale(k));
        columns += std::min(static_cast<float>(b - a), width);
      });
  return columns <= kMostLines ? 0 : std::clamp(static_cast<int>(std::ceil(columns / kMostBands)), 1, kMostColumn);
}

/// One upright stretch a column, from the lowest to the highest, that reaches to its neighbour: the shape of the line
/// as it is seen from far. Columns that look the same are one.
void TrainingModel::draw_bands(Scene& scene, const Series& s, const CurveScale& at, const Range& r, Box area,
                               const Pen& pen, std::vector<Bad>& bad) const {
  const int columns = std::max(static_cast<int>(area.w) / pen.column, 1);
  const double per = axis_.span() / columns;
  const float wide = area.w / static_cast<float>(columns);
  float before_top = 0, before_bottom = 0;  // of the column before; the same where there is none
  Box band;                                 // not drawn yet; without width: none
  const auto end_band = [&] {
    if (band.w > 0) scene.rect(band, pen.ink, pen.alpha);
    band = {};
  };
  const auto all = s.columns(axis_.lo, axis_.hi + per, columns + 1, at.at(s));
  for (int k = 0; k <= columns; ++k) {
    const Series::Column& c = all[static_cast<size_t>(k)];
    const float x = area.x + static_cast<float>(k) * wide;
    if (c.bad) bad.push_back({x + wide / 2, c.bad, c.first_step, c.last_step});
    if (!c.finite) {
      if (!c.bad) continue;
      end_band();
      before_top = before_bottom = 0;
      continue;
    }
    const float high = y_of(c.max, r, area), low = y_of(c.min, r, area);
    float top = high, bottom = low;
    if (before_top < before_bottom) top = std::min(top, before_bottom), bottom = std::max(bottom, before_top);
    before_top = high;
    before_bottom = std::max(low, high + 0.01f);
    top = std::floor(top);
    bottom = std::max(std::ceil(bottom), top + 1);
    const bool same = std::fabs(band.y - top) < 1.5f && std::fabs(band.bottom() - bottom) < 1.5f;
    if (band.w > 0 && same && band.y <= top && band.bottom() >= bottom) {
      band.w = x + wide - band.x;
      continue;
    }
    end_band();
    band = {x, top, wide, bottom - top};
  }
  end_band();
}

void TrainingModel::draw_series(Scene& scene, const Series& s, const CurveScale& at, const Range& r, Box area,
                                const Pen& pen, std::vector<Bad>& bad) const {
  const int columns = std::max(static_cast<int>(area.w), 1);
  const auto [a, b] = visible(s, at);
  if (pen.column > 0 && b - a > static_cast<size_t>(columns / pen.column))
    return draw_bands(scene, s, at, r, area, pen, bad);
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
      const float x = axis_.to_px(at.of(s, i));
      if (!std::isfinite(s.value(i))) {
        bad.push_back({x, 1, s.step(i), s.step(i)});
        end_line(pen.width);
        continue;
      }
      line.push_back({x, y_of(s.value(i), r, area)});
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
    const float x = axis_.to_px(axis_.lo + (k + 0.5) * per);
    if (c.bad) bad.push_back({x, c.bad, c.first_step, c.last_step});
    if (!c.finite) {
      if (c.bad) end_line(thin);
      continue;
    }
    const float low = y_of(c.min, r, area), high = y_of(c.max, r, area);
    const bool falls = !line.empty() && std::fabs(line.back().y - high) < std::fabs(line.back().y - low);
    line.push_back({x, falls ? high : low});
    if (low != high) line.push_back({x, falls ? low : high});
  }
  end_line(thin);
}

void TrainingModel::draw_curves(Scene& scene, const Chart& c, const Range& r, Box area) {
  bad_.clear();
  std::vector<Bad> bad;
  const auto note = [&](const std::string& run, const std::string& metric) {
    for (Bad& b : bad) {
      b.run = &run;
      b.metric = &metric;
      bad_.push_back(b);
    }
    bad.clear();
  };
  for (const std::string& m : c.metrics)
    each_behind(m, [&](const Compared& k, const Series& s, int i) {
      const Ink ink = i < 0 ? Ink::baseline : compared_ink(i);
      draw_series(scene, s, scale(k), r, area,
                  {ink, column_ > 0 ? 1 : 1.6f, 1, i >= 0 && s.size() <= 60, i < 0 ? 0 : column_}, bad);
      note(k.run, m);
    });
  for (size_t i = 0; i < c.metrics.size(); ++i) {
    const Series& s = series_.at(c.metrics[i]);
    const bool smooth = smoothing_ > 0 && s.size() > 30 && smooths(quantity_of(c.metrics[i]));
    const Ink ink = series_ink(static_cast<int>(i));
    Pen pen{ink, 1.6f, 1, s.size() <= 60, 0};
    if (smooth) pen.width = 1, pen.alpha = 0.35f;
    draw_series(scene, s, scale(), r, area, pen, bad);
    note(run_, c.metrics[i]);
    if (!smooth) continue;
    // The smoothed line lies over the raw one, never instead of it.
    draw_series(scene, smoothed_[c.metrics[i]].of(s, smoothing_), scale(), r, area, {ink, 2, 1, false, 0}, bad);
    bad.clear();  // those of the raw line
  }
}

void TrainingModel::draw_changes(Scene& scene, Box area) {
  for (const Change& c : changes_) {
    const float x = axis_.to_px((x_of(c.step) + x_of(c.step + 1)) / 2);  // between the steps that it parts
    if (x < area.x || x > area.right()) continue;
    scene.line({x, area.y}, {x, area.bottom()}, Ink::warning, 1, 0.8f);
    scene.rect({x - 3, area.y, 6, 6}, Ink::warning, 1, 3);
    scene.target({x - 5, area.y, 10, 14}, {}, Cursor::arrow, tr("after step {}: {}", format_grouped(c.step), c.text));
  }
}

/// On the axis; those that would stand in one place are one, which leads to the first of them.
void TrainingModel::draw_watch_marks(Scene& scene, Box area) {
  constexpr float kApart = 6, kShown = 3;
  // Many lines would hide what they are about: then the marks stand at the axis alone.
  constexpr int kMostUpright = 16;
  const auto seen = std::count_if(marks_.begin(), marks_.end(), [&](const Mark& m) {
    const float x = axis_.to_px(x_of(m.step));
    return x >= area.x && x <= area.right();
  });
  for (size_t i = 0; i < marks_.size();) {
    const Mark& first = marks_[i];
    const float x = axis_.to_px(x_of(first.step));
    size_t end = i + 1;
    while (end < marks_.size() && axis_.to_px(x_of(marks_[end].step)) - x < kApart) ++end;
    const auto more = static_cast<int64_t>(end - i) - 1;
    const int64_t last = marks_[end - 1].step;
    i = end;
    if (x < area.x || x > area.right()) continue;
    std::string tip = first.text;
    if (more > 0) tip += "\n" + tr("and {} more up to step {}", format_grouped(more), format_grouped(last));
    if (!still_) tip += "\n" + tr("Click: to step {}", format_grouped(first.step));
    if (seen <= kMostUpright) scene.line({x, area.y}, {x, area.bottom()}, Ink::accent, 1, 0.45f);
    scene.polyline({{x - kShown - 1, area.bottom()}, {x, area.bottom() - 7}, {x + kShown + 1, area.bottom()}},
                   Ink::accent, 2);
    scene.target({x - 5, area.bottom() - 10, 10, 14}, {watch_mark, first.step}, Cursor::hand, std::move(tip));
  }
}

/// Values that are no numbers stand on the axis in red: never hidden, never a gap without a reason.
void TrainingModel::draw_bad(Scene& scene, Box area) {
  for (size_t i = 0; i < bad_.size();) {
    Bad b = bad_[i++];
    const float from = b.x;
    for (; i < bad_.size() && bad_[i].run == b.run && bad_[i].metric == b.metric && bad_[i].x - from < 3; ++i) {
      b.count += bad_[i].count;
      b.last_step = bad_[i].last_step;
    }
    const float x = std::clamp(from, area.x, std::max(area.right(), area.x));
    if (from < area.x - 1 || from > area.right() + 1) continue;
    scene.rect({x - 1, area.bottom() - 8, 2, 8}, Ink::bad);
    scene.target(
        {x - 3, area.bottom() - 10, 6, 12}, {plot, 0}, Cursor::hand,
        tr("{}: {} values of steps {} to {} are not finite",
           *b.run == run_ ? *b.metric : tr("{} of {}", *b.metric, *b.run), b.count, b.first_step, b.last_step));
  }
}

void TrainingModel::draw_marks(Scene& scene, const Chart& c, const Range& r, Box area) {
  draw_bad(scene, area);
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
