// The training thread of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/pool.h"
#include "engine/op/cuda_device.h"
#include "engine/train/planned_step.h"
#include "projects/lineage.h"
#include "projects/run_driver_impl.h"

namespace tenon::projects {
namespace {
double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}
}  // namespace

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
    result = session->finished() || !early.empty() ? State::finished : pruned.empty() ? State::stopped : State::pruned;
    if (!session->finished()) error = !early.empty() ? early : !pruned.empty() ? pruned : stopped;
  } catch (const std::exception& e) {
    error = e.what();
  }
  stop_clock();
  if (recorder) {
    recorder->progress(session->steps_done(), seconds());
    recorder->status(status_word(result), error);
    while (!recorder->flush())
      if (!room_on_disk()) recorder->give_up();
    if (const auto disk = recorder->error()) {
      result = State::failed;
      if (error.empty() || !pruned.empty() || !early.empty()) error = what_is_lost(*disk);
      recorder->status("failed", error);
      recorder->flush();
    }
  }
  std::lock_guard lock(mutex);
  status.state = result;
  status.error = error;
  status.paused_by.clear();
  status.seconds = seconds();
  status.planned = session->planned();
  ended = true;
  end.notify_all();
}

void RunDriver::Impl::train() {
  const int64_t every = session->recipe().integer("checkpoint_every");
  if (saved_step < 0) save_checkpoint();
  start_clock();
  tell_plans();  // of the steps that were done again on the way to where a branch begins
  if (prune) pruned = prune({});
  if (!fresh || info.branch) recall_evaluations();
  // A stop may have come between the last step of an epoch and its evaluation. Where a branch begins, its parent's was.
  if (!fresh && session->evaluation_due() && !(info.branch && session->steps_done() == info.branch.step)) {
    const auto evaluated = project->metric(info.id, "test_loss");
    const bool done = !evaluated.empty() && evaluated.back().step >= session->steps_done();
    if (replica ? !replica->all_of(done) : !done) {
      evaluate();
      saved_step = -1;
    }
  }
  judge();
  while (!session->finished() && session->steps_done() < stop_at && pruned.empty() && early.empty() && all_go_on()) {
    start_clock();
    const StepResult r = session->step();
    after_step(r);
    if (!r.finite && !r.applied && r.overflow.empty())
      throw Error(
          fmt::format("step {}: {} is not finite; the weights are those of step {}", r.step,
                      std::isfinite(r.loss) ? "a gradient" : "the loss", r.step - 1),
          fmt::format("The NaN doctor, or `tenon nan {} {}`, finds where it came from; or lower the learning rate.",
                      project->path(), info.name));
    if (session->evaluation_due()) evaluate();
    // What was changed here before the run went back: it happens again.
    if (const RecipeChange* c = info.change_after(r.step)) change_recipe(Recipe::from_json(c->recipe), true);
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
               fmt::format("{} Then Resume in the window or `tenon train {} --resume {}` {}.", disk.hint(),
                           project->path(), info.name, from))
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
    if (!room_on_disk() || !early.empty() || !stopped.empty()) return false;
    std::unique_lock lock(mutex);
    if (stop) return false;
    if (save || wants_change) {
      save = false;
      const std::optional<Recipe> wanted = wants_change ? std::optional(recipe) : std::nullopt;
      wants_change = false;
      lock.unlock();
      if (wanted)
        change_recipe(*wanted, false);
      else
        save_checkpoint();
      continue;
    }
    if (!pause || single_steps > 0) {
      if (pause) --single_steps;
      status.state = RunStatus::State::running;
      status.paused_by.clear();
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
  std::vector<MetricRow> rows;
  for (const auto& [name, value] : step_metrics(r, session->recipe().text("amp") == "fp16"))
    rows.push_back({name, {r.step, wall, value}});
  for (const auto& [name, value] : session->callback_figures()) rows.push_back({name, {r.step, wall, value}});
  const PoolStats memory = tensor_memory(session->device());
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
    for (const auto& [name, value] : device_load(session->device())) rows.push_back({name, {r.step, wall, value}});
    rate_from = Clock::now();
    rate_samples = rate_targets = 0;
  }
  {
    std::lock_guard lock(mutex);
    RunStatus& s = status;
    s.step = r.step;
    s.epoch = r.epoch;
    if (r.samples > 0) s.loss = r.loss;
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
  tell_plans();
  publish(std::move(rows));
  after_watches(true);
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
  if (watches) watches->on_evaluation(e, step);
  std::vector<MetricRow> rows;
  for (const auto& [name, value] : evaluation_metrics(e)) rows.push_back({name, {step, seconds(), value}});
  const double value = e.decisive.value;
  const bool better = best.is_null() || (e.decisive.higher_is_better ? value > best.at("value").get<double>()
                                                                     : value < best.at("value").get<double>());
  if (better && std::isfinite(value)) best = {{"metric", "test_" + e.decisive.name}, {"value", value}, {"step", step}};
  for (const MetricRow& row : rows) evaluated[row.name].push_back({step, row.point.value});
  judge();
  tell_plans();
  publish(std::move(rows));
  after_watches(false);
  rate_from = Clock::now();
  rate_samples = rate_targets = 0;
}

void RunDriver::Impl::recall_evaluations() {
  const std::vector<Ancestry> past = lineage(*project, info.id, session->steps_done());
  std::set<std::string> names;
  for (const Ancestry& part : past)
    for (const std::string& name : project->metric_names(part.run))
      if (name.starts_with("test_")) names.insert(name);
  for (const std::string& name : names)
    for (const MetricPoint& p : metric_along(*project, past, name)) evaluated[name].push_back({p.step, p.value});
}

void RunDriver::Impl::judge() {
  early = reason_to_stop(session->recipe(), evaluated[session->recipe().text("stop.metric")]);
  if (early.empty()) early = session->ending();
}

void RunDriver::Impl::save_checkpoint() {
  saved_step = session->steps_done();
  std::optional<Project::ChangedRecipe> changed;
  if (std::exchange(change_unsaved, false)) changed = {session->recipe().to_json(), session->total_steps()};
  if (recorder) recorder->checkpoint(session->save(), seconds(), best, std::move(changed));
  tell_watch_costs();
}

/// The change and the state that it leaves are kept in one transaction: a replay finds both or neither.
void RunDriver::Impl::change_recipe(const Recipe& wanted, bool known) {
  std::string refused;
  try {
    if (!(session->recipe() == wanted)) {
      const bool others = recorder && session->recipe().text("watches") != wanted.text("watches");
      auto list = others ? make_watches(wanted) : nullptr;
      session->change(wanted);
      if (others) {
        while (!recorder->flush())  // they look back at what was recorded
          if (!room_on_disk()) break;
        tell_watch_costs();
        arm(std::move(list));
      }
      judge();
      change_unsaved = !known;
      if (!known) forget_later_changes();
      save_checkpoint();
    }
  } catch (const Error& e) {
    refused = e.message() + (e.hint().empty() ? "" : "; " + e.hint());
  }
  std::lock_guard lock(mutex);
  if (refused.empty()) {
    if (known) recipe = session->recipe();
    ++status.changes;
    status.total_steps = session->total_steps();
    status.epochs = session->epochs();
    status.lr = session->learning_rate();
  } else if (!wants_change) {
    recipe = session->recipe();
  }
  status.refused = refused;
}

void RunDriver::Impl::publish(std::vector<MetricRow> rows) {
  if (prune && pruned.empty()) pruned = prune(rows);
  {
    std::lock_guard lock(mutex);
    if (undrained.size() > kKeptForOthers) undrained.erase(undrained.begin(), undrained.begin() + kKeptForOthers / 2);
    undrained.insert(undrained.end(), rows.begin(), rows.end());
  }
  if (recorder) recorder->metrics(std::move(rows));
}

void RunDriver::Impl::tell_plans() {
  const std::vector<PlanNews> news = session->take_plan_news();
  if (news.empty()) return;
  std::vector<RunEvent> events;
  for (const PlanNews& n : news) events.push_back({session->steps_done(), n.op_by_op ? "op by op" : "plan", n.text});
  {
    std::lock_guard lock(mutex);
    if (undrained_events.size() > kKeptForOthers) undrained_events.clear();
    undrained_events.insert(undrained_events.end(), events.begin(), events.end());
  }
  if (recorder) recorder->events(std::move(events));
}

}  // namespace tenon::projects
