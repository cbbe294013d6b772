#include <optional>

#include "core/dry_device.h"
#include "core/profile.h"
#include "engine/autograd/autograd.h"
#include "engine/op/autocast.h"
#include "engine/op/tf32.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/train/session_impl.h"

namespace tenon {

double TrainingSession::Impl::Terms::sum(const std::vector<Part>& parts) const {
  double all = 0;
  for (const Part& p : parts) all += readings.at(p.number) * p.share;
  return all;
}

void TrainingSession::Impl::pass(const data::Batch& batch, StepResult* step, Terms& terms, bool may_plan) {
  const Tf32Scope products(recipe.flag("tf32"));
  optimizer->zero_grad();
  const Tensor& target = target_of(batch);
  const int64_t n = batch.x.size(0), parts = std::min(micro_batches, n);
  for (int64_t part = 0; part < parts; ++part) {
    if (part == kDryParts - 1 && is_dry(device)) part = parts - 1;
    int64_t begin = n * part / parts, count = n * (part + 1) / parts - begin;
    const double share = task->sums() ? 1 : static_cast<double>(count) / static_cast<double>(batch.whole);
    *last_part = part + 1 == parts;
    const double factor = share * (scaler ? scaler->scale() : 1);
    Tensor answer;
    const auto compute = [&] {
      std::optional<AutocastScope> autocast;
      if (low) autocast.emplace(*low);
      const Tensor x = parts == 1 ? batch.x : narrow(batch.x, 0, begin, count);
      if (features) features->begin();
      PlannedStep::Values v;
      v.output = (*model)(x);
      answer = parts == 1 ? target : narrow(target, 0, begin, count);
      v.loss = loss_of(x, v.output, answer, step ? &terms : nullptr, share);
      return v;
    };
    const auto look = [&](const PlannedStep::Values& v) {
      if (step && terms.judged) {
        const std::optional<size_t> right = task->right(v.output, answer, terms.readings);
        terms.judged = right.has_value();
        if (right) terms.right.push_back(*right);
      }
      if (step && part + 1 == parts) tell([&](TrainingObserver& o) { o.on_forward(v.output, v.loss); });
    };
    const auto back = [&](const Tensor& loss) {
      PhaseScope phase(Phase::backward);
      ProfileScope span("backward");
      backward(factor == 1 ? loss : mul(loss, factor));
    };
    // Who looks at the step is told of its forward pass before its graph is gone.
    if (may_plan && !PlannedStep::looked_at() && plans(parts)) {
      const PlannedStep::Values v = planned->run(batch.x, target, factor, trained, [&] {
        PlannedStep::Values eager;
        {
          PhaseScope phase(Phase::forward);
          ProfileScope span("forward");
          eager = compute();
        }
        back(eager.loss);
        return eager;
      });
      answer = target;
      PhaseScope phase(Phase::forward);
      look(v);
      terms.loss.push_back({terms.readings.add(v.loss), share});
      continue;
    }
    Tensor loss;
    {
      PhaseScope phase(Phase::forward);
      ProfileScope span("forward");
      const PlannedStep::Values v = compute();
      look(v);
      loss = v.loss;
    }
    terms.loss.push_back({terms.readings.add(loss), share});
    back(loss);
  }
  if (!replica) return;
  PhaseScope phase(Phase::communication);
  ProfileScope span("replicas");
  replica->finish(leaves);
  terms.total = settle(batch, step, terms);  // here, so that all ranks ask each other in the same order
}

double TrainingSession::Impl::settle(const data::Batch& batch, StepResult* step, const Terms& terms) const {
  if (terms.total) return *terms.total;
  const auto of_all = [this](double mine) { return replica ? replica->sum(mine) : mine; };
  if (step && terms.judged) {
    double right = 0;
    for (const size_t number : terms.right) right += terms.readings.at(number);
    step->accuracy = of_all(right) / static_cast<double>(batch.whole * task->targets_per_sample());
  }
  if (step && !terms.outputs.empty()) step->teacher_loss = of_all(terms.sum(terms.outputs));
  if (step && !terms.features.empty()) step->feature_loss = of_all(terms.sum(terms.features));
  return of_all(terms.sum(terms.loss));
}

double TrainingSession::Impl::gradients(const data::Batch& batch, StepResult* step) {
  Readings readings(device);
  Terms terms{.readings = readings};
  pass(batch, step, terms);
  return settle(batch, step, terms);
}

void TrainingSession::Impl::plan_steps() {
  const bool wanted = recipe.flag("compile") && !is_dry(device);
  const auto keep = recipe.integer("recompute") > 0 ? StepPlan::Keep::costly : StepPlan::Keep::all;
  planned = wanted ? std::make_unique<PlannedStep>(*model, "steps", keep) : nullptr;
  planned_evaluation = wanted ? std::make_unique<PlannedStep>(*model, "batches") : nullptr;
}

std::vector<std::string> TrainingSession::Impl::of_plans(
    const std::function<std::vector<std::string>(PlannedStep&)>& ask) const {
  std::vector<std::string> lines;
  if (planned) lines = ask(*planned);
  if (planned_evaluation)
    for (const std::string& line : ask(*planned_evaluation)) lines.push_back("evaluation: " + line);
  return lines;
}

/// What a plan would leave out keeps the step from one.
bool TrainingSession::Impl::plans(int64_t parts) {
  if (!planned) return false;
  const char* why = replica                      ? "several processes train together"
                    : parts > 1                  ? "data.micro_batches adds gradients up"
                    : teacher                    ? "a teacher is asked beside the model"
                    : features                   ? "the layers of a teacher are matched"
                    : optimizer->needs_closure() ? "the optimizer searches along a line"
                                                 : nullptr;
  if (why) planned->stay_eager(why);
  return !why;
}

}  // namespace tenon
