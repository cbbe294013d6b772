#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tracing/step_record.h"

namespace tenon {
class TrainingSession;
}

namespace tenon::tracing {

/// The timeline of some steps in a row, without their tensors.
struct Profile {
  struct Step {
    int64_t step = 0, start_ns = 0, end_ns = 0;
  };
  std::vector<OpEvent> events;  ///< sorted by start; seq counts within a step
  std::vector<Step> steps;
};
/// Runs `count` steps of the session with the op timeline on.
Profile record_profile(TrainingSession& session, int64_t count);

/// As Chrome-trace JSON in the fields PyTorch's profiler writes: cpu_op slices, ProfilerStep annotations, thread names.
std::string chrome_trace(const Profile& profile, const std::string& run);

}  // namespace tenon::tracing
