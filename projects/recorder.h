#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "projects/project.h"

namespace tenon::projects {

/// Writes what a run produces into its project on a thread of its own, in order, so that training never waits for the
/// disk (unless several checkpoints wait to be written: memory is bounded too).
///
/// On a full disk it is blocked: what did not fit stays at the head of its queue, with everything behind it, and is
/// tried again every few seconds until there is room. Nothing is lost or written twice by that. After any other error
/// nothing more is written.
class Recorder {
 public:
  /// `changed` is called, on the recorder's thread and with no lock of it held, when blocked() has begun, says
  /// something new, or has ended.
  Recorder(std::shared_ptr<Project> project, int64_t run, std::function<void()> changed = {});
  ~Recorder();  ///< writes what is left; where the disk is full it tries once

  /// Written within a quarter of a second, or with the next checkpoint.
  void metrics(std::vector<MetricRow> rows);
  /// What watches saw of a step, and what the run did on its way: in the file before the step's points are.
  void watch_hits(std::vector<WatchHit> hits);
  void events(std::vector<RunEvent> events);
  void watch_costs(std::vector<WatchCost> costs);
  void checkpoint(Checkpoint checkpoint, double seconds, nlohmann::json best,
                  std::optional<Project::ChangedRecipe> changed = {});
  void status(std::string status, std::string error = {});
  void progress(int64_t steps, double seconds);
  /// Waits until everything given so far is in the file, or an error stopped it. False, at once, while it is blocked.
  bool flush();

  /// Why it waits for room on the disk, and what to free; nothing while it does not. Who gives it more should wait too.
  std::optional<Error> blocked() const;
  /// Tries again at once.
  void retry();
  /// Tries at once for the last time: from now on a full disk is an error as any other.
  void give_up();
  /// Why writing failed; nothing while all is well.
  std::optional<Error> error() const;

 private:
  /// What comes with every step, and is written some steps at a time.
  struct Rows {
    std::vector<WatchHit> hits;
    std::vector<RunEvent> events;
    std::vector<MetricRow> metrics;
    bool empty() const { return hits.empty() && events.empty() && metrics.empty(); }
  };
  struct Job;
  void work();
  void write(Job& job);
  void put(Job job);

  std::shared_ptr<Project> project_;
  int64_t run_;
  std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Job> jobs_;  ///< the first one is being written while busy_
  Rows rows_;
  int checkpoints_waiting_ = 0;
  bool busy_ = false, quit_ = false, flush_ = false, retry_ = false, last_ = false;
  std::optional<Error> blocked_, error_;
  std::chrono::steady_clock::time_point next_try_;
  std::thread thread_;
};

}  // namespace tenon::projects
