#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tracing/analyses/call_tree.h"
#include "tracing/analyses/critical_path.h"

// A mean step of a trace, by what is called from where.
namespace tenon::tracing {

/// What a part of a step's time is.
struct PartKey {
  enum class What : uint8_t { gpu, cpu, wait, gap, launch_delay, between };
  uint32_t node = 0;               ///< of the call tree
  uint32_t after = traces::kNone;  ///< gap: name in the tree of what had ended when it began
  What what = What::gpu;
  bool operator==(const PartKey&) const = default;
};
struct PartHash {
  size_t operator()(const PartKey& k) const {
    uint64_t h = (uint64_t{k.node} << 32 | k.after) * 0x9E3779B97F4A7C15ull +
                 static_cast<uint64_t>(k.what) * 0xC2B2AE3D27D4EB4Full;
    return static_cast<size_t>(h ^ h >> 29);
  }
};

/// Of a mean step, in nanoseconds: what lies on the critical path; all of it, on the path or not; how often it ran.
struct PartSum {
  double path = 0, work = 0, calls = 0;
  traces::EventId longest = traces::kNone;  ///< the longest event of it
  int64_t longest_ns = -1;
  void see(traces::EventId event, int64_t ns) {
    if (event != traces::kNone && ns > longest_ns) longest = event, longest_ns = ns;
  }
};

struct StepSums {
  double length = 0;  ///< mean
  size_t steps = 0;
  bool whole = false;                                    ///< the trace marks no steps: all of it is one
  std::unordered_map<PartKey, PartSum, PartHash> parts;  ///< `path` of all of them adds up to the length
};
StepSums step_sums(const traces::Trace& trace, const std::vector<TraceStep>& steps, CallTree& tree);

}  // namespace tenon::tracing
