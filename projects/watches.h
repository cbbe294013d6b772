#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/train/watch_list.h"
#include "projects/project.h"
#include "projects/time_travel.h"

namespace tenon::projects {

/// What a run looks at by itself, where no watch of its recipe is of the growth of memory. It marks where that begins.
inline constexpr const char* kOwnWatch = "memory_growth > 0";

/// Gives a list what the run had recorded up to step `done` (Note [Watches]).
void recall_watches(WatchList& list, const Project& project, int64_t run, int64_t done);

/// A watch of a run, with what it saw.
struct WatchSummary {
  std::string condition;
  WatchAction action = WatchAction::mark;
  bool armed = true;     ///< it stands in the recipe of the run's next step, or is kOwnWatch
  int64_t held = 0;      ///< steps, of those that were looked at
  int64_t began = 0;     ///< how often it came to hold
  WatchHit first, last;  ///< where it held
  double share = -1;     ///< of the time of its steps that looking took; -1: not known yet
};
/// Those of the run's recipes, in their order; then those that have hits and stand in none, kOwnWatch among them.
std::vector<WatchSummary> watch_summaries(const Project& project, const RunInfo& run);

/// What a search for a condition has to do.
struct FindPlan {
  int64_t replayed = 0;  ///< steps that are replayed at most; 0: what was recorded tells it
  double seconds = -1;   ///< about what they took when the run trained; -1: nobody knows
};
/// What came of it.
struct FoundStep {
  bool found = false;
  WatchHit hit;
  int64_t looked_at = 0;  ///< steps, or recorded values
  int64_t replayed = 0;   ///< steps
};

/// The first step of a run at which a condition holds (parse_condition()), whether it was watched or not. Conditions
/// over metrics are answered from what the run recorded. For others steps are replayed, bit for bit: all of them from
/// the beginning until one holds; or, with `bisect`, by halves between checkpoints, which takes a condition that holds
/// to go on holding, and is wrong where it does not.
/// Of a run with these checkpoints.
FindPlan plan_find(const RunInfo& run, const std::vector<CheckpointInfo>& checkpoints, const Watch& condition,
                   bool bisect);
FoundStep find_first(Project& project, int64_t run, const Watch& condition, bool bisect, const Progress& progress = {});
/// Every step of `from` to `to` (from 1) at which one of the watches holds, by a replay: what a run that had had them
/// would have recorded, but for evaluations, whose metrics it has itself.
std::vector<WatchHit> replay_watches(Project& project, int64_t run, const std::vector<Watch>& watches, int64_t from,
                                     int64_t to, const Progress& progress = {});

}  // namespace tenon::projects
