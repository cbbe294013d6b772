#include "projects/begun_project.h"

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/train/callback.h"
#include "engine/train/recipe.h"
#include "engine/train/weight_map.h"
#include "projects/new_file.h"

namespace tenon::projects {

Recipe recipe_to_go_on(const Recipe& recipe) {
  Recipe r = recipe;
  for (const char* key : {"init.from", "init.run", "init.map", "init.match", "init.missing", "init.sha256", "init.anew",
                          "edits", "watches", "distill.from", "distill.features", "distill.sha256"})
    r.reset(key);
  for (bool again = true; again;) {
    again = false;
    for (const CallbackRow& row : callback_rows(r))
      if (row.on && row.place >= 0 && row.name == "prune") {
        r = without_callback(r, row);
        again = true;
        break;
      }
  }
  return r;
}

RunInfo create_begun(const std::string& path, const ModelSpec& model, const Recipe& recipe,
                     const std::vector<std::pair<std::string, Tensor>>& tensors, const std::string& run,
                     const std::string& note) {
  NewFile file(path);
  RunInfo made;
  try {
    TrainingSession session(model, recipe, {.only_state = true});
    std::vector<GivenTensor> given;
    for (const auto& [name, t] : tensors)
      given.push_back({name, tenon::name(t.dtype()), {t.size().begin(), t.size().end()}, t, {}});
    session.start_from(std::move(given));
    Recipe next = recipe;
    next.set_value("init.run", run + "@0");
    const auto project = Project::create(file.half(), model, next.to_json());
    const EpochLength epoch{session.steps_per_epoch(), session.samples_per_epoch(), recipe.integer("data.batch_size"),
                            0};
    made = project->new_run(run, model, recipe.to_json(), session.total_steps(), {}, epoch);
    project->save_checkpoint(made.id, session.save());
    project->describe_run(made.id, note, {});
    project->set_run_status(made.id, "stopped");
    made = project->run(made.id);
  } catch (const Error& e) {
    throw file.named(e);
  }
  file.put();
  return made;
}

}  // namespace tenon::projects
