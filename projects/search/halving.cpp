#include "projects/search/halving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::projects {
namespace {

bool improves(double value, const std::optional<double>& best, int direction) {
  return std::isfinite(value) && (!best || (direction > 0 ? value > *best : value < *best));
}

}  // namespace

std::optional<double> value_at_rung(const std::vector<Report>& reports, int64_t step, int direction) {
  std::optional<double> best;
  for (const Report& r : reports) {
    if (improves(r.value, best, direction)) best = r.value;
    if (r.step >= step) return best ? best : std::numeric_limits<double>::quiet_NaN();
  }
  return {};
}

Halving::Halving(const SweepPlan& plan, const std::vector<std::vector<Report>>& others)
    : metric_(plan.metric), direction_(plan.direction) {
  if (plan.prune <= 0) return;
  for (int64_t step = plan.prune;; step *= plan.prune_factor) {
    std::vector<double> values;
    for (const auto& reports : others)
      if (const auto v = value_at_rung(reports, step, direction_); v && !std::isnan(*v)) values.push_back(*v);
    const auto goes_on = std::max<size_t>(1, (values.size() + 1) / static_cast<size_t>(plan.prune_factor));
    std::sort(values.begin(), values.end(), [&](double a, double b) { return plan.is_better(a, b); });
    Rung rung{step, {}, values.size()};
    if (values.size() >= goes_on) rung.cutoff = values[goes_on - 1];
    rungs_.push_back(rung);
    // Where none came there, none will have come farther.
    if (values.empty() || step > std::numeric_limits<int64_t>::max() / plan.prune_factor) break;
  }
}

const std::string& Halving::take(const Report& report) {
  if (improves(report.value, best_, direction_)) best_ = report.value;
  for (; verdict_.empty() && next_ < rungs_.size() && report.step >= rungs_[next_].step; ++next_) {
    const Rung& rung = rungs_[next_];
    if (!rung.cutoff) continue;
    const bool behind = !best_ || (direction_ > 0 ? *best_ < *rung.cutoff : *best_ > *rung.cutoff);
    if (behind)
      verdict_ = fmt::format(
          "pruned at step {}: its best {} so far is {}; of the trials that came this far ({} before it) those with "
          "{:.4g} "
          "or {} go on",
          report.step, metric_, best_ ? fmt::format("{:.4g}", *best_) : "not finite", rung.trials, *rung.cutoff,
          direction_ > 0 ? "more" : "less");
  }
  return verdict_;
}

}  // namespace tenon::projects
