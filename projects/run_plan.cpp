#include "projects/run_plan.h"

#include <algorithm>

#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "projects/teacher_file.h"

namespace tenon::projects {

std::unique_ptr<TrainingSession> fresh_session(Project& project) {
  const Recipe recipe = Recipe::from_json(project.recipe());
  auto session = std::make_unique<TrainingSession>(project.model(), recipe);
  if (session->lacks_teacher()) give_teacher(*session, read_teacher(project, recipe));
  return session;
}

tracing::SeenPlan plan_of_run(Project& project, int64_t run, const Progress& progress) {
  if (!run) return tracing::see_plan(*fresh_session(project), progress);
  const int64_t before = std::max<int64_t>(0, project.run(run).steps - tracing::kStepsUntilPlanned);
  return tracing::see_plan(*replay_to(project, run, before, progress), progress);
}

}  // namespace tenon::projects
