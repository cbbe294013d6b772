#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "projects/project.h"
#include "views/runs/keyed_values.h"

namespace tenon::views {

/// A value of a run that can be compared and sorted: a number, or words.
struct RunValue {
  bool number = false;
  double x = 0;
  std::string text;  ///< as it is shown; of a number, too
  bool operator==(const RunValue&) const = default;
};

/// What became of one metric of a run.
struct MetricEnd {
  double last = 0;
  double best = 0;        ///< of the finite values; NaN where the metric has no better and worse, or none is finite
  int64_t best_step = 0;  ///< where it was reached first
};

/// A run as a row of a table: what it was told, and what came of it.
struct RunRow {
  projects::RunInfo info;
  std::string surgery;  ///< of a branch: what its model has other than its parent's
  /// By key: "optimizer.lr". Of a run whose recipe was changed on the way the last value, with all of them as text.
  KeyedValues<RunValue> recipe;
  KeyedValues<MetricEnd> metrics;  ///< by name: "loss", "test_accuracy"
};

/// What a branch has and was told other than its parent, at the step where it began:
/// "fc1.out_features 64 → 96, optimizer.lr 0.01 → 0.003".
std::string branch_changes(const projects::RunInfo& parent, const projects::RunInfo& branch);

/// "good, second try"
std::string tags_text(const projects::RunInfo& run);

/// Many thousands of them are handed about: nobody changes one, and who wants another makes it.
using RunRows = std::vector<std::shared_ptr<const RunRow>>;

/// Reads what came of these runs; away from the UI thread.
RunRows read_runs(const projects::Project& project, std::vector<projects::RunInfo> runs);
/// The rows of these runs, as far as `known` has them and they have done nothing since; null for the others, which are
/// to be read.
RunRows take_over(const std::vector<projects::RunInfo>& runs, const RunRows& known);

/// The keys of recipes in which these runs differ.
std::vector<std::string> differing_keys(const RunRows& rows);

/// What rows have that can be asked for.
struct RunFields {
  std::set<std::string> keys, metrics;

  RunFields() = default;
  explicit RunFields(const RunRows& rows);
};

}  // namespace tenon::views
