#pragma once
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "engine/train/recipe.h"
#include "projects/project.h"
#include "projects/run_driver.h"
#include "views/shared/series.h"

namespace tenon::views {

/// What a project holds, as it was last read from its file.
struct ProjectContents {
  ModelSpec model;
  Recipe recipe;                           ///< of the next run
  std::string recipe_fault;                ///< why the file's recipe cannot be read; empty: it can
  std::vector<projects::RunInfo> runs;     ///< the oldest first
  std::vector<projects::RunInfo> deleted;  ///< runs that can be brought back
  std::vector<std::vector<projects::CheckpointInfo>> checkpoints;  ///< by run
  std::vector<projects::ArtifactInfo> artifacts;
  std::vector<projects::SweepInfo> sweeps;  ///< the oldest first
  std::vector<projects::SweepInfo> deleted_sweeps;

  /// Reads the file; away from the UI thread.
  static ProjectContents read(const projects::Project& project);
  const projects::RunInfo* run(int64_t id) const;  ///< null where there is none
  /// Of a branch: what its model has other than its parent's; empty where nothing, and for others.
  std::string surgery_of(const projects::RunInfo& run) const;
  /// The project's model is another than this run's, but for names, places and comments.
  bool has_another_model(const projects::RunInfo& run) const;
  const projects::CheckpointInfo* checkpoint(int64_t id) const;  ///< null where there is none
  const projects::SweepInfo* sweep(int64_t id) const;            ///< null where there is none
  /// The run that trains is as its driver says it is, which the file hears of later, and of a pause never.
  void follow(const projects::RunStatus& status);
};
/// The same of one run, where it is the one of the status.
void follow(projects::RunInfo& run, const projects::RunStatus& status);

/// Every point of every metric of a run, by the metric's name; away from the UI thread. Stops early where `cancelled`
/// is set.
std::map<std::string, Series> read_series(const projects::Project& project, int64_t run,
                                          const std::atomic<bool>& cancelled);

}  // namespace tenon::views
