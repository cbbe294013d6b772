#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/kernels/ceilings.h"
#include "tracing/analyses/finding.h"

namespace tenon::tracing {

struct StepRecord;

// Note [Under the roof]
// A call of f operations that moves b bytes takes at least max(f / peak, b / bandwidth): what it took beside that is
// how near it came to its ceiling (S. Williams, A. Waterman, D. Patterson: Roofline, CACM 52(4), 2009). f and b are
// what the op's definition says (Cost): bytes are those of its inputs and outputs, each counted once. So data that is
// still in a cache may come faster than the copy bandwidth, and operations in fewer bits than 32 faster than the peak:
// more than 100 %.

/// Why calls are not faster than they are.
enum class Limit : uint8_t {
  memory,      ///< their bytes take longer than their operations
  arithmetic,  ///< their operations take longer than their bytes
  size,        ///< they are over before the machine is busy
  unknown,     ///< the op says neither operations nor bytes
};
const char* name(Limit l);  ///< "memory", "arithmetic", "too small", "no ceiling known"

/// Calls shorter than this on average, in nanoseconds, are too small to fill the machine: starting an op and waking its
/// threads takes about as long.
inline constexpr int64_t kSmallCallNs = 5000;

/// The calls of an op that do the same work; those of an op that are small are one row.
struct RoofRow {
  std::string op;
  std::string sizes;            ///< of its inputs: "[64, 784] [784, 128]"; "6 sizes" where they differ
  std::vector<uint32_t> calls;  ///< sequence numbers in the last of the steps, the longest call first
  int64_t count = 0;            ///< in all steps
  int64_t ns = 0;               ///< in all steps
  double flops = 0, bytes = 0;  ///< in all steps
  double least_ns = 0;          ///< that the ceilings allow; 0: none known
  Limit limit = Limit::unknown;

  double intensity() const { return bytes > 0 ? flops / bytes : 0; }  ///< operations a byte
  double gflops() const { return ns > 0 ? flops / static_cast<double>(ns) : 0; }
  double gbytes() const { return ns > 0 ? bytes / static_cast<double>(ns) : 0; }
  /// GFLOP/s that the ceilings allow; 0 where there is no arithmetic.
  double ceiling() const { return least_ns > 0 ? flops / least_ns : 0; }
  /// Of its ceiling: 0.5 where half the time would do.
  double reached() const { return ns > 0 ? least_ns / static_cast<double>(ns) : 0; }
  /// Nanoseconds above what the ceilings allow.
  double to_win() const;
};

/// The time of recorded steps, op by op, against what the processor reaches at most.
struct Roofline {
  kernels::Ceilings ceilings;
  std::string run;
  int64_t first_step = 0, last_step = 0, steps = 0;
  int64_t step_ns = 0;        ///< of all steps
  int64_t ops_ns = 0;         ///< of their ops; the rest is between them
  int64_t near_ns = 0;        ///< of rows that reach half of their ceiling or more
  std::vector<RoofRow> rows;  ///< those with the most to win first
  std::string elsewhere;      ///< the device that a step ran on, where it is not the processor: there are no rows then
};

/// Of steps of one run that follow each other, at least one. Throws Error where there is none.
Roofline roofline(const std::vector<std::shared_ptr<const StepRecord>>& steps, const kernels::Ceilings& ceilings);
/// As a page: rows are about the longest call in `last`, the last of the steps (Sight::event, of its timeline).
Finding roofline_page(const Roofline& r, const StepRecord& last);

}  // namespace tenon::tracing
