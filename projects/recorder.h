#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "projects/project.h"

namespace tenon::projects {

/// Writes what a run produces into its project on a thread of its own, in order, so that training never waits for the disk
/// (unless several checkpoints wait to be written: memory is bounded too). After an error nothing more is written.
class Recorder {
 public:
  Recorder(std::shared_ptr<Project> project, int64_t run);
  ~Recorder();  ///< writes what is left

  /// Written within a quarter of a second, or with the next checkpoint.
  void metrics(std::vector<MetricRow> rows);
  void checkpoint(Checkpoint checkpoint, double seconds, nlohmann::json best);
  void status(std::string status, std::string error = {});
  void progress(int64_t steps, double seconds);
  /// Waits until everything given so far is in the file (or an error stopped it).
  void flush();
  /// Why writing failed; empty while all is well.
  std::string error() const;

 private:
  struct Job;
  void work();
  void write(Job& job);
  void put(Job job);

  std::shared_ptr<Project> project_;
  int64_t run_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Job> jobs_;
  std::vector<MetricRow> rows_;
  int checkpoints_waiting_ = 0;
  bool busy_ = false, quit_ = false, flush_ = false;
  std::string error_;
  std::thread thread_;
};

}  // namespace tenon::projects
