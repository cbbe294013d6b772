#pragma once
#include <optional>
#include <string>

#include "tracing/snapshot/snapshot.h"
#include "tracing/trace/counter_curve.h"

namespace tenon::tracing {

/// The memory of a device, as a snapshot recorded it, on the axis of a trace of the same run: bytes alive. Nothing
/// where their clocks do not agree: the trace does not tell the time of day, the snapshot's events have no times or
/// these go back, or the two share no moment. Of a long recording the highest of every so many events stands for them.
/// `timeline` is that of the snapshot's trace `device`.
std::optional<traces::CounterCurve> memory_beside(const traces::Trace& trace, const snapshot::Snapshot& snapshot,
                                                  const snapshot::Timeline& timeline, size_t device, std::string name);

}  // namespace tenon::tracing
