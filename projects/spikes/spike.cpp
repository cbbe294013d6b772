#include "projects/spikes/spike.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/median.h"

namespace tenon::projects {
namespace {

constexpr size_t kAround = 20, kLeastBefore = 5, kAfter = 4;
constexpr double kStandsOut = 10, kFirstStandsOut = 4, kGone = 0.35, kFirstGone = 0.6;

/// What a point is held against.
struct Usual {
  double median = std::numeric_limits<double>::quiet_NaN(), spread = 0;
  bool before = true;  ///< of the points before it
};

Usual usual_of(const std::vector<MetricPoint>& points, size_t begin, size_t end) {
  std::vector<double> values;
  for (size_t i = begin; i < end; ++i)
    if (std::isfinite(points[i].value)) values.push_back(points[i].value);
  Usual u;
  if (values.empty()) return u;
  u.median = median_of(values);
  for (double& v : values) v = std::fabs(v - u.median);
  u.spread = std::max({1.4826 * median_of(values), 0.05 * std::fabs(u.median), 1e-12});
  return u;
}

Usual usual_around(const std::vector<MetricPoint>& points, size_t at) {
  if (at >= kLeastBefore) return usual_of(points, at > kAround ? at - kAround : 0, at);
  const size_t begin = std::min(at + kAfter, points.size());
  Usual u = usual_of(points, begin, std::min(begin + kAround, points.size()));
  u.before = false;
  return u;
}

/// How far a point lies above what is usual; 0 where it does not stand out.
double rise_of(double value, const Usual& u) {
  if (std::isnan(u.median)) return 0;
  if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
  const double rise = value - u.median;
  if (!u.before) return value > kFirstStandsOut * std::max(u.median, 0.0) ? rise : 0;
  return rise > kStandsOut * u.spread ? rise : 0;
}

Spike spike_of(const MetricPoint& p, const Usual& u) {
  Spike s{p.step, p.value, u.median, 0};
  s.limit = std::isfinite(p.value) ? u.median + (u.before ? kGone : kFirstGone) * (p.value - u.median)
                                   : u.median + kStandsOut * u.spread;
  return s;
}

}  // namespace

std::optional<Spike> find_spike(const std::vector<MetricPoint>& loss) {
  struct Found {
    size_t first = 0;
    double rise = 0;
  } best, best_first;
  size_t first = 0, last = 0;
  bool open = false;
  for (size_t i = 0; i < loss.size(); ++i) {
    const double rise = rise_of(loss[i].value, usual_around(loss, i));
    if (rise <= 0) continue;
    if (!open || i > last + 2) first = i;  // those that stand out together
    open = true;
    last = i;
    Found& of = first < kLeastBefore ? best_first : best;
    if (rise > of.rise) of = {first, rise};
  }
  const Found& found = best.rise * kFirstStandsOut >= best_first.rise && best.rise > 0 ? best : best_first;
  if (found.rise <= 0) return {};
  return spike_of(loss[found.first], usual_around(loss, found.first));
}

Spike spike_at(const std::vector<MetricPoint>& loss, int64_t step) {
  const auto at = std::find_if(loss.begin(), loss.end(), [&](const MetricPoint& p) { return p.step == step; });
  if (at == loss.end()) throw Error::usage(fmt::format("the run has no loss of step {}", step));
  const Usual u = usual_around(loss, static_cast<size_t>(at - loss.begin()));
  if (std::isnan(u.median))
    throw Error::usage(fmt::format("there are no losses around step {} to hold it against", step),
                       "Go on with the run first.");
  if (std::isfinite(at->value) && at->value <= u.median + u.spread)
    throw Error::usage(
        fmt::format("the loss of step {} does not stand out: it is {:.4g}, and {:.4g} is usual around it", step,
                    at->value, u.median));
  return spike_of(*at, u);
}

}  // namespace tenon::projects
