#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "tracing/analyses/finding.h"
#include "tracing/trace/trace_store.h"

namespace tenon::tracing {

/// What is analysed and how.
struct TraceRequest {
  std::vector<std::shared_ptr<const traces::Trace>> traces;  ///< ranks of one session; for a comparison, A and B
  size_t top = 25;                                           ///< rows of a table at most
  int64_t step = -1;                                         ///< number of the ProfilerStep to look at; -1: all of them
  const traces::Trace& first() const { return *traces.front(); }
};

/// One analysis of traces, registered in the file that defines it; the command line, the window and the project read
/// the list.
///   const bool registered = register_trace_analysis({"kernels", "which kernels the GPU spent its time in", 1, run});
struct TraceAnalysis {
  std::string name, help;
  size_t min_traces = 1, max_traces = 1;
  Finding (*run)(const TraceRequest&);
};
bool register_trace_analysis(TraceAnalysis analysis, Place place = Place::current());
/// Sorted by name.
const Registry<TraceAnalysis>& trace_analyses();

/// For every event the event of the lane above that it lies in; kNone for outermost ones. One pass over each pair of
/// lanes.
std::vector<traces::EventId> parents(const traces::Trace& trace);

/// Tenon recorded it, not PyTorch: advice for the one is none for the other.
bool recorded_by_tenon(const traces::Trace& trace);

/// One training step: a ProfilerStep annotation, or, where the trace has none, the whole of it.
struct TraceStep {
  int64_t number = -1;  ///< -1: the whole trace
  int64_t start = 0, end = 0;
  uint32_t row = 0;  ///< of the annotation
};
std::vector<TraceStep> trace_steps(const traces::Trace& trace);

/// Sum of the lengths of the union of intervals; they are sorted in place.
int64_t union_length(std::vector<std::pair<int64_t, int64_t>>& intervals);

}  // namespace tenon::tracing
