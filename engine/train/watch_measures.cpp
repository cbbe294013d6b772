// What a watch may take of a tensor.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/train/watch.h"

namespace tenon {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double per_finite(const Moments& m, double sum) { return m.finite() ? sum / static_cast<double>(m.finite()) : kNone; }
double share_of(const Moments& m, int64_t n) {
  return m.any() ? static_cast<double>(n) / static_cast<double>(m.count) : kNone;
}
bool has_numbers(const Moments& m) { return m.count > m.nans; }

double low_of(const Moments& m) { return has_numbers(m) ? m.low : kNone; }
double high_of(const Moments& m) { return has_numbers(m) ? m.high : kNone; }
double max_abs_of(const Moments& m) { return has_numbers(m) ? std::max(std::fabs(m.low), std::fabs(m.high)) : kNone; }
double finite_mean(const Moments& m) { return per_finite(m, m.sum); }
double finite_std(const Moments& m) {
  const double mean = finite_mean(m);
  return std::sqrt(std::max(0.0, per_finite(m, m.squares) - mean * mean));
}
double whole_norm(const Moments& m) {
  if (!has_numbers(m)) return kNone;
  return m.infinite ? std::numeric_limits<double>::infinity() : std::sqrt(m.squares);
}

const bool registered_watch_measures[] = {
    register_watch_measure({"max_abs", "largest magnitude", max_abs_of}),
    register_watch_measure({"max", "largest value", high_of}),
    register_watch_measure({"min", "smallest value", low_of}),
    register_watch_measure({"mean", "mean of the finite values", finite_mean}),
    register_watch_measure({"std", "standard deviation of the finite values", finite_std}),
    register_watch_measure({"norm", "2-norm", whole_norm}),
    register_watch_measure(
        {"dead", "share of values that are 0", [](const Moments& m) { return share_of(m, m.zeros); }}),
    register_watch_measure({"saturated", "share of values of a magnitude of 0.99 or more, as of a tanh that is full",
                            [](const Moments& m) { return share_of(m, m.saturated); }}),
    register_watch_measure({"nonfinite", "how many values are NaN or infinite",
                            [](const Moments& m) { return static_cast<double>(m.nans + m.infinite); }}),
    register_watch_measure({"ratio", "2-norm of an update by that of the weights", whole_norm, true}),
};

}  // namespace
}  // namespace tenon
