#pragma once
#include <map>
#include <string>
#include <vector>

#include "projects/project.h"

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
  /// By key: "optimizer.lr". Of a run whose recipe was changed on the way the last value, with all of them as text.
  std::map<std::string, RunValue> recipe;
  std::map<std::string, MetricEnd> metrics;  ///< by name: "loss", "test_accuracy"
};

/// "good, second try"
std::string tags_text(const projects::RunInfo& run);

/// Reads every metric of every run; away from the UI thread. Rows of `known` whose run has done nothing since are taken
/// over.
std::vector<RunRow> read_runs(const projects::Project& project, const std::vector<projects::RunInfo>& runs,
                              const std::vector<RunRow>& known = {});

/// The keys of recipes in which these runs differ.
std::vector<std::string> differing_keys(const std::vector<RunRow>& rows);

}  // namespace tenon::views
