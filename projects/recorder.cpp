#include "projects/recorder.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "engine/train/memory_growth.h"

namespace tenon::projects {
namespace {
using Clock = std::chrono::steady_clock;
constexpr auto kMetricsEvery = std::chrono::milliseconds(250);
constexpr auto kRetryEvery = std::chrono::seconds(2);
constexpr int kRetryShare = 4;  // a try may write all that is free: it takes at most a fifth of the time
constexpr int kCheckpointsWaiting = 3;

int64_t tensor_bytes(const Checkpoint& c) {
  size_t all = 0;
  for (const auto& [name, t] : c.tensors) all += t.nbytes();
  return static_cast<int64_t>(all);
}

template <class T>
void append(std::vector<T>& to, std::vector<T> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}
}  // namespace

struct Recorder::Job {
  enum Kind { only_rows, checkpoint, status, progress, costs } kind = only_rows;
  /// Hits and events go before everything else: of steps that are not in the file yet they are no harm. Metrics go in
  /// the same transaction as a checkpoint, before anything else.
  Rows rows;
  std::vector<WatchCost> watch_costs;
  AwaitingWrite awaiting;  ///< of the state, and before it: it goes first
  Checkpoint state;
  nlohmann::json best;
  double seconds = 0;
  int64_t steps = 0;
  std::string text, error;
  std::optional<Project::ChangedRecipe> changed;
};

Recorder::Recorder(std::shared_ptr<Project> project, int64_t run, std::function<void()> changed)
    : project_(std::move(project)), run_(run), changed_(std::move(changed)), thread_([this] { work(); }) {}

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
  append(rows_.metrics, std::move(rows));
}

void Recorder::watch_hits(std::vector<WatchHit> hits) {
  std::lock_guard lock(mutex_);
  append(rows_.hits, std::move(hits));
}

void Recorder::events(std::vector<RunEvent> events) {
  std::lock_guard lock(mutex_);
  append(rows_.events, std::move(events));
}

void Recorder::watch_costs(std::vector<WatchCost> costs) {
  Job job;
  job.kind = Job::costs;
  job.watch_costs = std::move(costs);
  put(std::move(job));
}

void Recorder::put(Job job) {
  std::unique_lock lock(mutex_);
  // Rows given earlier are written earlier.
  job.rows = std::exchange(rows_, {});
  if (job.kind == Job::checkpoint) {
    // Who gives while the disk is full learns of it by blocked(), and must not be held here.
    done_.wait(lock, [&] { return checkpoints_waiting_ < kCheckpointsWaiting || error_ || blocked_; });
    ++checkpoints_waiting_;
  }
  jobs_.push_back(std::move(job));
  lock.unlock();
  wake_.notify_all();
}

void Recorder::checkpoint(Checkpoint checkpoint, double seconds, nlohmann::json best,
                          std::optional<Project::ChangedRecipe> changed) {
  Job job;
  job.kind = Job::checkpoint;
  job.awaiting = AwaitingWrite(tensor_bytes(checkpoint));
  job.state = std::move(checkpoint);
  job.seconds = seconds;
  job.best = std::move(best);
  job.changed = std::move(changed);
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

bool Recorder::flush() {
  std::unique_lock lock(mutex_);
  flush_ = true;
  wake_.notify_all();
  auto written = [&] { return jobs_.empty() && rows_.empty() && !busy_; };
  done_.wait(lock, [&] { return written() || (blocked_ && !last_); });
  flush_ = false;
  return written();
}

std::optional<Error> Recorder::blocked() const {
  std::lock_guard lock(mutex_);
  return blocked_;
}

std::optional<Error> Recorder::error() const {
  std::lock_guard lock(mutex_);
  return error_;
}

void Recorder::retry() {
  {
    std::lock_guard lock(mutex_);
    retry_ = blocked_.has_value();
  }
  wake_.notify_all();
}

void Recorder::give_up() {
  {
    std::lock_guard lock(mutex_);
    last_ = true;
  }
  wake_.notify_all();
}

void Recorder::write(Job& job) {
  if (!job.rows.hits.empty()) project_->append_watch_hits(run_, job.rows.hits);
  job.rows.hits.clear();  // kept already, should what follows find the disk full
  if (!job.rows.events.empty()) project_->append_events(run_, job.rows.events);
  job.rows.events.clear();
  if (job.kind == Job::checkpoint) {
    project_->save_checkpoint(run_, job.state, job.rows.metrics, job.seconds, job.best,
                              job.changed ? &*job.changed : nullptr);
    return;
  }
  if (!job.rows.metrics.empty()) project_->append_metrics(run_, job.rows.metrics);
  job.rows.metrics.clear();
  if (job.kind == Job::status) project_->set_run_status(run_, job.text, job.error);
  if (job.kind == Job::progress) project_->set_run_progress(run_, job.steps, job.seconds);
  if (job.kind == Job::costs) project_->add_watch_costs(run_, job.watch_costs);
}

void Recorder::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (blocked_)
      wake_.wait_until(lock, next_try_, [&] { return retry_ || last_ || quit_; });
    else
      wake_.wait_for(lock, kMetricsEvery, [&] { return !jobs_.empty() || quit_ || flush_; });
    retry_ = false;
    if (error_) rows_ = {};
    if (jobs_.empty() && !rows_.empty()) {
      Job job;
      job.rows = std::exchange(rows_, {});
      jobs_.push_back(std::move(job));
    }
    if (jobs_.empty()) {
      done_.notify_all();
      if (quit_) return;
      if (flush_)
        wake_.wait_for(lock, std::chrono::milliseconds(1),
                       [&] { return !flush_ || quit_ || !jobs_.empty() || !rows_.empty(); });
      continue;
    }
    // Others only put jobs behind it meanwhile, which moves none.
    Job& job = jobs_.front();
    // After an error only the run's end is still noted, where that can be.
    const bool broken = error_.has_value();
    const bool was_checkpoint = job.kind == Job::checkpoint, was_blocked = blocked_.has_value();
    if (broken && job.kind != Job::status) {
      jobs_.pop_front();
      continue;
    }
    if (broken) job.rows = {};
    busy_ = true;
    lock.unlock();
    std::optional<Error> error;
    const auto from = Clock::now();
    try {
      write(job);
    } catch (const Error& e) {
      error = e;
    } catch (const std::exception& e) {
      error = Error(e.what());
    }
    lock.lock();
    if (error && error->kind() == Error::Kind::no_space && !broken && !last_ && !quit_) {
      blocked_ = std::move(error);
      const auto now = Clock::now();
      next_try_ = now + std::max<Clock::duration>(kRetryEvery, kRetryShare * (now - from));
    } else {
      lock.unlock();
      job = {};  // its tensors go before anyone is told
      lock.lock();
      blocked_.reset();
      jobs_.pop_front();
      checkpoints_waiting_ -= was_checkpoint;
      if (error) {
        if (!broken) error_ = std::move(error);
        jobs_.clear();
        rows_ = {};
        checkpoints_waiting_ = 0;
      }
    }
    busy_ = false;
    if (changed_ && (was_blocked || blocked_)) {
      lock.unlock();
      changed_();
      lock.lock();
    }
    done_.notify_all();
  }
}

}  // namespace tenon::projects
