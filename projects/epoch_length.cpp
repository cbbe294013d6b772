#include "projects/epoch_length.h"

#include <exception>

#include "engine/train/recipe.h"
#include "projects/project.h"

namespace tenon::projects {

std::optional<double> EpochLength::epochs_after(int64_t step) const {
  if (steps <= 0) return {};
  return static_cast<double>(step + shift) / static_cast<double>(steps);
}

std::optional<int64_t> EpochLength::samples_after(int64_t step) const {
  if (steps <= 0) return {};
  const int64_t whole = (step + shift) / steps, rest = (step + shift) % steps;
  if (whole > 0 && samples <= 0) return {};
  return whole * samples + rest * batch;  // only the last batch of an epoch may be a smaller one
}

EpochLength epoch_of(const RunInfo& run) {
  if (run.epoch.steps > 0) return run.epoch;
  EpochLength e;
  try {
    const Recipe recipe = Recipe::from_json(run.changes.empty() ? run.recipe : run.changes.back().recipe);
    const int64_t epochs = recipe.integer("epochs"), limit = recipe.integer("max_steps");
    // A run that max_steps cuts short does not tell how long its epochs are.
    if ((limit > 0 && run.total_steps >= limit) || run.total_steps <= 0 || run.total_steps % epochs != 0) return e;
    e.steps = run.total_steps / epochs;
    e.batch = recipe.integer("data.batch_size");
    if (recipe.flag("data.drop_last")) e.samples = e.steps * e.batch;
  } catch (const std::exception&) {  // of a plug-in that is not here
    return {};
  }
  return e;
}

}  // namespace tenon::projects
