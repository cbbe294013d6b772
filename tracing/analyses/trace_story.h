#pragma once
#include <functional>
#include <vector>

#include "tracing/analyses/critical_path.h"
#include "tracing/analyses/idle.h"

namespace tenon::tracing {

/// What a trace's time is made of, from its first step to its last: what a timeline draws over the events.
struct TraceStory {
  /// The critical paths of the steps; in the order of time, never over each other.
  std::vector<PathPiece> path;
  /// Where the GPU had nothing to do within the steps, and why.
  std::vector<Gap> gaps;
  bool gpu = false;  ///< the trace has work of a GPU; without it there are no gaps
  /// Its events and times are so much larger in the store that its trace was joined to.
  void move(traces::EventId events, int64_t times);
};
/// `going_on(done, of)` is asked after every step; once it returns false, what is there is returned.
TraceStory trace_story(const traces::Trace& trace, const std::function<bool(int64_t done, int64_t of)>& going_on = {});

}  // namespace tenon::tracing
