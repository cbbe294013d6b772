// What a person edits goes into the project file: the model, and the recipe of the next run.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "views/shell/workbench.h"

namespace tenon::views {

void Workbench::save_model() {
  if (!project_) return;
  auto project = project_;
  ModelSpec spec = builder.spec();
  files.start(
      "save", tr("Save the model"),
      [edits = edits_, base = contents_.model, spec](const Jobs::Report&, const std::atomic<bool>&) {
        edits->save_model(base, spec);
      },
      [this, project, spec] {
        if (project != project_) return;
        contents_.model = spec;
        if (spec == builder.spec()) unsaved_ = false;
        if (std::exchange(save_failed_, false)) log(tr("The model is saved now"));
        tell_replaced_model();
        emit state_changed();
      },
      [this, project](const QString& message, const QString& hint) {
        if (project == project_ && !project->read_only()) save_again_.start();  // a full disk has room again one day
        if (project != project_ || !std::exchange(save_failed_, true))
          fail(tr("The model could not be saved"), message, hint);
      },
      true);
}

void Workbench::set_recipe(const Recipe& recipe) {
  if (!project_ || (recipe == contents_.recipe && contents_.recipe_fault.empty())) return;
  contents_.recipe = recipe;
  contents_.recipe_fault.clear();
  builder.set_batch(recipe.integer("data.batch_size"));
  ++recipe_edits_;
  recipe_unsaved_ = true;
  save_recipe();
  emit recipe_changed();
  emit state_changed();
}

/// Jobs of one queue run in order: a run that is started next has this recipe.
void Workbench::save_recipe() {
  if (!project_) return;
  auto project = project_;
  files.start(
      "recipe", tr("Save the recipe"),
      [shared = edits_, base = file_recipe_, mine = contents_.recipe](const Jobs::Report&, const std::atomic<bool>&) {
        return shared->save_recipe(base, mine);
      },
      [this, project, edits = recipe_edits_](Recipe saved) {
        if (project != project_) return;
        if (edits == recipe_edits_) {
          recipe_unsaved_ = false;
          take_recipe(std::move(saved));
        }
        if (std::exchange(recipe_save_failed_, false)) log(tr("The recipe is saved now"));
      },
      [this, project](const QString& message, const QString& hint) {
        if (project == project_ && !project->read_only()) save_again_.start();
        if (project != project_ || !std::exchange(recipe_save_failed_, true))
          fail(tr("The recipe could not be saved"), message, hint);
      },
      true);
}

/// An edit of the last moment is kept, also one whose job has not had its turn.
void Workbench::save_last_edits() {
  // Those of a project that was left wait in the queue. (One that is done, but was not handed over, is no longer
  // there.)
  auto waits = [this] {
    const auto all = files.list();
    return std::any_of(all.begin(), all.end(), [](const auto& j) { return j->tag == "save" || j->tag == "recipe"; });
  };
  while (waits()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  if (!project_) return;
  try {
    if (unsaved_) edits_->save_model(contents_.model, builder.spec());
    if (recipe_unsaved_) edits_->save_recipe(file_recipe_, contents_.recipe);
  } catch (const std::exception& e) {
    qWarning("The last edit could not be saved: %s", e.what());
  }
}

}  // namespace tenon::views
