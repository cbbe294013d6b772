#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/backend.h"
#include "core/error.h"
#include "engine/op/autocast.h"
#include "engine/op/tf32.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "engine/train/session_impl.h"

namespace tenon {
namespace {

constexpr int64_t kEvaluationBatch = 256;

/// What is changed for an evaluation and put back after it, however it ends.
struct Changed {
  nn::Module& model;
  optim::WeightAverage* average;
  uint32_t seq = t_state.origin.seq;
  Changed(nn::Module& m, optim::WeightAverage* a) : model(m), average(a) {
    model.train(false);
    if (average) average->swap();
  }
  ~Changed() {
    if (average) average->swap();
    model.train(true);
    t_state.origin.seq = seq;
  }
  Changed(const Changed&) = delete;
};

/// Steps from a plan and an evaluation do not work in the same memory.
struct PlanAtRest {
  const PlannedStep *steps, *evaluation;
  PlanAtRest(const PlannedStep* s, const PlannedStep* e) : steps(s), evaluation(e) {
    if (steps) steps->rest();
  }
  ~PlanAtRest() {
    if (evaluation) evaluation->drop_graphs();
    if (steps) steps->rest();
  }
  PlanAtRest(const PlanAtRest&) = delete;
};

}  // namespace

Evaluation TrainingSession::Impl::evaluate(const EvalProgress& progress, const EvalObserver& observer,
                                           const std::function<Tensor(const Tensor& x)>& program) {
  const Tf32Scope products(recipe.flag("tf32"));
  PhaseScope phase(Phase::evaluate);
  ModuleScope root(0);
  NoGrad no_grad;
  const PlanAtRest rest(planned.get(), planned_evaluation.get());
  const bool averaged = average && average->updates() > 0 && recipe.flag("average.evaluate");
  share_buffers();
  Changed changed(*model, averaged ? &*average : nullptr);
  const data::Dataset& set = *data.test;
  struct Judge {
    const MetricDef* def;
    std::unique_ptr<Meter> meter;
  };
  std::vector<Judge> judges;
  const TaskView& view = task->view();
  auto has = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), view.task) != list.end();
  };
  for (const MetricDef& def : metrics())
    if (has(def.tasks)) judges.push_back({&def, def.make(view)});
  Evaluation e;
  Readings readings(device);
  std::vector<std::pair<size_t, double>> losses;  // of batches, and what each counts for
  const int64_t size = evaluation_batch();
  int64_t batches = (set.size() + size - 1) / size;
  for (int64_t b = 0; b < batches; ++b) {
    if (progress && !progress(b, batches)) throw Error("the evaluation was cancelled");
    std::vector<int64_t> rows(static_cast<size_t>(std::min(size, set.size() - b * size)));
    std::iota(rows.begin(), rows.end(), b * size);
    int64_t n = static_cast<int64_t>(rows.size());
    data::Batch batch = data::fetch(set, std::move(rows));
    std::optional<KnownOnHost> known;
    bring(batch, known);
    const auto compute = [&] {
      std::optional<AutocastScope> autocast;
      if (low && !program) autocast.emplace(*low);
      PlannedStep::Values v;
      v.output = program ? program(batch.x) : (*model)(batch.x);
      v.loss = task->loss(v.output, target_of(batch));
      return v;
    };
    const PlannedStep::Values v =
        planned_evaluation && !program ? planned_evaluation->run(batch.x, target_of(batch), 1, {}, compute) : compute();
    const Tensor& output = v.output;
    losses.emplace_back(readings.add(v.loss), task->sums() ? 1.0 : static_cast<double>(n));
    e.samples += n;
    const Tensor scores = to_host(task->scores(output)), answers = to_host(task->answers(target_of(batch)));
    for (Judge& j : judges) j.meter->add(scores, answers);
    if (observer) observer(batch.rows, scores, answers);
  }
  if (progress) progress(batches, batches);
  double loss = 0;
  for (const auto& [number, weight] : losses) loss += readings.at(number) * weight;
  e.loss = e.samples ? loss / static_cast<double>(e.samples) : 0;
  e.accuracy = -1;
  e.decisive = {"loss", e.loss, false};
  for (Judge& j : judges) {
    j.meter->loss(e.loss);
    e.judgements.push_back({j.def->name, j.meter->value(), j.def->higher_is_better});
    if (j.def->name == "accuracy") e.accuracy = e.judgements.back().value;
    if (has(j.def->decides)) e.decisive = e.judgements.back();
  }
  if (e.accuracy >= 0)
    e.correct = std::llround(e.accuracy * static_cast<double>(e.samples * task->targets_per_sample()));
  return e;
}

int64_t TrainingSession::Impl::evaluation_batch() const {
  // Many small targets a sample: a large batch would only be slow.
  return task->targets_per_sample() == 1 ? kEvaluationBatch
                                         : std::min(kEvaluationBatch, recipe.integer("data.batch_size"));
}

void TrainingSession::Impl::rehearse_evaluation() {
  const Tf32Scope products(recipe.flag("tf32"));
  const int64_t n = std::min(evaluation_batch(), data.test->size());
  if (n < 1) return;
  PhaseScope phase(Phase::evaluate);
  ModuleScope root(0);
  const NoGrad no_grad;
  Changed changed(*model, average && recipe.flag("average.evaluate") ? &*average : nullptr);
  const data::Batch batch = dry_batch(*data.test, n);
  std::optional<AutocastScope> autocast;
  if (low) autocast.emplace(*low);
  const Tensor output = (*model)(batch.x), loss = task->loss(output, target_of(batch));
  autocast.reset();
  const Tensor scores = task->scores(output), answers = task->answers(target_of(batch));
}

StepResult TrainingSession::Impl::probe(const std::vector<int64_t>& rows) {
  t_state.origin.seq = 0;
  ModuleScope root(0);
  nn::RandomScope random(random_state());
  const bool averaged = average && average->updates() > 0 && recipe.flag("average.evaluate");
  StepResult r;
  r.step = done;
  r.epoch = done / per_epoch;
  r.rows = rows;
  tell([&](TrainingObserver& o) { o.on_step_begin(r.step); });
  Changed changed(*model, averaged ? &*average : nullptr);
  data::Batch batch;
  std::optional<KnownOnHost> known;
  {
    PhaseScope phase(Phase::data);
    batch = data::fetch(*data.test, rows);
    bring(batch, known);
  }
  r.samples = batch.whole;
  tell([&](TrainingObserver& o) { o.on_batch(batch); });
  r.loss = gradients(batch, &r);
  if (scaler) optimizer->scale_gradients(1 / scaler->scale());
  tell([](TrainingObserver& o) { o.on_backward(); });
  r.grad_norm = optimizer->gradient_norm();
  r.finite = std::isfinite(r.loss) && std::isfinite(r.grad_norm);
  r.applied = false;
  tell([&](TrainingObserver& o) { o.on_step_end(r); });
  return r;
}

double TrainingSession::Impl::loss_ahead() {
  const Tf32Scope products(recipe.flag("tf32"));
  PhaseScope phase(Phase::evaluate);
  ModuleScope root(0);
  const NoGrad no_grad;
  data::Batch batch = loader->next();
  seek();
  if (batch.whole == 0) return std::numeric_limits<double>::quiet_NaN();
  std::optional<KnownOnHost> known;
  bring(batch, known);
  Changed changed(*model, nullptr);
  const int64_t n = batch.x.size(0), parts = std::min(micro_batches, n);
  double loss = 0;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = n * part / parts, count = n * (part + 1) / parts - begin;
    std::optional<AutocastScope> autocast;
    if (low) autocast.emplace(*low);
    const Tensor x = narrow(batch.x, 0, begin, count);
    if (features) features->begin();
    const Tensor output = (*model)(x);
    const double one = item(loss_of(x, output, narrow(target_of(batch), 0, begin, count)));
    loss += one * (task->sums() ? 1.0 : static_cast<double>(count) / static_cast<double>(batch.whole));
  }
  return loss;
}

}  // namespace tenon
