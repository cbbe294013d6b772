#pragma once
#include <string>
#include <utility>
#include <vector>

#include "projects/time_travel.h"
#include "tracing/record/step_difference.h"

namespace tenon::projects {

/// In what the second computation of a step differs from the first.
struct AuditOptions {
  int threads_a = 1, threads_b = 0;  ///< 0: every core
  /// Keys of the recipe that hold in the second alone, such as amp = bf16; they may not change what the state is made
  /// of.
  std::vector<std::pair<std::string, std::string>> set;
  double tolerance = 0;  ///< see tracing::compare_steps()
};
struct Audit {
  std::string run;
  int64_t step = 0;
  double loss_a = 0, loss_b = 0;
  tracing::StepDifference difference;
  /// "all 143 ops of step 40 are equal, bit for bit", or the first op that is not, with both values.
  std::string sentence;
};

/// Computes one step of a run twice from the same state and compares what every op gave. The number of threads of the
/// process is as before when it returns. Throws Error for a step that the run has not done, and for keys with which the
/// state cannot be gone on from.
Audit audit_step(Project& project, int64_t run, int64_t step, const AuditOptions& options,
                 const Progress& progress = {});

}  // namespace tenon::projects
