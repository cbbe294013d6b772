#include "projects/time_travel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/parallel.h"
#include "core/sha256.h"
#include "core/tensor_bytes.h"
#include "engine/nn/module.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "engine/train/surgery.h"
#include "projects/lineage.h"
#include "projects/teacher_file.h"
#include "tracing/record/numbers.h"
#include "tracing/record/step_recorder.h"

namespace tenon::projects {

static void evaluate_where_due(TrainingSession& session) {
  if (session.watches_evaluations() && session.evaluation_due()) session.report(session.evaluate());
}

StepResult replay_step(TrainingSession& session) {
  StepResult r = session.step();
  evaluate_where_due(session);
  return r;
}

std::unique_ptr<TrainingSession> branch_from(Project& project, const BranchOf& parent, const ModelSpec& model,
                                             const Recipe& recipe, const Progress& progress,
                                             const SessionOptions& options) {
  const auto before = replay_to(project, parent.run, parent.step, progress);
  auto session = std::make_unique<TrainingSession>(model, recipe, options);
  if (before->spec() == model)
    session->branch(before->save(), before->recipe());
  else
    session->branch(before->save(), before->recipe(), before->spec());
  return session;
}

Replayer::Replayer(RunInfo run) : run_(std::move(run)) {}
Replayer::~Replayer() = default;

TrainingSession& Replayer::load(const Checkpoint& from, bool only_state) {
  // A checkpoint after whose step the recipe was changed is of the changed session.
  const nlohmann::json& recipe = run_.recipe_after(from.step);
  if (!session_)
    session_ = std::make_unique<TrainingSession>(run_.model, Recipe::from_json(recipe),
                                                 SessionOptions{.only_state = only_state});
  else if (recipe != recipe_)
    session_->change(Recipe::from_json(recipe));  // what it remembers the checkpoint replaces
  recipe_ = recipe;
  session_->load(from);
  return *session_;
}

TrainingSession& Replayer::take(std::unique_ptr<TrainingSession> session) {
  session_ = std::move(session);
  recipe_ = run_.recipe_after(session_->steps_done());
  return *session_;
}

StepResult Replayer::step() {
  const StepResult r = session_->step();
  settle();
  return r;
}

void Replayer::settle() {
  evaluate_where_due(*session_);
  if (const RecipeChange* c = run_.change_after(session_->steps_done())) {
    session_->change(Recipe::from_json(c->recipe));
    recipe_ = c->recipe;
  }
}

std::unique_ptr<TrainingSession> Replayer::release() { return std::move(session_); }

/// Of a branch that has no checkpoint yet.
static std::unique_ptr<TrainingSession> begun_branch(Project& project, const RunInfo& info, const Progress& progress) {
  const Recipe recipe = Recipe::from_json(info.recipe);
  auto session = branch_from(project, info.branch, info.model, recipe, progress, {});
  if (session->lacks_teacher()) give_teacher(*session, read_teacher(project, recipe, progress));
  return session;
}

/// `last` is the last step that there is, or that may come next.
static void check_step(const RunInfo& info, int64_t step, int64_t last) {
  if (step > last)
    throw Error::usage(
        fmt::format("run {} has done {} steps; there is no step {} to go to", info.name, info.steps, step),
        "Go on with it first: Resume in the window, or tenon train --resume " + info.name);
}

std::unique_ptr<TrainingSession> replay_to(Project& project, int64_t run, int64_t step, const Progress& progress) {
  const RunInfo info = project.run(run);
  if (info.branch && step >= 0 && step < info.branch.step) return replay_to(project, info.branch.run, step, progress);
  if (step < 0)
    throw Error::usage(fmt::format("step {} makes no sense: steps count from 0, the state before the first one", step));
  check_step(info, step, info.steps);
  Replayer replayer(info);
  if (info.branch && project.checkpoints(run).empty())  // it was killed before its first one
    replayer.take(begun_branch(project, info, progress));
  else {
    const Checkpoint from = project.checkpoint_before(run, step);
    replayer.load(from, from.step == step);
  }
  const int64_t begin = replayer.session().steps_done();
  for (int64_t done = begin; done < step; ++done) {
    if (progress && !progress(done - begin, step - begin)) throw Error("cancelled");
    replayer.step();
  }
  return replayer.release();
}

StepBatch batch_of(Project& project, int64_t run, int64_t step, const Progress& progress) {
  const RunInfo info = project.run(run);
  if (step < 1 || step > info.steps)
    throw Error::usage(
        fmt::format("run {} has done {} steps; there is no batch of step {}", info.name, info.steps, step),
        "Steps count from 1");
  const StepResult r = replay_step(*replay_to(project, run, step - 1, progress));
  return {r.step, r.epoch, r.rows};
}

Checkpoint state_at(Project& project, int64_t run, int64_t step, int threads, const Progress& progress) {
  if (threads > 0) set_num_threads(threads);
  return replay_to(project, run, step, progress)->save();
}

void record_values(Project& project, int64_t run, int64_t from, int64_t to,
                   const std::function<void(const tracing::StepRecord&)>& take, const Progress& progress) {
  for (const Ancestry& part : lineage(project, run, to)) {
    const int64_t first = std::max(from, part.after + 1), last = std::min(to, part.upto);
    if (first > last) continue;
    const RunInfo info = project.run(part.run);
    Replayer replayer(info);
    replayer.take(replay_to(project, part.run, first - 1, progress));
    for (int64_t step = first; step <= last; ++step) {
      if (progress && !progress(step - from, to - from + 1)) throw Error("cancelled");
      take(*tracing::record_step(replayer.session(), info.name, {.clocks = false}));
      replayer.settle();
    }
  }
}

std::shared_ptr<const tracing::StepRecord> record_step(Project& project, int64_t run, int64_t step,
                                                       const Progress& progress) {
  if (step < 1) throw Error::usage(fmt::format("there is no step {} to record: the first step is 1", step));
  const RunInfo info = project.run(run);
  check_step(info, step, info.steps + 1);
  const auto session = replay_to(project, run, step - 1, progress);
  if (session->finished()) throw Error::usage(fmt::format("the run ends at step {}", session->steps_done()));
  return tracing::record_step(*session, info.name);
}

namespace {

/// Whether every parameter and buffer is finite after a step.
bool finite_after(Project& project, int64_t run, int64_t step, const Progress& progress) {
  const auto session = replay_to(project, run, step, progress);
  const auto finite = [](const nn::Named& n) {
    Dims index;
    double value;
    return !tracing::first_bad(n.tensor, index, value);
  };
  const auto all = [&](const std::vector<nn::Named>& named) { return std::all_of(named.begin(), named.end(), finite); };
  return all(session->model().parameters()) && all(session->model().buffers());
}

}  // namespace

std::shared_ptr<const tracing::StepRecord> find_nan(Project& project, int64_t run, const Progress& progress) {
  // Every step's loss and gradient norm are kept: where one of them is not finite first is where to look.
  int64_t first = INT64_MAX;
  for (const char* metric : {"loss", "grad_norm"})
    for (const MetricPoint& p : project.metric(run, metric))
      if (!std::isfinite(p.value)) {
        first = std::min(first, p.step);
        break;
      }
  if (first == INT64_MAX) return nullptr;
  const auto record = record_step(project, run, first, progress);
  // Bad before the first op, and not from the data: an update overflowed. Loss and gradients may have been finite for
  // many steps after it (tanh of an infinity is 1), but what is not finite in a parameter stays there.
  if (record->nan && record->nan->seq == 0 && record->nan->sample < 0 && first > 1) {
    int64_t good = 0, bad = first - 1;  // steps after which all was finite, and something was not
    if (!finite_after(project, run, good, progress)) return record;
    while (bad - good > 1) {
      const int64_t middle = good + (bad - good) / 2;
      (finite_after(project, run, middle, progress) ? good : bad) = middle;
    }
    const auto session = replay_to(project, run, good, progress);
    const auto before = tracing::record_step(*session, project.run(run).name, {.look_at_updates = true});
    if (before->nan && before->nan->seq != 0) return before;
  }
  return record;
}

std::string digest_at(Project& project, int64_t run, int64_t step, int threads, const Progress& progress) {
  return digest(state_at(project, run, step, threads, progress));
}

std::string digest(const Checkpoint& checkpoint) {
  Sha256 h;
  std::vector<char> copy;
  h.update(fmt::format("tenon state 1\nstep {}\n{}\n", checkpoint.step, checkpoint.state.dump()));
  for (const auto& [name, tensor] : checkpoint.tensors) {
    h.update(fmt::format("{} {} {}\n", name, tenon::name(tensor.dtype()), to_string(tensor.size())));
    const std::string_view bytes = logical_bytes(tensor, copy);
    h.update(bytes.data(), bytes.size());
  }
  return hex(h.finish());
}

}  // namespace tenon::projects
