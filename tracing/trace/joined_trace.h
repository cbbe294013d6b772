#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tracing/trace/trace_store.h"

namespace tenon::traces {

/// A trace, and where what it holds is in the store that several were joined to: an event, a row or a time of it and
/// this is that of the whole. A trace that was never joined is the whole itself.
struct TracePart {
  std::shared_ptr<const Trace> trace;
  EventId first_event = 0;
  uint32_t first_row = 0;
  int64_t shift = 0;  ///< nanoseconds

  bool holds(int64_t event) const {
    return trace && event >= first_event && event < first_event + static_cast<int64_t>(trace->size());
  }
};

struct JoinedTraces {
  std::shared_ptr<const Trace> whole;
  std::vector<TracePart> parts;  ///< in the order given
};
/// One store of the rows of all, those of a part behind each other, for who draws or searches all of them; analyses ask
/// the parts. `shifts` are added to the times of each, `names` stand before its processes. It holds the parts, which
/// have the texts of events, and 29 bytes an event of its own; counters and memory stay with the parts. Throws Error
/// where they hold more events than a store counts.
JoinedTraces join_traces(const std::vector<std::shared_ptr<const Trace>>& traces, const std::vector<int64_t>& shifts,
                         const std::vector<std::string>& names, const std::string& path);

}  // namespace tenon::traces
