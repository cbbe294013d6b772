#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tracing/step_record.h"

namespace tenon::tracing {

/// Recorded steps, one after the other, in the JSON that PyTorch's profiler writes: Perfetto, chrome://tracing and the tools for
/// PyTorch's traces open it. Ops, phases and steps as slices, forward to backward as flows, live memory as a counter.
std::string chrome_trace(const std::vector<std::shared_ptr<const StepRecord>>& steps);

}  // namespace tenon::tracing
