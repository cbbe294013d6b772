#pragma once
#include "tracing/record/step_difference.h"

namespace tenon {
class TrainingSession;
}

namespace tenon::tracing {

/// Runs the session's next step, and every op of it once more in f64 on the very values that the op was given: how far
/// each op alone is from what it should give. The session then stands after that step; not a bit of it is another.
/// In the differences A is the op, B its reference. `unknown` counts ops that have no kernel for f64; ops that draw
/// random numbers are left out.
struct F64Reference {
  double loss = 0;
  StepDifference difference;
};
F64Reference compare_with_f64(TrainingSession& session, double tolerance);

}  // namespace tenon::tracing
