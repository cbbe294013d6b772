#pragma once
#include <optional>
#include <vector>

#include "projects/search/sweep_plan.h"

namespace tenon::projects {

/// A trial that has a result; failed ones have none, but are remembered.
struct Result {
  int64_t number = 0;  ///< from 1
  Settings settings;
  std::optional<double> value;
};

/// The settings of trial `number`, from the results of the trials before it: a pure function of all that it is given.
/// Of those that have no result yet (of the same round) `settings` alone counts. Nothing where the method has no more
/// to try: the grid is through, or every settings that there are were tried.
std::optional<Settings> next_settings(const SweepPlan& plan, int64_t number, const std::vector<Result>& before);

/// A search by a model is over before its last trial where every settings that there are were tried.
bool all_tried(const SweepPlan& plan, const std::vector<Result>& before);

}  // namespace tenon::projects
