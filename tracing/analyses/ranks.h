#pragma once
#include <memory>
#include <vector>

#include "tracing/trace/trace_store.h"

namespace tenon::tracing {

/// How a trace's clock stands to the first one's.
struct ClockOffset {
  int64_t ahead_ns = 0;   ///< subtract it from this trace's times
  int64_t spread_ns = 0;  ///< median distance of single collectives from it
  size_t matched = 0;     ///< collectives it was estimated from; 0: not aligned
};
/// By collectives that the traces share; see Note [One clock].
std::vector<ClockOffset> align_clocks(const std::vector<std::shared_ptr<const traces::Trace>>& traces);
/// What is added to the times of each to stand on the first one's axis, with the clocks aligned. What cannot be placed,
/// since a file says no time of day or one of another year, begins with the first one.
std::vector<int64_t> shifts_to_first(const std::vector<std::shared_ptr<const traces::Trace>>& traces);

}  // namespace tenon::tracing
