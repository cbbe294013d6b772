#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/state.h"
#include "tracing/trace/trace_store.h"

namespace tenon {
class TrainingSession;
struct Tick;
}  // namespace tenon

namespace tenon::tracing {

/// What an event of our own profiler was; when and where it ran stands in the store.
struct OpEvent {
  uint32_t seq = 0;     ///< index + 1 into StepRecord::ops; 0: a span around ops ("forward", "load batch")
  uint16_t module = 0;  ///< module_path()
  Phase phase = Phase::none;
};

/// What our own profiler saw: a store like that of any trace, and what each of its events was.
struct OwnTrace {
  struct Step {
    int64_t step = 0, start_ns = 0, end_ns = 0;
  };
  std::shared_ptr<const traces::Trace>
      store;  ///< times count from the start of the recording; row 0 is the training thread, others load data
  std::shared_ptr<const std::vector<OpEvent>> ops;  ///< by the store's number() of an event
  std::vector<Step> steps;
  const OpEvent& op(traces::EventId e) const { return (*ops)[store->number(e)]; }
};

/// From what profile_stop() gave. Steps become annotations ("ProfilerStep#7"), as PyTorch writes them.
OwnTrace own_trace(const std::vector<Tick>& ticks, int64_t start_ns, std::vector<OwnTrace::Step> steps,
                   const std::string& run);
/// Runs `count` steps of the session with the profiler on. Sequence numbers count within a step.
OwnTrace record_profile(TrainingSession& session, int64_t count, const std::string& run);

}  // namespace tenon::tracing
