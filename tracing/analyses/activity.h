#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tracing/analyses/trace_analysis.h"

// What a machine did when: intervals of a trace by what they are, and arithmetic on them.
namespace tenon::tracing {

using Interval = std::pair<int64_t, int64_t>;  ///< from, to
using Intervals = std::vector<Interval>;       ///< sorted and apart after merged()

Intervals merged(Intervals all);
int64_t length(const Intervals& merged);
Intervals intersection(const Intervals& a, const Intervals& b);  ///< of merged ones
Intervals difference(const Intervals& a, const Intervals& b);
Intervals clipped(const Intervals& a, int64_t from, int64_t to);

/// By name, as every vendor's libraries call theirs.
bool is_communication(std::string_view kernel);
bool is_sync_call(std::string_view runtime_call);     ///< the CPU waits in it for the GPU
bool is_copy_call(std::string_view runtime_call);
bool is_data_loading(std::string_view annotation);
bool is_optimizer(std::string_view annotation);
bool is_backward(std::string_view op);

/// The GPU work of one step, sorted by start; work belongs to the step that launched it.
struct GpuWork {
  trace::EventId event = trace::kNone, launch = trace::kNone;
  int64_t start = 0, end = 0;
  uint32_t row = 0;
  bool communication = false, copy = false;
};
std::vector<GpuWork> gpu_work(const trace::Trace& trace);
/// Of all of them, those that were launched in [from, to).
std::vector<GpuWork> of_step(const trace::Trace& trace, const std::vector<GpuWork>& all, const TraceStep& step);

/// Slices of the CPU that a step's time is told by.
struct HostWork {
  Intervals data, sync, optimizer, backward, ops;  ///< merged, over all threads
};
HostWork host_work(const trace::Trace& trace);

/// The steps a request asks for: its one, or all. A first step of several is left out where it is more than twice the median: it warms up.
std::vector<TraceStep> asked_steps(const trace::Trace& trace, const TraceRequest& request);

/// Where the GPU had nothing to do inside of a step, and why; the parts add up to the whole.
struct Idle {
  int64_t busy = 0, idle = 0;
  int64_t data = 0, sync = 0, host = 0, communication = 0, other = 0;
  int64_t gaps = 0, longest = 0, longest_at = 0;
};
/// `gpu_free`: when the work of earlier steps was done; until then the GPU is not idle, whoever it works for.
Idle idle_of(const trace::Trace& trace, const std::vector<GpuWork>& step_work, const HostWork& host, const TraceStep& step, int64_t gpu_free = INT64_MIN);
/// The last end of all work launched before the step; INT64_MIN where there is none.
int64_t gpu_free_at(const trace::Trace& trace, const std::vector<GpuWork>& all, const TraceStep& step);

/// One stretch of the chain of events that a step's length is made of, and the name it goes by.
struct PathPiece {
  int64_t from = 0, to = 0;
  trace::EventId event = trace::kNone;  ///< kNone: nothing was recorded there
  enum class What : uint8_t { gpu, cpu, launch_delay, sync, nothing } what = What::nothing;
};
/// From the step's end back to its start; the pieces follow each other without gaps, so their lengths add up to the step's.
std::vector<PathPiece> critical_path(const trace::Trace& trace, const std::vector<GpuWork>& step_work, const TraceStep& step);
/// "kernel volta_sgemm", "aten::add (cpu)", "host: no op", ...
std::string piece_name(const trace::Trace& trace, const PathPiece& piece);

}  // namespace tenon::tracing
