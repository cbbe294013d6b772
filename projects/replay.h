#pragma once
#include <memory>

#include "projects/run_driver.h"

namespace tenon {
class TrainingSession;
}

namespace tenon::projects {

/// A session in the state after step `step` of a run: its nearest earlier checkpoint, replayed.
std::unique_ptr<TrainingSession> replay_to(Project& project, int64_t run, int64_t step, const Progress& progress);

}  // namespace tenon::projects
