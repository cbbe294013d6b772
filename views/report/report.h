#pragma once
#include <map>
#include <string>
#include <vector>

#include "engine/model/examine.h"
#include "engine/train/recipe.h"
#include "projects/results.h"
#include "views/results/sample_sight.h"
#include "views/shared/series.h"

namespace tenon::views {

/// Everything that is told of a run: what the page is made of.
struct RunReport {
  std::string project;  ///< name of the file, without its folder
  projects::RunInfo run;
  int64_t step = 0;
  std::vector<LayerReport> layers;  ///< by the model's order, at the recipe's batch
  int64_t batch = 0;
  Recipe recipe;  ///< with which the step was reached
  /// What the project's recipe (of a branch its parent's) would have to be told for a new run to be trained as this one
  /// was, and whether the model is another by now.
  std::vector<KeyDifference> from_project;
  bool model_changed = false;
  std::string surgery;        ///< of a branch: what its model has other than its parent's
  std::string input, target;  ///< "f32 [1, 28, 28]"
  int64_t train_samples = 0, classes = 0, targets = 1;
  std::map<std::string, Series> metrics;  ///< every point, by the name
  std::vector<WatchHit> watch_hits;
  std::vector<projects::CheckpointInfo> checkpoints;
  projects::Results results;
  /// Of the samples with the largest loss, the worst first.
  struct Seen {
    projects::Prediction prediction;
    SampleSight sight;
  };
  static constexpr size_t kSeen = 24;
  std::vector<Seen> worst;
  std::string state_digest, model_digest, recipe_digest;  ///< SHA-256
  int threads = 0;                                        ///< with which it was evaluated
};

/// Reads the file, replays to the step and evaluates it; away from the UI thread. Throws Error "cancelled" where a
/// progress says so.
RunReport read_report(projects::Project& project, const projects::RunInfo& run, int64_t step,
                      const projects::Progress& replaying = {}, const projects::Progress& evaluating = {});
/// One file of HTML with everything in it. The same bytes for the same run, whoever asks: it holds no time of its own.
std::string report_html(const RunReport& report);
/// Both, into a file whose name ends in .html or .htm. Returns what was done, in words. Throws Error naming the file.
std::string write_report(projects::Project& project, const projects::RunInfo& run, int64_t step,
                         const std::string& path, const projects::Progress& replaying = {},
                         const projects::Progress& evaluating = {});

}  // namespace tenon::views
