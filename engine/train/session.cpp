#include "engine/train/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/profile.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/data/loader.h"
#include "engine/model/graph_module.h"
#include "engine/nn/random_state.h"
#include "engine/ops/create.h"
#include "engine/ops/loss.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/schedule.h"
#include "engine/train/recipe.h"

namespace tenon {
namespace {

constexpr int kStateVersion = 1;
constexpr int64_t kEvaluationBatch = 256;

data::Options data_options(const Recipe& r) {
  data::Options o;
  o.dir = r.text("data.dir");
  o.seed = static_cast<uint64_t>(r.integer("seed"));
  o.attrs = r.attrs("data");
  o.nan_sample = r.integer("data.nan_sample");
  o.nan_value_index = r.integer("data.nan_value_index");
  return o;
}

data::LoaderOptions loader_options(const Recipe& r) {
  data::LoaderOptions o;
  o.batch = r.integer("data.batch_size");
  o.workers = static_cast<int>(r.integer("data.workers"));
  o.prefetch = r.integer("data.prefetch");
  o.shuffle = r.flag("data.shuffle");
  o.drop_last = r.flag("data.drop_last");
  o.seed = static_cast<uint64_t>(r.integer("seed"));
  return o;
}

std::unique_ptr<optim::Optimizer> make_optimizer(std::vector<nn::Named> parameters, const Recipe& r) {
  if (parameters.empty()) throw Error("the model has no parameters: there is nothing to train", "add a Linear or Conv2d layer");
  auto optimizer = optim::make_optimizer(r.text("optimizer.type"), std::move(parameters), r.attrs("optimizer"));
  optim::apply_rules(*optimizer, r.text("optimizer.groups"), !r.flag("optimizer.decay_all"), "optimizer.groups");
  return optimizer;
}

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
    throw Error::usage(fmt::format("data.batch_size = {}: a step would need about {} of memory; this machine has {}", batch,
                                   bytes_text(need), bytes_text(have)),
                       "use a smaller batch");
}

}  // namespace

struct TrainingSession::Impl {
  ModelSpec spec;
  Recipe recipe;
  data::Split data;
  std::shared_ptr<GraphModule> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Schedule> schedule;
  std::unique_ptr<data::Loader> loader;
  std::vector<TrainingObserver*> observers;
  bool cross_entropy = true, stop_on_nan = true;
  const uint32_t group = new_group();
  uint64_t seed = 0;
  int64_t per_epoch = 0, total = 0;

  // The state beside the tensors.
  int64_t done = 0;
  double base_lr = 0;

  Impl(const ModelSpec& s, const Recipe& r) : spec(s), recipe(r) {}
  void build();
  void check_ends() const;
  Tensor loss_of(const Tensor& output, const Tensor& target) const;
  StepResult step();
  Evaluation evaluate(const EvalProgress& progress);
  std::vector<nn::Named> tensors() const;
  template <class F>
  void tell(const F& f) {
    for (TrainingObserver* o : observers) f(*o);
  }
};

void TrainingSession::Impl::build() {
  GroupScope scope(group);  // the loader's workers take it over
  PhaseScope phase(Phase::build);
  seed = static_cast<uint64_t>(recipe.integer("seed"));
  stop_on_nan = recipe.text("on_nan") == "stop";
  cross_entropy = recipe.text("loss.type") == "cross_entropy";
  data = data::open_dataset(recipe.text("data.dataset"), data_options(recipe));
  int64_t batch = recipe.integer("data.batch_size");
  if (batch > data.train->size())
    throw Error::usage(fmt::format("data.batch_size = {} is larger than the data set, which has {} samples", batch, data.train->size()),
                       "use a smaller batch");
  {
    // Whether the model fits at all comes before whether it fits the memory.
    GraphModule trial(spec, {DeviceType::meta});
    check_memory(spec, batch);
  }
  model = std::make_shared<GraphModule>(spec);
  check_ends();
  model->initialize(seed);
  optimizer = make_optimizer(model->parameters(), recipe);
  loader = std::make_unique<data::Loader>(data.train, loader_options(recipe));
  per_epoch = loader->batches_per_epoch();
  int64_t all = recipe.integer("epochs") * per_epoch, limit = recipe.integer("max_steps");
  total = limit > 0 ? std::min(all, limit) : all;
  base_lr = recipe.number("optimizer.lr");
  // max_steps cuts a run short; it does not bend its schedule.
  int64_t warmup = recipe.integer("schedule.warmup_steps");
  schedule = optim::warmed_up(optim::make_schedule(recipe.text("schedule.type"), recipe.attrs("schedule"), {all, per_epoch, warmup}), warmup);
}

void TrainingSession::Impl::check_ends() const {
  Meta in = data.train->input(), target = data.train->target();
  const std::string& name = recipe.text("data.dataset");
  if (!(model->input().shape == in.shape))
    throw Error(fmt::format("the model takes samples of shape {}; those of data set {} have shape {}", to_string(model->input().shape),
                            name, to_string(in.shape)),
                "set the shape of the Input layer to the data set's");
  const Shape& out = model->output().shape;
  int64_t classes = data.train->classes();
  if (classes > 0 && !(out == Shape{classes}))
    throw Error(fmt::format("the model gives {} for each sample; data set {} has {} classes, which need [{}]", to_string(out), name,
                            classes, classes),
                "set the last layer's out_features to the number of classes");
  if (classes == 0 && cross_entropy)
    throw Error::usage(fmt::format("loss.type = cross_entropy needs classes; the targets of data set {} are values", name),
                       "use loss.type = mse");
  if (classes == 0 && !(out == target.shape))
    throw Error(fmt::format("the model gives {} for each sample; the targets of data set {} have shape {}", to_string(out), name,
                            to_string(target.shape)));
}

Tensor TrainingSession::Impl::loss_of(const Tensor& output, const Tensor& target) const {
  if (cross_entropy) return tenon::cross_entropy(output, target);
  int64_t classes = data.train->classes();
  return mse_loss(output, classes > 0 ? one_hot(target, classes, output.dtype()) : target);
}

StepResult TrainingSession::Impl::step() {
  t_state.origin.seq = 0;
  ModuleScope root(0);
  nn::RandomScope random({seed, static_cast<uint64_t>(done), 0});
  StepResult r;
  r.step = done + 1;
  r.lr = schedule->at(done, base_lr);
  tell([&](TrainingObserver& o) { o.on_step_begin(r.step); });
  model->train(true);
  data::Batch batch;
  {
    PhaseScope phase(Phase::data);
    ProfileScope span("wait for batch");
    batch = loader->next();
  }
  r.epoch = batch.epoch;
  r.index = batch.index;
  r.epoch_end = batch.index + 1 == per_epoch;
  r.samples = static_cast<int64_t>(batch.rows.size());
  r.rows = batch.rows;
  tell([&](TrainingObserver& o) { o.on_batch(batch); });
  optimizer->zero_grad();
  {
    Tensor loss;
    {
      PhaseScope phase(Phase::forward);
      ProfileScope span("forward");
      Tensor output = (*model)(batch.x);
      loss = loss_of(output, batch.y);
      tell([&](TrainingObserver& o) { o.on_forward(output, loss); });
    }
    r.loss = item(loss);
    PhaseScope phase(Phase::backward);
    ProfileScope span("backward");
    backward(loss);
  }
  tell([](TrainingObserver& o) { o.on_backward(); });
  PhaseScope phase(Phase::optimizer);
  ProfileScope span("optimizer");
  {
    ProfileScope norm("gradient norm");
    r.grad_norm = optimizer->gradient_norm();
  }
  r.finite = std::isfinite(r.loss) && std::isfinite(r.grad_norm);
  r.applied = r.finite || !stop_on_nan;
  if (r.applied) optimizer->step(r.lr);
  ++done;
  tell([&](TrainingObserver& o) { o.on_step_end(r); });
  return r;
}

Evaluation TrainingSession::Impl::evaluate(const EvalProgress& progress) {
  PhaseScope phase(Phase::evaluate);
  ModuleScope root(0);
  NoGrad no_grad;
  uint32_t seq = t_state.origin.seq;
  struct TrainAgain {
    nn::Module& m;
    ~TrainAgain() { m.train(true); }
  } again{*model};
  model->train(false);
  const data::Dataset& set = *data.test;
  bool classes = set.classes() > 0;
  Evaluation e;
  double loss = 0;
  int64_t batches = (set.size() + kEvaluationBatch - 1) / kEvaluationBatch;
  for (int64_t b = 0; b < batches; ++b) {
    if (progress && !progress(b, batches)) throw Error("the evaluation was cancelled");
    std::vector<int64_t> rows(static_cast<size_t>(std::min(kEvaluationBatch, set.size() - b * kEvaluationBatch)));
    std::iota(rows.begin(), rows.end(), b * kEvaluationBatch);
    int64_t n = static_cast<int64_t>(rows.size());
    data::Batch batch = data::fetch(set, std::move(rows));
    Tensor output = contiguous((*model)(batch.x));
    loss += item(loss_of(output, batch.y)) * static_cast<double>(n);
    e.samples += n;
    if (!classes) continue;
    int64_t width = output.size(-1);
    for (int64_t i = 0; i < n; ++i) {
      const float* row = output.data<float>() + i * width;
      // The first of equal maxima; a row with a NaN counts as wrong.
      int64_t best = 0;
      bool number = row[0] == row[0];
      for (int64_t j = 1; j < width; ++j) {
        number &= row[j] == row[j];
        if (row[j] > row[best]) best = j;
      }
      e.correct += number && best == batch.y.data<int64_t>()[i];
    }
  }
  if (progress) progress(batches, batches);
  e.loss = e.samples ? loss / static_cast<double>(e.samples) : 0;
  e.accuracy = classes && e.samples ? static_cast<double>(e.correct) / static_cast<double>(e.samples) : -1;
  t_state.origin.seq = seq;
  return e;
}

std::vector<nn::Named> TrainingSession::Impl::tensors() const {
  std::vector<nn::Named> all;
  for (const nn::Named& n : model->parameters()) all.push_back({"model/" + n.name, n.tensor});
  for (const nn::Named& n : model->buffers()) all.push_back({"model/" + n.name, n.tensor});
  for (const nn::Named& n : optimizer->state()) all.push_back({"optimizer/" + n.name, n.tensor});
  std::sort(all.begin(), all.end(), [](const nn::Named& a, const nn::Named& b) { return a.name < b.name; });
  return all;
}

TrainingSession::TrainingSession(const ModelSpec& spec, const Recipe& recipe) : impl_(new Impl(spec, recipe)) { impl_->build(); }
TrainingSession::~TrainingSession() = default;

int64_t TrainingSession::steps_done() const { return impl_->done; }
int64_t TrainingSession::total_steps() const { return impl_->total; }
int64_t TrainingSession::steps_per_epoch() const { return impl_->per_epoch; }
int64_t TrainingSession::epoch() const { return impl_->done / impl_->per_epoch; }
int64_t TrainingSession::epochs() const { return impl_->recipe.integer("epochs"); }
double TrainingSession::learning_rate() const { return impl_->schedule->at(impl_->done, impl_->base_lr); }
void TrainingSession::set_learning_rate(double base) {
  if (!(base >= 0) || !std::isfinite(base)) throw Error::usage(fmt::format("a learning rate of {} is not a number of at least 0", base));
  impl_->base_lr = base;
}

uint32_t TrainingSession::group() const { return impl_->group; }

StepResult TrainingSession::step() {
  GroupScope group(impl_->group);
  try {
    return impl_->step();
  } catch (...) {
    impl_->loader->seek(impl_->done / impl_->per_epoch, impl_->done % impl_->per_epoch);
    throw;
  }
}

Evaluation TrainingSession::evaluate(const EvalProgress& progress) { return impl_->evaluate(progress); }

Checkpoint TrainingSession::save() const {
  const Impl& m = *impl_;
  NoGrad no_grad;
  CategoryScope category(Category::other);
  Checkpoint c;
  c.step = m.done;
  for (const nn::Named& n : m.tensors()) c.tensors.emplace_back(n.name, clone(detach(n.tensor), Order::contiguous));
  c.state = {{"version", kStateVersion}, {"step", m.done},       {"epoch", m.done / m.per_epoch},          {"cursor", m.done % m.per_epoch},
             {"seed", m.seed},           {"base_lr", m.base_lr}, {"optimizer_steps", m.optimizer->steps()}};
  return c;
}

void TrainingSession::load(const Checkpoint& c) {
  Impl& m = *impl_;
  auto number = [&](const char* key) -> const nlohmann::json& {
    auto found = c.state.find(key);
    if (found == c.state.end() || !found->is_number())
      throw Error(fmt::format("the checkpoint of step {} has no number \"{}\" in its state", c.step, key));
    return *found;
  };
  if (number("version").get<int64_t>() != kStateVersion)
    throw Error(fmt::format("the checkpoint of step {} is of version {}; this program reads version {}", c.step,
                            number("version").get<int64_t>(), kStateVersion));
  if (number("seed").get<uint64_t>() != m.seed)
    throw Error(
        fmt::format("the checkpoint of step {} was made with seed {}; the recipe says {}", c.step, number("seed").get<uint64_t>(), m.seed));
  int64_t done = number("step").get<int64_t>(), steps = number("optimizer_steps").get<int64_t>();
  double base = number("base_lr").get<double>();
  if (done < 0 || number("epoch").get<int64_t>() != done / m.per_epoch || number("cursor").get<int64_t>() != done % m.per_epoch)
    throw Error(fmt::format("the checkpoint of step {} stands at batch {} of epoch {}; with this recipe an epoch has {} batches", done,
                            number("cursor").get<int64_t>(), number("epoch").get<int64_t>(), m.per_epoch),
                "the batch size or the data set differs from the run's");
  std::map<std::string, Tensor> given(c.tensors.begin(), c.tensors.end());
  auto mine = m.tensors();
  for (const nn::Named& n : mine) {
    auto found = given.find(n.name);
    if (found == given.end())
      throw Error(fmt::format("the checkpoint of step {} has no tensor \"{}\"", c.step, n.name),
                  "it belongs to another model or optimizer");
    const Tensor& t = found->second;
    if (!(t.size() == n.tensor.size()) || t.dtype() != n.tensor.dtype())
      throw Error(fmt::format("tensor \"{}\" of the checkpoint of step {} is {} {}, not {} {}", n.name, c.step, name(t.dtype()),
                              to_string(t.size()), name(n.tensor.dtype()), to_string(n.tensor.size())),
                  "it belongs to another model");
  }
  if (given.size() != mine.size()) {
    for (const nn::Named& n : mine) given.erase(n.name);
    throw Error(fmt::format("the checkpoint of step {} has a tensor \"{}\" that this session does not know", c.step, given.begin()->first),
                "it belongs to another model or optimizer");
  }
  NoGrad no_grad;
  for (const nn::Named& n : mine) copy_(n.tensor, given.at(n.name));
  m.optimizer->zero_grad();
  m.optimizer->set_steps(steps);
  m.done = done;
  m.base_lr = base;
  m.loader->seek(done / m.per_epoch, done % m.per_epoch);
}

const ModelSpec& TrainingSession::spec() const { return impl_->spec; }
const Recipe& TrainingSession::recipe() const { return impl_->recipe; }
nn::Module& TrainingSession::model() { return *impl_->model; }
optim::Optimizer& TrainingSession::optimizer() { return *impl_->optimizer; }
const data::Dataset& TrainingSession::train_data() const { return *impl_->data.train; }
const data::Dataset& TrainingSession::test_data() const { return *impl_->data.test; }
void TrainingSession::add_observer(TrainingObserver* o) { impl_->observers.push_back(o); }
void TrainingSession::remove_observer(TrainingObserver* o) { std::erase(impl_->observers, o); }

}  // namespace tenon
