#include "projects/shared_edits.h"

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tenon::projects {

void SharedEdits::save_model(const ModelSpec& base, const ModelSpec& mine) {
  const std::lock_guard lock(mutex_);
  ModelSpec found = project_->model();
  project_->set_model(mine);
  if (!(found == base) && !(found == mine) && found != own_model_) replaced_ = std::move(found);
  own_model_ = mine;
}

Recipe SharedEdits::save_recipe(const Recipe& base, const Recipe& mine) {
  const std::lock_guard lock(mutex_);
  std::optional<Recipe> found;
  try {
    found = Recipe::from_json(project_->recipe());
  } catch (const Error&) {  // it cannot be read, and is replaced by one that can
  }
  const bool of_others = found && !(*found == base) && found != own_recipe_;
  Recipe now = of_others ? merged(base, mine, *found) : mine;
  project_->set_recipe(now.to_json());
  own_recipe_ = mine;
  return now;
}

std::optional<ModelSpec> SharedEdits::replaced_model() {
  const std::lock_guard lock(mutex_);
  return std::exchange(replaced_, {});
}

}  // namespace tenon::projects
