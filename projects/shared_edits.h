#pragma once
#include <memory>
#include <mutex>
#include <optional>

#include "engine/train/recipe.h"
#include "projects/project.h"

namespace tenon::projects {

/// Saves what a person edits (the model, the recipe of the next run) into a project that others may edit at the same
/// time, and loses nothing of either. One for each window that edits; every call is safe from any thread.
class SharedEdits {
 public:
  explicit SharedEdits(std::shared_ptr<Project> project) : project_(std::move(project)) {}

  /// `base`: the model of the file that `mine` was made from. One that somebody else put there since is replaced, and
  /// kept for replaced_model().
  void save_model(const ModelSpec& base, const ModelSpec& mine);
  /// The key values that somebody else set since `base` stay, but where `mine` sets the same keys. Returns what the
  /// file holds now.
  Recipe save_recipe(const Recipe& base, const Recipe& mine);
  /// The last model of somebody else that was replaced since this was asked for last.
  std::optional<ModelSpec> replaced_model();

 private:
  std::shared_ptr<Project> project_;
  std::mutex mutex_;
  // What was written last, as it was given: a second edit may be on its way before the first is known to be saved.
  std::optional<ModelSpec> own_model_;
  std::optional<Recipe> own_recipe_;
  std::optional<ModelSpec> replaced_;
};

}  // namespace tenon::projects
