#include "engine/train/session.h"
#include "engine/model/examine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/backend.h"
#include "core/cuda_module.h"
#include "core/dry_device.h"
#include "core/error.h"
#include "core/profile.h"
#include "engine/autograd/autograd.h"
#include "engine/data/row_list.h"
#include "engine/nn/random_state.h"
#include "engine/op/autocast.h"
#include "engine/op/cuda_device.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/train/class_balance.h"
#include "engine/train/early_stop.h"
#include "engine/train/open_data.h"
#include "engine/train/session_impl.h"
#include "engine/train/step_edits.h"

namespace tenon {
namespace {

std::string bytes_text(double bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  while (bytes >= 1024 && u < 4) bytes /= 1024, ++u;
  return fmt::format("{:.{}f} {}", bytes, u ? 1 : 0, units[u]);
}

/// A step keeps every layer's output and its gradient; a batch whose outputs alone do not fit would end the process.
void check_memory(const ModelSpec& spec, int64_t batch) {
  double need = 0;
  for (const LayerReport& r : examine(spec, batch))
    need += 2.0 * static_cast<double>(r.output_bytes) + 4.0 * 4.0 * static_cast<double>(r.parameters);
  double have = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (need > have)
    throw Error::usage(fmt::format("data.batch_size = {}: a step would need about {} of memory; this machine has {}",
                                   batch, bytes_text(need), bytes_text(have)),
                       "use a smaller batch, or compute it in parts: data.micro_batches");
}

}  // namespace

Device TrainingSession::Impl::device_for(const Recipe& r, const SessionOptions& o) {
  const std::string& name = r.text("device");
  if (!(o.device == Device{}) || name == "cpu") return o.device;
  if (o.only_state) {
    const std::vector<std::string> here = device_names();
    if (std::find(here.begin(), here.end(), full_device_name(name)) == here.end()) return {};
  }
  return parse_device(name);
}

void TrainingSession::Impl::build() {
  GroupScope scope(group);  // the loader's workers take it over
  PhaseScope phase(Phase::build);
  seed = static_cast<uint64_t>(recipe.integer("seed"));
  target_is_input = recipe.text("data.target") == "input";
  micro_batches = recipe.integer("data.micro_batches");
  if (const std::string& amp = recipe.text("amp"); amp != "none") {
    low = amp == "bf16" ? DType::bf16 : DType::f16;
    if (low == DType::f16) scaler.emplace(optim::GradScaler::Options{.start = recipe.number("amp_scale")});
  }
  if (!data.train) data = open_data(recipe);
  int64_t batch = recipe.integer("data.batch_size");
  if (batch > data.train->size())
    throw Error::usage(fmt::format("data.batch_size = {} is larger than the data set, which has {} samples", batch,
                                   data.train->size()),
                       "use a smaller batch");
  const bool dry = is_dry(device);
  if (!dry) {
    // Whether the model fits at all comes before whether it fits the memory.
    GraphModule trial(spec, {DeviceType::meta});
    if (recipe.integer("recompute") < 2 && device == Device{})
      check_memory(spec, (batch + micro_batches - 1) / micro_batches);
  }
  model = std::make_shared<GraphModule>(spec, device);
  model->recompute(recipe.integer("recompute"));
  plan_steps();
  task.emplace(recipe, *data.train, model->input(), model->output());
  check_early_stop(recipe, task->view());
  model->initialize(seed);
  freeze();
  optimizer = make_optimizer(recipe);
  build_average();
  join_replicas();
  data::LoaderOptions loading = loader_options(recipe);
  if (replica) loading.rank = replica->rank(), loading.world = replica->world();
  loading.sampler = sampler_of(recipe, *data.train);
  loading.without = left_out(recipe);
  if (dry) loading.workers = 0;  // nothing is fetched
  loader = std::make_unique<data::Loader>(data.train, loading);
  per_epoch = loader->batches_per_epoch();
  total = steps_of(recipe);
  take_limits();
  base_lr = recipe.number("optimizer.lr");
  schedule = make_schedule(recipe);
  callbacks = make_callbacks(recipe, task->view());
  if (callbacks.attach(model) && replica)
    throw Error::usage("callbacks: one that changes what layers compute does not go with several processes",
                       "train in one process, or leave it out");
  take_edits();
}

void TrainingSession::Impl::take_limits() {
  stop_on_nan = recipe.text("on_nan") == "stop";
  clip_norm = recipe.number("optimizer.clip_norm");
  clip_value = recipe.number("optimizer.clip_value");
  teacher_weight = learns_from_teacher(recipe) ? recipe.number("distill.weight") : 0;
  feature_weight = recipe.number("distill.features_weight");
  temperature = recipe.number("distill.temperature");
}

std::unique_ptr<optim::Optimizer> TrainingSession::Impl::make_optimizer(const Recipe& r) const {
  if (model->parameters().empty())
    throw Error("the model has no parameters: there is nothing to train", "add a Linear or Conv2d layer");
  auto made = optim::make_optimizer(r.text("optimizer.type"), trained, r.attrs("optimizer"));
  optim::apply_rules(*made, r.text("optimizer.groups"), !r.flag("optimizer.decay_all"), "optimizer.groups");
  const bool clips = r.number("optimizer.clip_norm") > 0 || r.number("optimizer.clip_value") > 0;
  if (made->needs_closure() && (scaler || clips))
    throw Error::usage("optimizer.type = " + r.text("optimizer.type") +
                       " searches along a line: neither amp = fp16 nor clipping goes with it");
  return made;
}

std::unique_ptr<optim::Schedule> TrainingSession::Impl::make_schedule(const Recipe& r) const {
  // max_steps cuts a run short; it does not bend its schedule.
  const int64_t all = r.integer("epochs") * per_epoch, warmup = r.integer("schedule.warmup_steps");
  return optim::warmed_up(optim::make_schedule(r.text("schedule.type"), r.attrs("schedule"), {all, per_epoch, warmup}),
                          warmup);
}

CallbackList TrainingSession::Impl::make_callbacks(const Recipe& r, const TaskView& view) const {
  CallbackList made(r, {seed, per_epoch, r.integer("eval_every"), &view, &spec});
  if (optimizer->needs_closure() && made.changes_gradients())
    throw Error::usage("optimizer.type = " + r.text("optimizer.type") +
                       " searches along a line: no callback that changes gradients goes with it");
  return made;
}

std::vector<int64_t> TrainingSession::Impl::left_out(const Recipe& r) const {
  std::vector<int64_t> rows = data::parse_rows(r.text("data.without"), "data.without");
  const int64_t n = data.train->size();
  if (!rows.empty() && rows.back() >= n)
    throw Error::usage(fmt::format("data.without: there is no row {}; the training set has {} samples", rows.back(), n),
                       "rows count from 0");
  if (static_cast<int64_t>(rows.size()) == n)
    throw Error::usage("data.without leaves out every sample: nothing is left to train on");
  return rows;
}

int64_t TrainingSession::Impl::steps_of(const Recipe& r) const {
  const int64_t all = r.integer("epochs") * per_epoch - shift, limit = r.integer("max_steps");
  return limit > 0 ? std::min(all, limit) : all;
}

void TrainingSession::Impl::join_replicas() {
  if (!replica) return;
  for (const nn::Named& p : trained) {
    leaves.push_back(p.tensor);
    add_leaf_hook(p.tensor, [replica = replica, last = last_part](const Tensor& leaf) {
      if (*last) replica->gradient_ready(leaf);
    });
  }
  share_weights();
}

void TrainingSession::Impl::share_weights() {
  if (!replica) return;
  std::vector<Tensor> parameters;
  for (const nn::Named& p : model->parameters()) parameters.push_back(p.tensor);
  replica->broadcast(parameters);
  share_buffers();
}

void TrainingSession::Impl::share_buffers() {
  if (!replica) return;
  std::vector<Tensor> buffers;
  for (const nn::Named& b : model->buffers()) buffers.push_back(b.tensor);
  if (!buffers.empty()) replica->broadcast(buffers);
}

void TrainingSession::Impl::bring(data::Batch& batch, std::optional<KnownOnHost>& known) const {
  batch.x = to_device(batch.x, device);
  const Tensor here = std::exchange(batch.y, to_device(batch.y, device));
  known.emplace(batch.y, here);
}

data::Batch TrainingSession::Impl::dry_batch(const data::Dataset& set, int64_t n) const {
  const auto stacked = [&](const Meta& one) {
    Shape s = one.shape;
    s.insert(0, n);
    return empty(s, one.dtype, device);
  };
  data::Batch b;
  b.x = stacked(set.input());
  b.y = stacked(set.target());
  b.whole = n;
  return b;
}

data::Batch TrainingSession::Impl::next_dry_batch() {
  const int64_t n = std::min(recipe.integer("data.batch_size"), loader->samples_per_epoch());
  const int64_t ready = recipe.integer("data.workers") > 0 ? std::max<int64_t>(1, recipe.integer("data.prefetch")) : 0;
  while (static_cast<int64_t>(dry_batches.size()) <= ready) dry_batches.push_back(dry_batch(*data.train, n));
  data::Batch first = std::move(dry_batches.front());
  dry_batches.erase(dry_batches.begin());
  return first;
}

void TrainingSession::Impl::build_average() {
  const std::string& type = recipe.text("average.type");
  if (type == "none") return;
  // Running statistics go with the weights they were taken at.
  std::vector<nn::Named> all = model->parameters();
  for (const nn::Named& b : model->buffers()) all.push_back(b);
  average.emplace(std::move(all), type == "ema" ? recipe.number("average.decay") : -1);
}

/// Clips, updates, and decides whether to.
void TrainingSession::Impl::apply(StepResult& r, const data::Batch& batch, Terms& terms) {
  ProfileScope span("optimizer");
  {
    ProfileScope norm("gradient norm");
    r.grad_norm = optimizer->gradient_norm(terms.readings);
  }
  r.loss = settle(batch, &r, terms);
  if (scaler) {
    r.loss_scale = scaler->scale();
    const bool overflowed = !on_all(!(std::isfinite(r.loss) && !std::isfinite(r.grad_norm) && !scaler->hopeless()));
    if (overflowed) {
      const auto& norms = optimizer->gradient_norms();
      for (size_t i = 0; i < norms.size() && r.overflow.empty(); ++i)
        if (!std::isfinite(norms[i])) r.overflow = optimizer->parameters()[i].name;
    } else {
      optimizer->scale_gradients(1 / r.loss_scale);
      r.grad_norm /= r.loss_scale;
    }
    scaler->update(overflowed);
  }
  r.finite = on_all(std::isfinite(r.loss) && (std::isfinite(r.grad_norm) || !r.overflow.empty()));
  r.applied = r.overflow.empty() && (r.finite || !stop_on_nan);
  if (!r.applied) return;
  callbacks.on_gradients(trained, r.step);
  if (clip_value > 0) optimizer->clip_value(clip_value);
  if (clip_norm > 0) {
    if (clip_value > 0 || callbacks.changes_gradients()) optimizer->gradient_norm();
    optimizer->clip_norm(clip_norm);
  }
  if (!optimizer->needs_closure()) return optimizer->step(r.lr);
  const nn::RandomState start = random_state();
  optimizer->step(r.lr, r.loss, [&] {
    nn::RandomScope again(start);  // the same function at every point of the line
    return gradients(batch, nullptr);
  });
}

/// Replicas draw numbers of their own: a mask for one share of the batch is no mask for another.
nn::RandomState TrainingSession::Impl::random_state() const {
  const auto rank = static_cast<uint64_t>(replica ? replica->rank() : 0);
  return {seed ^ (rank * 0x9E3779B97F4A7C15ull), static_cast<uint64_t>(done), 0};
}

void TrainingSession::Impl::average_weights(const StepResult& r) {
  if (!average || !r.applied) return;
  if (static_cast<double>(place()) < recipe.number("average.start_epochs") * static_cast<double>(per_epoch)) return;
  if (recipe.text("average.type") == "ema" || r.epoch_end) average->update();
}

StepResult TrainingSession::Impl::step() {
  if (stands_in())
    throw Error(
        fmt::format("the run was trained on {}, which is not here{}{}", recipe.text("device"),
                    cuda_state().why.empty() ? "" : ": ", cuda_state().why),
        "Its steps cannot be done again on the CPU with the same bits. A branch can: tenon train PROJECT --from "
        "RUN@STEP --device cpu; RUN@STEP must be one of its checkpoints.");
  std::vector<TensorEdit> due;
  for (const TensorEdit& e : edits)
    if (e.step == done + 1 && !is_dry(device)) due.push_back(e);
  if (due.empty()) return step(nullptr);
  std::vector<nn::Named> named = model->state_dict();
  const std::vector<nn::Named> state = optimizer->state();
  t_state.origin.seq = 0;
  StepEdits made(std::move(due), named, state);
  return step(&made);
}

StepResult TrainingSession::Impl::step(StepEdits* made) {
  t_state.origin.seq = 0;
  ModuleScope root(0);
  nn::RandomScope random(random_state());
  StepResult r;
  r.step = done + 1;
  r.lr = schedule->at(place(), base_lr);
  tell([&](TrainingObserver& o) { o.on_step_begin(r.step); });
  start_training();
  data::Batch batch;
  std::optional<KnownOnHost> known;
  {
    PhaseScope phase(Phase::data);
    ProfileScope span("wait for batch");
    batch = is_dry(device) ? next_dry_batch() : loader->next();
    if (batch.whole > 0) bring(batch, known);
  }
  share_buffers();
  r.epoch = batch.epoch;
  r.index = batch.index;
  r.epoch_end = batch.index + 1 == per_epoch;
  r.samples = batch.whole;
  r.targets = r.samples * task->targets_per_sample();
  r.rows = batch.rows;
  if (r.samples == 0) {
    r.loss = std::numeric_limits<double>::quiet_NaN();
    r.applied = false;
    ++done;
    tell([&](TrainingObserver& o) { o.on_step_end(r); });
    return r;
  }
  tell([&](TrainingObserver& o) { o.on_batch(batch); });
  if (made && planned) planned->stay_eager("values are changed within them");
  Readings readings(device);
  Terms terms{.readings = readings};
  pass(batch, &r, terms, made == nullptr);
  if (made) made->on_backward();
  tell([](TrainingObserver& o) { o.on_backward(); });
  {
    PhaseScope phase(Phase::optimizer);
    apply(r, batch, terms);
    if (r.applied) callbacks.on_update(trained, r.step);
    if (made) made->on_end();
    ++done;
    average_weights(r);
  }
  tell([&](TrainingObserver& o) { o.on_step_end(r); });
  return r;
}

TrainingSession::TrainingSession(const ModelSpec& spec, const Recipe& recipe, const SessionOptions& options)
    : impl_(new Impl(spec, recipe, options)) {
  impl_->build();
}
TrainingSession::~TrainingSession() = default;

int64_t TrainingSession::steps_done() const { return impl_->done; }
int64_t TrainingSession::total_steps() const { return impl_->total; }
int64_t TrainingSession::steps_per_epoch() const { return impl_->per_epoch; }
int64_t TrainingSession::samples_per_epoch() const { return impl_->loader->samples_per_epoch(); }
int64_t TrainingSession::epoch() const { return impl_->place() / impl_->per_epoch; }
int64_t TrainingSession::shift() const { return impl_->shift; }
int64_t TrainingSession::epochs() const { return impl_->recipe.integer("epochs"); }
double TrainingSession::learning_rate() const { return impl_->schedule->at(impl_->place(), impl_->base_lr); }
bool TrainingSession::is_text() const { return impl_->task->view().task == "language"; }
std::vector<std::string> TrainingSession::planned() const {
  return impl_->of_plans([](PlannedStep& p) { return p.told(); });
}
std::vector<PlanNews> TrainingSession::take_plan_news() {
  std::vector<PlanNews> news;
  if (impl_->planned) news = impl_->planned->take_news();
  if (impl_->planned_evaluation)
    for (PlanNews& n : impl_->planned_evaluation->take_news()) news.push_back({"evaluation: " + n.text, n.op_by_op});
  return news;
}
const StepPlan* TrainingSession::plan() const { return impl_->planned ? impl_->planned->plan() : nullptr; }
Device TrainingSession::device() const { return impl_->device; }
uint32_t TrainingSession::group() const { return impl_->group; }

StepResult TrainingSession::step() {
  GroupScope group(impl_->group);
  try {
    return impl_->step();
  } catch (...) {
    impl_->seek();
    throw;
  }
}

Evaluation TrainingSession::evaluate(const EvalProgress& progress, const EvalObserver& observer) {
  return impl_->evaluate(progress, observer);
}
Evaluation TrainingSession::judge(const std::function<Tensor(const Tensor& x)>& program, const EvalProgress& progress) {
  return impl_->evaluate(progress, {}, program);
}
void TrainingSession::rehearse_evaluation() { impl_->rehearse_evaluation(); }
StepResult TrainingSession::probe(const std::vector<int64_t>& test_rows) {
  GroupScope group(impl_->group);
  return impl_->probe(test_rows);
}
double TrainingSession::loss_ahead() {
  GroupScope group(impl_->group);
  return impl_->loss_ahead();
}
WeightMap TrainingSession::start_from(std::vector<GivenTensor> tensors) {
  return impl_->start_from(std::move(tensors));
}
const std::string& TrainingSession::task() const { return impl_->task->view().task; }
int64_t TrainingSession::targets_per_sample() const { return impl_->task->targets_per_sample(); }

bool TrainingSession::evaluation_due() const {
  const int64_t every = impl_->recipe.integer("eval_every"), place = impl_->place(), epoch = impl_->per_epoch;
  return every > 0 && impl_->done > 0 && (finished() || (place % epoch == 0 && place / epoch % every == 0));
}
void TrainingSession::report(const Evaluation& e) {
  impl_->schedule->report(e.loss, impl_->place());
  impl_->callbacks.on_evaluation(e, impl_->done);
}
bool TrainingSession::watches_evaluations() const {
  return !impl_->schedule->state().is_null() || impl_->callbacks.watches_evaluations();
}
const std::string& TrainingSession::ending() const { return impl_->callbacks.ending(); }
std::vector<std::pair<std::string, double>> TrainingSession::callback_figures() const {
  return impl_->callbacks.figures();
}
void TrainingSession::detach_callbacks() { impl_->callbacks.detach(); }
std::vector<const Callback*> TrainingSession::listed_callbacks() const { return impl_->callbacks.members(); }

const ModelSpec& TrainingSession::spec() const { return impl_->spec; }
const Recipe& TrainingSession::recipe() const { return impl_->recipe; }
nn::Module& TrainingSession::model() { return *impl_->model; }
optim::Optimizer& TrainingSession::optimizer() { return *impl_->optimizer; }
const data::Dataset& TrainingSession::train_data() const { return *impl_->data.train; }
const data::Dataset& TrainingSession::test_data() const { return *impl_->data.test; }
const std::vector<data::Remark>& TrainingSession::remarks() const { return impl_->data.remarks; }
std::shared_ptr<const data::Dataset> TrainingSession::share_test_data() const { return impl_->data.test; }
void TrainingSession::add_observer(TrainingObserver* o) { impl_->observers.push_back(o); }
void TrainingSession::remove_observer(TrainingObserver* o) { std::erase(impl_->observers, o); }

}  // namespace tenon
