#include "projects/run_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "core/error.h"
#include "core/parallel.h"
#include "core/pool.h"
#include "engine/train/recipe.h"
#include "engine/train/replica.h"
#include "engine/train/session.h"
#include "projects/recorder.h"

namespace tenon::projects {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

/// A run never goes on with another recipe: every step must be what a replay from any checkpoint gives.
void check_resume_options(const TrainOptions& o) {
  if (!o.set.empty())
    throw Error::usage(
        "a run keeps the recipe it was started with: --set " + o.set.front().first + " cannot go with --resume",
        "Start a new run to change it.");
  if (o.epochs >= 0)
    throw Error::usage("a run keeps the recipe it was started with: --epochs cannot go with --resume",
                       "Start a new run to change it.");
  if (!o.run_name.empty())
    throw Error::usage("--run and --resume cannot go together", "--resume names the run to go on with.");
}

}  // namespace

struct RunDriver::Impl {
  std::shared_ptr<Project> project;
  RunInfo info;
  std::unique_ptr<TrainingSession> session;
  int64_t stop_at = INT64_MAX;  ///< of this call; the recipe's own end is the session's
  bool fresh = true;
  nlohmann::json best;

  mutable std::mutex mutex;  ///< over what follows, down to `thread`
  std::condition_variable wake, end;
  RunStatus status;
  std::vector<MetricRow> undrained;
  bool pause = false, stop = false, save = false, ended = false;
  int single_steps = 0;
  std::optional<double> new_lr;
  std::thread thread;

  // Of the training thread alone.
  double trained = 0;  ///< seconds, pauses left out, earlier calls on this run included
  bool clock_runs = false;
  Clock::time_point clock_from, rate_from;
  int64_t rate_samples = 0, rate_targets = 0;
  int64_t saved_step = -1;

  Replica* replica = nullptr;
  std::unique_ptr<Recorder> recorder;  ///< null on ranks but 0. It calls back into what stands above: it goes first

  void work();
  void train();
  bool next_step_wanted();
  /// The same on every rank.
  bool all_go_on();
  bool room_on_disk();
  std::string what_is_lost(const Error& disk) const;
  void after_step(const StepResult& r);
  void evaluate();
  void save_checkpoint();
  void publish(std::vector<MetricRow> rows);
  void look_for_room() {
    if (recorder) recorder->retry();
  }
  double seconds() const { return trained + (clock_runs ? seconds_since(clock_from) : 0); }
  void start_clock();
  void stop_clock();
};

RunDriver::RunDriver() : impl_(std::make_unique<Impl>()) {}

std::unique_ptr<RunDriver> RunDriver::start(std::shared_ptr<Project> project, const TrainOptions& options) {
  std::unique_ptr<RunDriver> driver(new RunDriver);
  Impl& d = *driver->impl_;
  d.replica = options.session.replica;
  const bool writes = !d.replica || d.replica->rank() == 0;
  if (writes && project->read_only())
    throw Error(fmt::format("{} is read-only: a run could not be kept", project->path()), "Work on a copy.");
  d.project = project;
  // What rank 0 does for all: where it fails, nobody starts.
  const auto together = [&](const std::function<void()>& write) {
    std::exception_ptr error;
    try {
      if (writes) write();
    } catch (...) {
      error = std::current_exception();
    }
    if (d.replica && !d.replica->all_of(!error) && !error)
      throw Error("the replica of rank 0 could not begin the run", "Its own error says why.");
    if (error) std::rethrow_exception(error);
  };
  if (options.threads > 0) set_num_threads(options.threads);
  if (!options.resume.empty()) {
    check_resume_options(options);
    d.info = project->run(options.resume);
    d.fresh = false;
    d.session = std::make_unique<TrainingSession>(d.info.model, Recipe::from_json(d.info.recipe), options.session);
    // One killed before its first checkpoint starts over: its seed is in the recipe.
    if (!project->checkpoints(d.info.id).empty()) {
      const Checkpoint last = project->checkpoint_before(d.info.id, INT64_MAX);
      d.session->load(last);
      d.saved_step = last.step;
    }
    // Refused while another process trains it.
    together([&] { project->continue_run(d.info.id, d.session->steps_done(), d.info.seconds); });
    d.trained = d.info.seconds;
    d.best = d.info.best;
    if (options.max_steps >= 0) d.stop_at = options.max_steps;
  } else {
    Recipe recipe = Recipe::from_json(project->recipe());
    for (const auto& [key, text] : options.set) recipe.set(key, text);
    for (const auto& [key, text] : options.set) recipe.check_used(key);
    if (options.epochs >= 0) recipe.set("epochs", std::to_string(options.epochs));
    if (options.max_steps >= 0) recipe.set("max_steps", std::to_string(options.max_steps));
    const ModelSpec model = project->model();
    d.session = std::make_unique<TrainingSession>(model, recipe, options.session);
    together([&] { d.info = project->new_run(options.run_name, model, recipe.to_json(), d.session->total_steps()); });
  }
  RunStatus& s = d.status;
  s.run = d.info.id;
  s.name = d.info.name;
  s.step = d.session->steps_done();
  s.total_steps = d.session->total_steps();
  s.steps_per_epoch = d.session->steps_per_epoch();
  s.epoch = d.session->epoch();
  s.epochs = d.session->epochs();
  s.lr = d.session->learning_rate();
  s.seconds = d.trained;
  d.pause = options.start_paused;
  if (writes)
    d.recorder = std::make_unique<Recorder>(project, d.info.id, [&d] {
      {
        std::lock_guard lock(d.mutex);  // whoever has just looked waits by now
        ++d.status.tries;
      }
      d.wake.notify_all();
    });
  d.thread = std::thread([&d] { d.work(); });
  return driver;
}

RunDriver::~RunDriver() {
  stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

void RunDriver::Impl::start_clock() {
  if (clock_runs) return;
  clock_runs = true;
  clock_from = rate_from = Clock::now();
  rate_samples = rate_targets = 0;
}

void RunDriver::Impl::stop_clock() {
  trained = seconds();
  clock_runs = false;
}

void RunDriver::Impl::work() {
  using State = RunStatus::State;
  State result = State::failed;
  std::string error;
  try {
    train();
    result = session->finished() ? State::finished : State::stopped;
  } catch (const std::exception& e) {
    error = e.what();
  }
  stop_clock();
  if (recorder) {
    recorder->progress(session->steps_done(), seconds());
    recorder->status(result == State::finished ? "finished" : result == State::stopped ? "stopped" : "failed", error);
    while (!recorder->flush())
      if (!room_on_disk()) recorder->give_up();
    if (const auto disk = recorder->error()) {
      result = State::failed;
      if (error.empty()) error = what_is_lost(*disk);
      recorder->status("failed", error);
      recorder->flush();
    }
  }
  std::lock_guard lock(mutex);
  status.state = result;
  status.error = error;
  status.seconds = seconds();
  ended = true;
  end.notify_all();
}

void RunDriver::Impl::train() {
  const int64_t every = session->recipe().integer("checkpoint_every");
  if (saved_step < 0) save_checkpoint();
  start_clock();
  // A stop may have come between the last step of an epoch and its evaluation.
  if (!fresh && session->evaluation_due()) {
    const auto evaluated = project->metric(info.id, "test_loss");
    const bool done = !evaluated.empty() && evaluated.back().step >= session->steps_done();
    if (replica ? !replica->all_of(done) : !done) {
      evaluate();
      saved_step = -1;
    }
  }
  while (!session->finished() && session->steps_done() < stop_at && all_go_on()) {
    start_clock();
    const StepResult r = session->step();
    after_step(r);
    if (!r.applied && r.overflow.empty())
      throw Error(fmt::format("step {}: {} is not finite; the weights are those of step {}", r.step,
                              std::isfinite(r.loss) ? "a gradient" : "the loss", r.step - 1),
                  fmt::format("`tenon nan {} {}` finds where it came from; or lower the learning rate.",
                              project->path(), info.name));
    if (session->evaluation_due()) evaluate();
    if (r.epoch_end || session->finished() || (every > 0 && r.step % every == 0)) save_checkpoint();
    if (!recorder) continue;
    if (const auto disk = recorder->error()) {
      if (replica && !session->finished() && session->steps_done() < stop_at) replica->all_of(false);
      throw *disk;
    }
  }
  if (saved_step != session->steps_done()) save_checkpoint();
}

/// Holds the training thread while the recorder waits for room on the disk; false when it is time to stop.
bool RunDriver::Impl::room_on_disk() {
  if (!recorder) return true;
  std::unique_lock lock(mutex);
  while (const auto full = recorder->blocked()) {
    if (stop) break;
    stop_clock();
    status.state = RunStatus::State::paused;
    status.seconds = seconds();
    status.blocked = full->message();
    status.blocked_hint = full->hint();
    wake.wait(lock);
  }
  status.blocked.clear();
  status.blocked_hint.clear();
  return !stop;
}

/// Why a run that could not save its end has failed, and how to go on with it.
std::string RunDriver::Impl::what_is_lost(const Error& disk) const {
  if (disk.kind() != Error::Kind::no_space) return disk.what();
  const int64_t done = session->steps_done();
  int64_t last = -1;
  try {
    for (const CheckpointInfo& c : project->checkpoints(info.id)) last = c.step;
  } catch (const Error&) {
    return disk.what();
  }
  const std::string lost = last < 0      ? "not even the first checkpoint of this run is in the file"
                           : last < done ? fmt::format("steps {} to {} are not in the file", last + 1, done)
                                         : "only that it ended is not in the file";
  const std::string from = last < 0 ? "starts it again" : fmt::format("goes on from the checkpoint of step {}", last);
  return Error(fmt::format("{}; {}", disk.message(), lost),
               fmt::format("{} Then `tenon train {} --resume {}` {}.", disk.hint(), project->path(), info.name, from))
      .what();
}

bool RunDriver::Impl::all_go_on() {
  if (!replica) return next_step_wanted();
  // The others wait for rank 0 here while it is paused.
  bool go = true;
  if (recorder) {
    go = next_step_wanted();
  } else {
    std::lock_guard lock(mutex);
    go = !stop;
    status.state = RunStatus::State::running;
  }
  return replica->all_of(go);
}

/// Waits while paused or while the disk is full; false when it is time to stop.
bool RunDriver::Impl::next_step_wanted() {
  bool told = false, noted = false;  // that it is paused: to the recorder, and so that it can be seen
  while (true) {
    if (!room_on_disk()) return false;
    std::unique_lock lock(mutex);
    if (stop) return false;
    if (save || new_lr) {
      save = false;
      if (new_lr) {
        session->set_learning_rate(*new_lr);
        new_lr.reset();
        status.lr = session->learning_rate();
        // It becomes part of the state; a replay from an earlier checkpoint would not know of it.
      }
      lock.unlock();
      save_checkpoint();
      continue;
    }
    if (!pause || single_steps > 0) {
      if (pause) --single_steps;
      status.state = RunStatus::State::running;
      lock.unlock();
      if (told) recorder->status("running");
      return true;
    }
    if (!noted) {
      stop_clock();
      lock.unlock();
      if (!told) {
        recorder->progress(session->steps_done(), seconds());
        recorder->status("paused");
        told = true;
      }
      if (!recorder->flush()) continue;  // who sees the pause finds everything up to it in the project
      noted = true;
      lock.lock();
      status.state = RunStatus::State::paused;
      status.seconds = seconds();
      continue;  // a command may have come in between
    }
    if (!recorder->blocked()) wake.wait(lock);
  }
}

void RunDriver::Impl::after_step(const StepResult& r) {
  const double wall = seconds();
  std::vector<MetricRow> rows = {{"loss", {r.step, wall, r.loss}}, {"lr", {r.step, wall, r.lr}}};
  if (r.accuracy >= 0) rows.push_back({"train_accuracy", {r.step, wall, r.accuracy}});
  // A gradient that overflowed only because it was scaled is no fault of the model.
  if (r.overflow.empty()) rows.push_back({"grad_norm", {r.step, wall, r.grad_norm}});
  if (session->recipe().text("amp") == "fp16") rows.push_back({"loss_scale", {r.step, wall, r.loss_scale}});
  const PoolStats memory = pool_stats();
  rate_samples += r.samples;
  rate_targets += r.targets;
  const double rate_seconds = seconds_since(rate_from);
  double rate = -1;
  if (rate_seconds > 0.5) {
    rate = static_cast<double>(rate_samples) / rate_seconds;
    rows.push_back({"samples_per_second", {r.step, wall, rate}});
    if (session->is_text())
      rows.push_back({"tokens_per_second", {r.step, wall, static_cast<double>(rate_targets) / rate_seconds}});
    rows.push_back({"memory_bytes", {r.step, wall, static_cast<double>(memory.live_bytes)}});
    rate_from = Clock::now();
    rate_samples = rate_targets = 0;
  }
  {
    std::lock_guard lock(mutex);
    RunStatus& s = status;
    s.step = r.step;
    s.epoch = r.epoch;
    s.loss = r.loss;
    s.lr = r.lr;
    s.seconds = wall;
    s.live_bytes = memory.live_bytes;
    s.peak_bytes = memory.peak_bytes;
    if (rate >= 0) s.samples_per_second = rate;
    if (!r.overflow.empty()) {
      ++s.skipped;
      s.skipped_step = r.step;
      s.skipped_for = r.overflow;
    }
    if (!r.finite && !s.nan) {
      s.nan = true;
      s.nan_step = r.step;
    }
  }
  publish(std::move(rows));
}

void RunDriver::Impl::evaluate() {
  Evaluation e;
  try {
    e = session->evaluate([this](int64_t, int64_t) {
      std::lock_guard lock(mutex);
      return !stop;
    });
  } catch (const Error&) {
    std::lock_guard lock(mutex);
    if (stop) return;  // made up for when the run is resumed
    throw;
  }
  const int64_t step = session->steps_done();
  session->report(e);
  std::vector<MetricRow> rows = {{"test_loss", {step, seconds(), e.loss}}};
  for (const Judgement& j : e.judgements) rows.push_back({"test_" + j.name, {step, seconds(), j.value}});
  const double value = e.decisive.value;
  const bool better = best.is_null() || (e.decisive.higher_is_better ? value > best.at("value").get<double>()
                                                                     : value < best.at("value").get<double>());
  if (better && std::isfinite(value)) best = {{"metric", "test_" + e.decisive.name}, {"value", value}, {"step", step}};
  publish(std::move(rows));
  rate_from = Clock::now();
  rate_samples = rate_targets = 0;
}

void RunDriver::Impl::save_checkpoint() {
  saved_step = session->steps_done();
  if (recorder) recorder->checkpoint(session->save(), seconds(), best);
}

void RunDriver::Impl::publish(std::vector<MetricRow> rows) {
  constexpr size_t kKept = 1 << 20;  // where nobody drains; every point is in the project all the same
  {
    std::lock_guard lock(mutex);
    if (undrained.size() > kKept) undrained.erase(undrained.begin(), undrained.begin() + kKept / 2);
    undrained.insert(undrained.end(), rows.begin(), rows.end());
  }
  if (recorder) recorder->metrics(std::move(rows));
}

void RunDriver::pause() {
  std::lock_guard lock(impl_->mutex);
  impl_->pause = true;
}
void RunDriver::resume() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->pause = false;
    impl_->single_steps = 0;
  }
  impl_->wake.notify_all();
  impl_->look_for_room();
}
void RunDriver::retry() { impl_->look_for_room(); }
void RunDriver::step_once() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->pause = true;
    ++impl_->single_steps;
  }
  impl_->wake.notify_all();
  impl_->look_for_room();
}
void RunDriver::stop() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->wake.notify_all();
}
void RunDriver::checkpoint() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->save = true;
  }
  impl_->wake.notify_all();
  impl_->look_for_room();
}
void RunDriver::set_learning_rate(double lr) {
  if (!(lr >= 0) || !std::isfinite(lr))
    throw Error::usage(fmt::format("a learning rate of {} makes no sense", lr), "It is a number of 0 or more.");
  if (impl_->replica)
    throw Error::usage("the learning rate of one replica cannot be changed apart from the others'",
                       "Stop the run and start one with another optimizer.lr.");
  {
    std::lock_guard lock(impl_->mutex);
    impl_->new_lr = lr;
  }
  impl_->wake.notify_all();
}

RunStatus RunDriver::status() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->status;
}
void RunDriver::drain(std::vector<MetricRow>& out) {
  out.clear();
  std::lock_guard lock(impl_->mutex);
  std::swap(out, impl_->undrained);
}
void RunDriver::wait() {
  std::unique_lock lock(impl_->mutex);
  impl_->end.wait(lock, [this] { return impl_->ended; });
}

}  // namespace tenon::projects
