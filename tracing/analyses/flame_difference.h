#pragma once
#include <vector>

#include "tracing/analyses/flame.h"

namespace tenon::tracing {

/// Two flames in one: every path of either, with what it holds in A and in B. See Note [Paths that match].
struct FlamePair {
  struct Side {
    int64_t total = 0, self = 0, count = 0;
    traces::EventId longest = traces::kNone;  ///< of a trace
  };
  /// Each node holds by itself the more of what it does in A and in B, so that what either has can be seen.
  Flame flame{Unit::nanoseconds};
  std::vector<Side> a, b;  ///< by node of the flame
  int64_t change(uint32_t node) const { return b[node].total - a[node].total; }
  /// The numbers of the events of A and of B are so much larger in who shows them.
  void move_events(traces::EventId by_a, traces::EventId by_b);
};

/// Of whole traces: a mean step of each, or all of one that marks no steps. `progress` is told events; returning false
/// throws Error "cancelled".
FlamePair flame_difference(const traces::Trace& a, const traces::Trace& b,
                           const std::function<bool(uint64_t done, uint64_t total)>& progress = {});
/// Of snapshots: what is alive at the peak of the device with most events of each (or of `device`). Empty where one of
/// them recorded none.
FlamePair flame_difference(const snapshot::Snapshot& a, const snapshot::Snapshot& b, int64_t device = -1);
/// The same of any two, with what each holds divided by a number of steps.
FlamePair flame_difference(const Flame& a, const Flame& b, int64_t steps_a = 1, int64_t steps_b = 1);

/// The paths that hold more or less by themselves than they did, the largest change first; what is left out is summed
/// up in a last row, so that the changes add up.
Table stack_changes(const FlamePair& pair, size_t top);
/// "caller;callee 120 340": a path, what it holds by itself in A and in B; as flamegraph.pl reads differences.
std::string folded(const FlamePair& pair);

}  // namespace tenon::tracing
