#pragma once
#include <string>
#include <vector>

#include "projects/watches.h"
#include "views/shared/table.h"

namespace tenon::views {

/// A row a watch of a run, with what it saw; it leads to the first step at which it held.
Table watches_table(const std::vector<projects::WatchSummary>& all);
/// "3 watches, 1 of which saw something; together they took 0.8 % of the time of a step".
std::string watches_text(const std::vector<projects::WatchSummary>& all);
/// Of the time of a step: "0.42 %".
std::string watch_cost_text(double share);
/// "step 12: fc1.weight is 1,234 (bound 1,000)", or that it held at none.
std::string found_text(const projects::FoundStep& found, bool bisected);
/// What a search would take, in words.
std::string plan_text(const projects::FindPlan& plan);

}  // namespace tenon::views
