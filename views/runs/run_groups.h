#pragma once
#include <vector>

#include "views/runs/run_field.h"
#include "views/shared/table.h"

namespace tenon::views {

/// Runs that have one value of a field in common.
struct RunGroup {
  std::string value;  ///< as it is shown; "–" where the runs have no such field
  double key = 0;     ///< what the groups sort by
  std::vector<const RunRow*> runs;
};

/// In the order of their values; numbers before words, runs without the field last. The rows must outlive the groups.
std::vector<RunGroup> groups_of(const RunRows& rows, const RunField& field);

/// The finite best values of a metric in a group.
struct Spread {
  std::vector<double> values;
  const RunRow* best = nullptr;  ///< the first run that reached the best of them; null: there are no values

  double mean() const;       ///< NaN of none
  double deviation() const;  ///< of a sample: the squares are divided by one less than there are; NaN of one
};
Spread spread_of(const RunGroup& group, const std::string& metric);

/// One row a group: how many runs, and of each metric the mean, the standard deviation and the best of the runs' bests.
/// A row selects the group's best run: by the first metric of result_fields() it has.
Table group_table(const RunRows& rows, const RunField& field);

}  // namespace tenon::views
