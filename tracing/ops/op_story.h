#pragma once
#include <cstdint>
#include <string>

#include "tracing/analyses/finding.h"

namespace tenon::tracing {

struct StepRecord;

/// One op of a recorded step from its call to its gradient, with the values that it met: who calls it with what, what
/// dispatch makes of that, what the kernel does and how fast, what is kept for the gradient, and the ops that the
/// gradient runs. Rows are about the ops of the step (Sight::event, of its timeline). Throws Error (usage) where the
/// step has no op of that number.
Finding op_story(const StepRecord& record, uint32_t seq);

/// Every call of an op in a recorded step, the longest first: whose it is, on what, how long, and at what rates.
Finding op_calls(const StepRecord& record, const std::string& op);

}  // namespace tenon::tracing
