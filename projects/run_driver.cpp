#include "projects/run_driver.h"

#include <fmt/format.h>

#include <cmath>
#include <exception>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/data/dataset.h"
#include "engine/op/cuda_device.h"
#include "engine/train/open_data.h"
#include "engine/train/teacher.h"
#include "engine/train/tensor_edit.h"
#include "projects/memory_check.h"
#include "projects/run_driver_impl.h"
#include "projects/samples.h"
#include "projects/surgery.h"
#include "projects/sweep.h"
#include "projects/teacher_file.h"
#include "projects/time_travel.h"
#include "projects/weights_file.h"

namespace tenon::projects {
namespace {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

void check_resume_options(const TrainOptions& o) {
  if (!o.run_name.empty())
    throw Error::usage("--run and --resume cannot go together", "--resume names the run to go on with.");
  if (!o.from.empty())
    throw Error::usage("--from and --resume cannot go together",
                       "--from begins another run, --resume goes on with the one it names.");
}

/// Gives a session the weights that its recipe begins with (Note [What a run begins with]).
void begin_with(TrainingSession& session, std::optional<WeightsFile> weights) {
  if (!weights) return;
  try {
    session.start_from(std::move(weights->tensors));
  } catch (const Error& e) {
    throw e.in(weights->text);
  }
}

/// The recipe of a run that has begun, with other values.
Recipe changed(Recipe recipe, const KeyValues& set) {
  for (const auto& [key, text] : set) recipe.set(key, text);
  for (const auto& [key, text] : set) {
    recipe.check_used(key);
    if (!TrainingSession::may_change(key))
      throw Error::usage(key + " cannot change in a run that has begun", "Begin a new run to change it.");
  }
  return recipe;
}

EpochLength epoch_length_of(const TrainingSession& session) {
  return {session.steps_per_epoch(), session.samples_per_epoch(), session.recipe().integer("data.batch_size"),
          session.shift()};
}

/// Opens the data that a session will have, and looks whether a step of it fits the memory.
std::shared_ptr<const data::Split> data_that_fits(const ModelSpec& model, const Recipe& recipe) {
  auto data = std::make_shared<const data::Split>(open_data(recipe));
  check_memory_fits(model, recipe, data, memory_limit_of(recipe.text("device")));
  return data;
}

/// What a call sets of a recipe.
KeyValues settings(const Recipe& recipe, const TrainOptions& options) {
  KeyValues set = options.set;
  if (options.without.empty() && options.edits.empty()) return set;
  Recipe with = recipe;
  for (const auto& [key, text] : set) with.set(key, text);
  if (!options.without.empty())
    set.emplace_back("data.without", also_without(with, named_samples(with, options.without)));
  std::string edits = with.text("edits");
  for (const std::string& text : options.edits) {
    const TensorEdit edit = parse_edit(text, options.from.empty() ? 0 : options.from_step + 1);
    if (!options.from.empty() && edit.step <= options.from_step)
      throw Error::usage(fmt::format("edit \"{}\": a branch from step {} begins with step {}", edit_text(edit),
                                     options.from_step, options.from_step + 1),
                         "Go on from an earlier step.");
    edits += (edits.empty() ? "" : "; ") + edit_text(edit);
  }
  if (!options.edits.empty()) set.emplace_back("edits", edits);
  return set;
}

/// Does the next step and takes it back: whether its edits find what they name is known before a run of them is kept.
void try_edits(TrainingSession& session) {
  const Checkpoint before = session.save();
  session.step();
  session.load(before);
}

/// The recipe with what a call sets of it.
Recipe told(Recipe recipe, const TrainOptions& options) {
  const KeyValues set = settings(recipe, options);
  for (const auto& [key, text] : set) recipe.set(key, text);
  for (const auto& [key, text] : set) recipe.check_used(key);
  recipe.set("device", full_device_name(recipe.text("device")));
  if (options.epochs >= 0) recipe.set("epochs", std::to_string(options.epochs));
  if (options.max_steps >= 0) recipe.set("max_steps", std::to_string(options.max_steps));
  return recipe;
}

}  // namespace

void RunDriver::Impl::begin(const TrainOptions& options, const Together& together) {
  if (options.model) throw Error::usage("another model is for a branch", "Name the run and the step: --from RUN@STEP");
  const TrialRun* trial = options.trial.get();
  Recipe recipe = told(Recipe::from_json(trial ? trial->recipe : project->recipe()), options);
  if (!recipe.text("init.anew").empty())
    throw Error::usage("init.anew says what a branch begins anew, and this run is none",
                       "Leave it out, or go on from a step of another run: --from RUN@STEP");
  const ModelSpec model = trial ? trial->model : project->model();
  std::optional<WeightsFile> weights;
  if (begins_with_weights(recipe)) {
    weights = read_weights(*project, model, recipe);
    recipe.set_value("init.sha256", weights->sha256);
  }
  std::optional<TeacherFile> teacher;
  if (learns_from_teacher(recipe)) {
    teacher = read_teacher(*project, recipe);
    recipe.set_value("distill.sha256", teacher->sha256);
  } else if (!recipe.text("distill.features").empty()) {
    throw Error::usage("distill.features names layers of a teacher, and there is none", "Name one: distill.from=RUN");
  }
  SessionOptions where = options.session;
  if (where.device == Device{} && !where.replica && !where.data) where.data = data_that_fits(model, recipe);
  session = std::make_unique<TrainingSession>(model, recipe, where);
  begin_with(*session, std::move(weights));
  if (teacher) give_teacher(*session, std::move(*teacher));
  std::unique_ptr<WatchList> list;
  together([&] {
    list = make_watches(recipe);
    info = project->new_run(options.run_name, model, recipe.to_json(), session->total_steps(),
                            trial ? trial->of : TrialOf{}, epoch_length_of(*session));
  });
  arm(std::move(list));
}

void RunDriver::Impl::branch(const TrainOptions& options) {
  if (replica) throw Error::usage("a branch cannot be trained by several replicas");
  const RunInfo parent = run_of_step(*project, project->run(options.from), options.from_step);
  if (options.from_step < 0 || options.from_step > parent.steps)
    throw Error::usage(fmt::format("run {} has done {} steps; there is no step {} to go on from", parent.name,
                                   parent.steps, options.from_step));
  const BranchOf of{parent.id, options.from_step, parent.name};
  Recipe recipe = Recipe::from_json(parent.recipe_after(of.step));
  const Recipe before = recipe;
  recipe.reset("init.anew");
  recipe = told(std::move(recipe), options);
  if (recipe.integer("seed") != before.integer("seed") && recipe.integer("data.seed") < 0)
    recipe.set_value("data.seed", before.integer("seed"));
  SessionOptions where = options.session;
  const ModelSpec& model = options.model ? *options.model : parent.model;
  if (where.device == Device{} && !where.data) where.data = data_that_fits(model, recipe);
  std::optional<TeacherFile> teacher;
  if (learns_from_teacher(recipe) && recipe.text("distill.from") != before.text("distill.from")) {
    if (recipe.text("distill.sha256") == before.text("distill.sha256")) recipe.reset("distill.sha256");
    teacher = read_teacher(*project, recipe);
    recipe.set_value("distill.sha256", teacher->sha256);
  }
  session = branch_from(*project, of, model, recipe, options.replaying, where);
  if (teacher) give_teacher(*session, std::move(*teacher));
  if (session->finished())
    throw Error::usage(fmt::format("under this recipe run {} has done all its steps after step {}: nothing is left for "
                                   "a branch",
                                   parent.name, of.step),
                       "Go on from an earlier step, or give it more: epochs or max_steps.");
  if (!options.edits.empty()) try_edits(*session);
  for (const MetricPoint& p : project->metric(parent.id, "loss"))
    if (p.step <= of.step) trained = p.wall;
  auto list = make_watches(recipe);
  info = project->new_run(options.run_name, model, recipe.to_json(), session->total_steps(), {},
                          epoch_length_of(*session), of);
  arm(std::move(list));
}

void RunDriver::Impl::go_on(const TrainOptions& options, const Together& together) {
  check_resume_options(options);
  if (options.model)
    throw Error::usage("a run goes on with its own model", "With another one it is a branch: --from RUN@STEP");
  info = project->run(options.resume);
  fresh = false;
  const bool none = project->checkpoints(info.id).empty();
  // One killed before its first checkpoint starts over: its seed is in the recipe, and what it began with is named.
  std::optional<Checkpoint> last;
  if (!none) last = project->checkpoint_before(info.id, INT64_MAX);
  const Recipe recipe = Recipe::from_json(info.recipe_after(last ? last->step : -1));
  if (none && info.branch) {
    session = branch_from(*project, info.branch, info.model, recipe, options.replaying, options.session);
  } else {
    std::optional<WeightsFile> weights;
    if (none && begins_with_weights(recipe)) weights = read_weights(*project, info.model, recipe);
    session = std::make_unique<TrainingSession>(info.model, recipe, options.session);
    begin_with(*session, std::move(weights));
  }
  if (none && session->lacks_teacher()) give_teacher(*session, read_teacher(*project, recipe));
  if (last) {
    session->load(*last);
    saved_step = last->step;
  }
  KeyValues set = settings(recipe, options);
  std::erase_if(set, [&](const auto& s) {  // it is there already
    return s.first == "device" && full_device_name(s.second) == full_device_name(recipe.text("device"));
  });
  if (options.epochs >= 0) set.emplace_back("epochs", std::to_string(options.epochs));
  if (!set.empty()) {
    session->change(changed(recipe, set));
    if (session->finished())
      throw Error::usage(fmt::format("run {} has done all its {} steps", info.name, session->steps_done()),
                         "Give it more together with the change: epochs or max_steps.");
    change_unsaved = true;
    forget_later_changes();
    saved_step = -1;
  }
  std::unique_ptr<WatchList> list;
  together([&] {
    list = make_watches(session->recipe());
    // Refused while another process trains it.
    project->continue_run(info.id, session->steps_done(), info.seconds, epoch_length_of(*session));
  });
  trained = info.seconds;
  arm(std::move(list));
  best = info.best;
  if (options.max_steps >= 0) stop_at = options.max_steps;
}

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
  if (!options.resume.empty())
    d.go_on(options, together);
  else if (!options.from.empty())
    d.branch(options);
  else
    d.begin(options, together);
  RunStatus& s = d.status;
  s.run = d.info.id;
  s.parent = d.info.branch.run;
  s.name = d.info.name;
  s.step = d.session->steps_done();
  s.total_steps = d.session->total_steps();
  s.steps_per_epoch = d.session->steps_per_epoch();
  s.epoch = d.session->epoch();
  s.epochs = d.session->epochs();
  s.lr = d.session->learning_rate();
  s.seconds = d.trained;
  d.recipe = d.session->recipe();
  d.pause = options.start_paused;
  d.obeys_watches = options.obeys_watches;
  // A trial that is gone on with by its name is one all the same.
  d.prune = options.prune || options.resume.empty() ? options.prune : pruning_of(*project, d.info.id);
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
void RunDriver::change(const std::vector<std::pair<std::string, std::string>>& set) {
  if (impl_->replica)
    throw Error::usage("the recipe of one replica cannot be changed apart from the others'",
                       "Stop the run and go on with it: --resume takes --set.");
  {
    std::lock_guard lock(impl_->mutex);
    impl_->recipe = changed(impl_->recipe, set);
    impl_->wants_change = true;
    impl_->status.refused.clear();
  }
  impl_->wake.notify_all();
}

Recipe RunDriver::recipe() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->recipe;
}

RunStatus RunDriver::status() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->status;
}
const std::vector<data::Remark>& RunDriver::remarks() const { return impl_->session->remarks(); }
void RunDriver::drain(std::vector<MetricRow>& out) {
  out.clear();
  std::lock_guard lock(impl_->mutex);
  std::swap(out, impl_->undrained);
}
void RunDriver::drain(std::vector<WatchHit>& out) {
  out.clear();
  std::lock_guard lock(impl_->mutex);
  std::swap(out, impl_->undrained_hits);
}
void RunDriver::drain(std::vector<RunEvent>& out) {
  out.clear();
  std::lock_guard lock(impl_->mutex);
  std::swap(out, impl_->undrained_events);
}
void RunDriver::wait() {
  std::unique_lock lock(impl_->mutex);
  impl_->end.wait(lock, [this] { return impl_->ended; });
}

}  // namespace tenon::projects
