#include "projects/recorder.h"

#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

namespace tenon::projects {
namespace {
constexpr auto kMetricsEvery = std::chrono::milliseconds(250);
constexpr int kCheckpointsWaiting = 3;
}  // namespace

struct Recorder::Job {
  enum Kind { rows, checkpoint, status, progress } kind = rows;
  std::vector<MetricRow> metrics;  ///< go in the same transaction as a checkpoint, before anything else
  Checkpoint state;
  nlohmann::json best;
  double seconds = 0;
  int64_t steps = 0;
  std::string text, error;
};

Recorder::Recorder(std::shared_ptr<Project> project, int64_t run) : project_(std::move(project)), run_(run), thread_([this] { work(); }) {}

Recorder::~Recorder() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Recorder::metrics(std::vector<MetricRow> rows) {
  std::lock_guard lock(mutex_);
  rows_.insert(rows_.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
}

void Recorder::put(Job job) {
  std::unique_lock lock(mutex_);
  // Rows given earlier are written earlier.
  job.metrics = std::move(rows_);
  rows_.clear();
  if (job.kind == Job::checkpoint) {
    done_.wait(lock, [&] { return checkpoints_waiting_ < kCheckpointsWaiting || !error_.empty(); });
    ++checkpoints_waiting_;
  }
  jobs_.push_back(std::move(job));
  lock.unlock();
  wake_.notify_all();
}

void Recorder::checkpoint(Checkpoint checkpoint, double seconds, nlohmann::json best) {
  Job job;
  job.kind = Job::checkpoint;
  job.state = std::move(checkpoint);
  job.seconds = seconds;
  job.best = std::move(best);
  put(std::move(job));
}
void Recorder::status(std::string status, std::string error) {
  Job job;
  job.kind = Job::status;
  job.text = std::move(status);
  job.error = std::move(error);
  put(std::move(job));
}
void Recorder::progress(int64_t steps, double seconds) {
  Job job;
  job.kind = Job::progress;
  job.steps = steps;
  job.seconds = seconds;
  put(std::move(job));
}

void Recorder::flush() {
  std::unique_lock lock(mutex_);
  flush_ = true;
  wake_.notify_all();
  done_.wait(lock, [&] { return jobs_.empty() && rows_.empty() && !busy_; });
  flush_ = false;
}

std::string Recorder::error() const {
  std::lock_guard lock(mutex_);
  return error_;
}

void Recorder::write(Job& job) {
  if (job.kind == Job::checkpoint) {
    project_->save_checkpoint(run_, job.state, job.metrics, job.seconds, job.best);
    return;
  }
  if (!job.metrics.empty()) project_->append_metrics(run_, job.metrics);
  if (job.kind == Job::status) project_->set_run_status(run_, job.text, job.error);
  if (job.kind == Job::progress) project_->set_run_progress(run_, job.steps, job.seconds);
}

void Recorder::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait_for(lock, kMetricsEvery, [&] { return !jobs_.empty() || quit_ || flush_; });
    if (!error_.empty()) rows_.clear();
    if (jobs_.empty() && !rows_.empty()) {
      Job job;
      job.metrics = std::move(rows_);
      rows_.clear();
      jobs_.push_back(std::move(job));
    }
    if (jobs_.empty()) {
      done_.notify_all();
      if (quit_) return;
      if (flush_) wake_.wait_for(lock, std::chrono::milliseconds(1), [&] { return !flush_ || quit_ || !jobs_.empty() || !rows_.empty(); });
      continue;
    }
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    // After an error only the run's end is still noted, where that can be.
    const bool broken = !error_.empty();
    const bool was_checkpoint = job.kind == Job::checkpoint;
    if (broken) job.metrics.clear();
    if (broken && job.kind != Job::status) continue;
    busy_ = true;
    lock.unlock();
    std::string error;
    try {
      write(job);
    } catch (const std::exception& e) {
      error = e.what();
    }
    job = {};  // its tensors go before anyone is told
    lock.lock();
    busy_ = false;
    checkpoints_waiting_ -= was_checkpoint;
    if (!error.empty()) {
      if (!broken) error_ = error;
      std::erase_if(jobs_, [](const Job& j) { return j.kind != Job::status; });
      rows_.clear();
      checkpoints_waiting_ = 0;
    }
    done_.notify_all();
  }
}

}  // namespace tenon::projects
