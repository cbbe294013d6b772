#pragma once
#include <optional>
#include <vector>

#include "tracing/analyses/overview.h"
#include "tracing/checks/check.h"

namespace tenon::tracing {

/// A trace with what several checks read of it.
struct CheckedTrace {
  explicit CheckedTrace(std::shared_ptr<const traces::Trace> trace);
  std::shared_ptr<const traces::Trace> trace;
  std::vector<TraceStep> steps;      ///< those that asked_steps() gives
  int64_t length = 0;                ///< of these, in nanoseconds
  std::optional<Overview> overview;  ///< of these steps
};

/// Sorted by name.
const Registry<FileCheck<CheckedTrace>>& trace_checks();
bool register_trace_check(FileCheck<CheckedTrace> check, Place place = Place::current());
std::vector<CheckResult> check_trace(std::shared_ptr<const traces::Trace> trace);

}  // namespace tenon::tracing
