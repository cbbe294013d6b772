#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/graph/step_plan.h"

namespace tenon {
class TrainingSession;
}

namespace tenon::tracing {

/// A kernel of a plan as plain values. Of a result whose memory another one takes, the last that needs it is the one
/// that does.
struct PlannedKernel {
  StepPlanRow row;
  int64_t arena_bytes = 0;  ///< of its first result, from `row.offset` on; 0: it lies elsewhere
  int taken_by = -1;        ///< the first kernel that puts its own result there meanwhile; -1: none
  int64_t peak_bytes = 0;   ///< of it, alive at SeenPlan::peak
};

/// A stretch of the arena while it holds the first result of a kernel. No two of a plan overlap.
struct ArenaPiece {
  int kernel = 0;
  int from = 0, to = 0;        ///< kernels [from, to) meanwhile
  int64_t begin = 0, end = 0;  ///< bytes [begin, end)
};

/// What the steps of a session come to as a plan, without the session.
struct SeenPlan {
  StepPlanFigures figures;
  std::vector<PlannedKernel> kernels;  ///< in the order in which they run
  std::vector<ArenaPiece> pieces;      ///< by kernel
  int peak = -1;  ///< the kernel beside which most bytes of results are alive; -1: none lies in the arena
  int64_t peak_bytes = 0;
  std::vector<std::string> told;  ///< TrainingSession::planned(); where there is no plan, why not: never empty then
  int64_t first_step = 0, last_step = 0;  ///< that were done to see it; 0: none was left
  bool planned() const { return !kernels.empty(); }
};

/// Two steps are traced, and one runs beside its plan.
inline constexpr int64_t kStepsUntilPlanned = 3;

/// Sets compile in the recipe of a session that stands before some steps, does up to kStepsUntilPlanned of them, and
/// tells what plan they came to. `go_on` is asked before each with done and total; false throws Error "cancelled".
/// Throws what a step throws.
SeenPlan see_plan(TrainingSession& session, const std::function<bool(int64_t done, int64_t total)>& go_on = {});
/// The same of a plan that is there.
SeenPlan seen_plan(const StepPlan& plan);

}  // namespace tenon::tracing
