#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "projects/run_driver.h"
#include "projects/search/importance.h"
#include "projects/search/sweep_plan.h"

// Note [Sweeps]
// A sweep is rows of the project file, not a process. Whoever goes on with it (the command line, the window) asks for
// the next trial, trains it with a RunDriver as any run, and asks again. What is asked is answered from the file alone:
// an open trial is gone on with, and a new one is chosen from the seed and the results of the rounds before its own. So
// a sweep that is killed at any instant goes on as if it had not been, and its choices do not depend on how many of a
// round's trials are trained at the same time.
namespace tenon::projects {

/// Checked in every key and value before anything is stored; the model and recipe of the project as they are now are
/// the sweep's. `set`: recipe keys for all of its trials.
SweepInfo begin_sweep(Project& project, const std::string& name, const Settings& keys, const std::vector<Attr>& attrs,
                      const Settings& set = {});
SweepPlan plan_of(const SweepInfo& sweep);

/// A trial that is to be trained now.
struct Trial {
  TrialOf of;
  Settings settings;
  TrainOptions options;
};

/// The next one, chosen or to be gone on with; nothing while the round of those `at_work` (by number) lasts, and when
/// the sweep is over. Trials whose runs have ended get their results first. The process that trains an open trial must
/// not ask without naming it.
std::optional<Trial> next_trial(Project& project, int64_t sweep, const std::set<int64_t>& at_work = {});

/// Gives open trials whose runs have ended their results: part of next_trial(), for who wants to know them at once.
void settle_trials(Project& project, int64_t sweep, const std::set<int64_t>& at_work = {});

/// What ends a run that is an open trial: its sweep's pruning. None for any other run.
Prune pruning_of(const Project& project, int64_t run);

/// Begins to train; null where this trial cannot begin (a shape that does not fit): then it has failed, and the sweep
/// goes on. Throws where that would be so of others, too, or is no fault of the trial: no room on the disk, a project
/// that is read-only or trained by another process.
std::unique_ptr<RunDriver> start_trial(const std::shared_ptr<Project>& project, const Trial& trial);

/// Whether one more trial may begin beside those at work: the plan asks for it, this machine has a core and memory for
/// it, and what a trial needs is known, since each of them has made a step.
bool room_for_another(const SweepPlan& plan, const std::vector<RunStatus>& at_work);

/// The numbers of the trials of these runs.
std::set<int64_t> trials_of(const Project& project, int64_t sweep, const std::set<int64_t>& runs);

/// The best trial so far; null where none has a value. Of equals the first.
const TrialInfo* best_trial(const SweepInfo& sweep, const SweepPlan& plan);
Settings settings_of(const TrialInfo& trial);
Importance importance_of(const SweepInfo& sweep, const SweepPlan& plan);
/// No trial is open, and no further one is wanted.
bool is_over(const SweepInfo& sweep, const SweepPlan& plan);

}  // namespace tenon::projects
