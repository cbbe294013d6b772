#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::tracing {

/// What a Chrome trace (ours, or one of PyTorch's profiler) holds, counted in one pass that keeps no events.
struct TraceInfo {
  int64_t events = 0;
  std::vector<std::pair<std::string, int64_t>> categories;  ///< most frequent first; at most 1,000 are told apart
  std::vector<std::string> keys;                            ///< of the outermost object, beside its events
};
/// Throws Error where the text is no JSON, with the place, or no trace.
TraceInfo trace_info(std::string_view json);

}  // namespace tenon::tracing
