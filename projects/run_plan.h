#pragma once
#include <cstdint>
#include <memory>

#include "projects/time_travel.h"
#include "tracing/ops/seen_plan.h"

namespace tenon::projects {

/// A session of the project's model and recipe before its first step, of which nothing is kept. Throws Error as
/// TrainingSession does, and where the teacher of the recipe cannot be read.
std::unique_ptr<TrainingSession> fresh_session(Project& project);

/// What the last steps of a run come to as a plan, done again on the calling thread; run 0: the first ones of a fresh
/// start. `progress` counts the steps, those on the way there first. Throws Error as replay_to() and the steps do.
tracing::SeenPlan plan_of_run(Project& project, int64_t run, const Progress& progress = {});

}  // namespace tenon::projects
