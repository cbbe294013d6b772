#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracing/analyses/activity.h"

// What bounds the steps of a trace.
namespace tenon::tracing {

/// What takes time of the steps: what could be had for nothing, or the computation they are for.
struct Cause {
  const char* name;    ///< for programs: "data", "host", "sync", "communication", "copy", "compute"
  const char* bound;   ///< "data-bound"
  int64_t time;        ///< of the steps that would go if this were free
  std::string what;    ///< "ops on the CPU take 20 ms of each step"
  std::string within;  ///< ", 11 ms of it in aten::mm"; empty where nothing stands out
  std::string try_this;
  Sight sight = {};  ///< the longest piece of it
};

struct StepBounds {
  std::vector<Cause> causes;  ///< that which bounds the steps first
  int64_t total = 0;          ///< time of the steps
  int64_t steps = 0;
  bool whole = false;              ///< the trace marks no steps: all of it is one
  bool own = false;                ///< recorded by Tenon, which has no trace without a step
  std::optional<double> gpu_busy;  ///< share of the steps; nothing where the trace has no GPU

  /// "The step is data-bound: ..., 34 % of 12 ms; try this: ...": of the first cause.
  std::string sentence() const;
};
/// There is a step at least.
StepBounds bounds_of(const traces::Trace& trace, const std::vector<TraceStep>& steps);

}  // namespace tenon::tracing
