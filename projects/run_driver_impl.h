#pragma once
#include <chrono>
#include <climits>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "engine/train/early_stop.h"
#include "engine/train/memory_growth.h"
#include "engine/train/recipe.h"
#include "engine/train/replica.h"
#include "engine/train/session.h"
#include "engine/train/watch_list.h"
#include "projects/recorder.h"
#include "projects/run_driver.h"
#include "projects/watches.h"

namespace tenon::projects {

/// What start() makes and the commands speak to; its member functions are the training thread.
struct RunDriver::Impl {
  using Clock = std::chrono::steady_clock;

  std::shared_ptr<Project> project;
  RunInfo info;
  std::unique_ptr<TrainingSession> session;
  std::unique_ptr<WatchList> watches;  ///< null where the recipe has none, and on ranks but 0
  // Looked at in every run, where no watch of its own does; null on ranks but 0.
  std::unique_ptr<GrowthWatch> growth;
  bool grew = false;            ///< where it was looked at last
  int64_t stop_at = INT64_MAX;  ///< of this call; the recipe's own end is the session's
  bool fresh = true;
  nlohmann::json best;
  Prune prune;
  bool obeys_watches = true;
  // Of the training thread: why the run ends before its length.
  std::string pruned;
  std::string early;                                     ///< by its recipe (stop.metric)
  std::map<std::string, std::vector<Judged>> evaluated;  ///< all of the run, by metric

  mutable std::mutex mutex;  ///< over what follows, down to `thread`
  std::condition_variable wake, end;
  RunStatus status;
  std::vector<MetricRow> undrained;
  std::vector<WatchHit> undrained_hits;
  std::vector<RunEvent> undrained_events;
  bool pause = false, stop = false, save = false, ended = false;
  int single_steps = 0;
  Recipe recipe;  ///< with what is wanted and not yet done
  bool wants_change = false;
  std::thread thread;

  // Of the training thread alone.
  double trained = 0;  ///< seconds, pauses left out, earlier calls on this run included
  bool clock_runs = false;
  Clock::time_point clock_from, rate_from;
  int64_t rate_samples = 0, rate_targets = 0;
  int64_t saved_step = -1;
  std::string stopped;  ///< why a watch ends the run here
  double armed_at = 0;  ///< seconds() when the watches began to look
  std::vector<WatchCost> costs_told;
  bool change_unsaved = false;  ///< the recipe was changed after the step that is done

  Replica* replica = nullptr;
  std::unique_ptr<Recorder> recorder;  ///< null on ranks but 0. It calls back into what stands above: it goes first

  // What start() makes: sets session, info and what the run has done so far.
  using Together = std::function<void(const std::function<void()>& write)>;
  void begin(const TrainOptions& options, const Together& together);
  void branch(const TrainOptions& options);
  void go_on(const TrainOptions& options, const Together& together);

  void work();
  void train();
  bool next_step_wanted();
  /// The same on every rank.
  bool all_go_on();
  bool room_on_disk();
  std::string what_is_lost(const Error& disk) const;
  void after_step(const StepResult& r);
  /// Of a recipe that the session has or will have; null where it has none. Throws Error (usage) for those that do not
  /// fit the session.
  std::unique_ptr<WatchList> make_watches(const Recipe& wanted);
  /// They look from the next step on, with what the run recorded up to here.
  void arm(std::unique_ptr<WatchList> list);
  /// Does what is to be done by what they saw.
  void after_watches(bool of_step);
  /// Growth of memory that begins here is marked as a watch marks it.
  void watch_growth(std::vector<WatchHit>& hits);
  void tell_watch_costs();
  void evaluate();
  /// What is recorded of the run so far, of a branch with what its parents had by then.
  void recall_evaluations();
  /// To be asked again after each evaluation and each change of the recipe.
  void judge();
  void save_checkpoint();
  /// `known`: the run did it here once before it went back.
  void change_recipe(const Recipe& wanted, bool known);
  /// Those that were made after the step that is done, before the run went back to it.
  void forget_later_changes() {
    std::erase_if(info.changes, [&](const RecipeChange& c) { return c.step >= session->steps_done(); });
  }
  void publish(std::vector<MetricRow> rows);
  /// What has happened to the plans of its steps.
  void tell_plans();
  /// Of points, hits and events, where nobody drains; every one is in the project all the same.
  static constexpr size_t kKeptForOthers = 1 << 20;
  void look_for_room() {
    if (recorder) recorder->retry();
  }
  double seconds() const {
    return trained + (clock_runs ? std::chrono::duration<double>(Clock::now() - clock_from).count() : 0);
  }
  void start_clock();
  void stop_clock();
};

}  // namespace tenon::projects
