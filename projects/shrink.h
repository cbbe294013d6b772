#pragma once
#include <string>

#include "engine/model/shrink.h"
#include "engine/train/session.h"
#include "projects/time_travel.h"

// A trained model with fewer channels, or with layers of lower rank, as a project to go on with.
namespace tenon::projects {

struct ShrinkOptions {
  double amount = 0.5;       ///< ShrinkChoice::amount
  bool zeros = false;        ///< ShrinkChoice::zeros
  double energy = 0;         ///< FactorChoice::energy: layers become two instead of losing channels; 0: they do not
  std::string layers = "*";  ///< names of layers, separated by commas; * stands for any text
};

struct ShrinkReport {
  std::string path, run;  ///< the project that was written; the run whose model was made smaller
  int64_t step = 0;
  ShrinkOptions options;
  Shrunk small;
  Evaluation before, after;  ///< on the test split, without a step of training between
  /// Of a forward pass of so many samples, without gradients: the median of several, one model after the other.
  double seconds = 0, seconds_after = 0;
  int64_t batch = 0;

  double times_faster() const { return seconds_after > 0 ? seconds / seconds_after : 0; }
  /// In words, a line each: sizes, speed, the metric, how to go on.
  std::string text() const;
};

/// The model of a run with its weights after a step.
struct TrainedModel {
  std::string run;
  int64_t step = 0;
  ModelSpec model;
  std::vector<nn::Named> tensors;  ///< its state_dict, on the host
};
TrainedModel trained_model(Project& project, const RunInfo& run, int64_t step, const Progress& progress = {});
/// What would go, and what that leaves: nothing is written, evaluated or timed.
Shrunk plan_shrink(const TrainedModel& trained, const ShrinkOptions& options);
/// Writes a new project of the smaller model (create_begun()), whose run "pruned" has the weights that stay. Throws
/// Error (usage) for options that do not fit, and where nothing would go; nothing is written then.
ShrinkReport shrink_run(Project& project, const RunInfo& run, int64_t step, const ShrinkOptions& options,
                        const std::string& path, const Progress& progress = {});

}  // namespace tenon::projects
