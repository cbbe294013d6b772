#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/train/surgery.h"
#include "projects/time_travel.h"

// What a branch of a run with another model would begin with (Note [Surgery]).
namespace tenon::projects {

struct SurgeryPlan {
  std::string run;
  int64_t step = 0;
  ModelSpec before, model;
  std::vector<SurgeryRow> rows;
  /// Of the batch of the next step in eval mode, the parent's and the branch's; NaN where the batch is left out.
  double loss = 0, loss_after = 0;

  /// They are the same but for rounding: within a millionth.
  bool keeps_function() const;
  /// In words, a line each: what changes, how much stays, the loss, how to go on.
  std::string text() const;
};

/// Does it beside everything: nothing is written. `set`: values of the recipe that the branch would have. Throws Error
/// (usage) where the models are the same.
SurgeryPlan plan_surgery(Project& project, const RunInfo& run, int64_t step, const ModelSpec& model,
                         const std::vector<std::pair<std::string, std::string>>& set = {},
                         const Progress& progress = {});

/// The run that did the step: of a branch's steps of before it was one, its parent.
RunInfo run_of_step(const Project& project, const RunInfo& run, int64_t step);

/// A model with another attribute of a layer, "fc1.out_features"; where that is the number of its channels, all that
/// goes with it follows (with_channels()). "fc1.off" takes a layer out, or puts it back. Throws Error (usage).
ModelSpec with_layer(const ModelSpec& model, const std::string& place, const std::string& value);

/// A model with a layer more, "Linear" or "more:Linear" behind the layer `behind`: what read that reads the new one.
/// Throws Error (usage).
ModelSpec with_inserted(ModelSpec model, const std::string& behind, const std::string& layer);
/// A model without a layer: what fed it feeds what it fed. Throws Error (usage).
ModelSpec with_removed(const ModelSpec& model, const std::string& name);

/// "fc1.out_features 64 → 96, more (Linear) added, act gone, other wires"; empty where both compute the same.
std::string model_changes(const ModelSpec& before, const ModelSpec& after);

}  // namespace tenon::projects
