#pragma once
#include <cstdint>

#include "engine/graph/step_trace.h"

namespace tenon {

// Note [Computed again]
// What backward needs of forward is alive between the two, and most of it is: a step's memory has its peak there. Some
// of it is quickly made again from what is alive anyway: the result of a pointwise kernel or of a norm, whose input
// backward needs as well. Such a kernel runs a second time before the first that needs its result behind the peak, and
// its first result is gone once forward has read it. Kernels give the same bits whenever they run; nothing that draws
// numbers or writes into its inputs is run twice.

/// Changes the trace so that most bytes of what it makes, alive at once, are fewer; what cannot be lowered so stays as
/// it is. Returns how many kernels run again; their steps are `again`.
int64_t compute_again(StepTrace& trace);

}  // namespace tenon
