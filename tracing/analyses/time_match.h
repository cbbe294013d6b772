#pragma once
#include <cstdint>
#include <vector>

#include "tracing/trace/trace_store.h"

namespace tenon::tracing {

/// Which time of a trace B belongs to a time of a trace A: the same place of the step of that number, where both have
/// steps (of the step that comes as far, where no number is in both); else what is as far from the beginning. Between
/// steps it is what lies between theirs, outside of all as far from the nearest.
class TimeMatch {
 public:
  /// Times are counted from an origin in each.
  TimeMatch(const traces::Trace& a, int64_t origin_a, const traces::Trace& b, int64_t origin_b);
  double to_b(double a) const { return across(a, 0, 1); }
  double to_a(double b) const { return across(b, 1, 0); }
  /// How many steps were matched; 0: none, only the beginnings.
  size_t steps() const { return steps_; }

 private:
  struct Knot {
    double at[2];  ///< in A, in B
  };
  double across(double t, int from, int to) const;
  bool add(int64_t a, int64_t b);
  std::vector<Knot> knots_;  ///< ascend in both; there is one at least
  size_t steps_ = 0;
};

}  // namespace tenon::tracing
