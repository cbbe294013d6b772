// Another recipe in the middle of a run: see Note [A recipe that changes].
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/data/dataset.h"
#include "engine/ops/view.h"
#include "engine/train/early_stop.h"
#include "engine/train/session_impl.h"

namespace tenon {

bool TrainingSession::may_change(const std::string& key) {
  if (key == "optimizer.type" || key == "loss.type") return false;
  for (const char* group : {"optimizer.", "schedule.", "loss.", "stop."})
    if (key.starts_with(group)) return true;
  static constexpr const char* kAlone[] = {"epochs",
                                           "max_steps",
                                           "eval_every",
                                           "checkpoint_every",
                                           "on_nan",
                                           "callbacks",
                                           "compile",
                                           "data.without",
                                           "watches",
                                           "distill.weight",
                                           "distill.temperature",
                                           "distill.features_weight"};
  return std::find(std::begin(kAlone), std::end(kAlone), key) != std::end(kAlone);
}

void TrainingSession::change(const Recipe& recipe) { impl_->change(recipe); }

namespace {
/// Gives an optimizer what another one of its kind remembers.
void hand_over(const optim::Optimizer& from, optim::Optimizer& to) {
  const std::vector<nn::Named> old = from.state(), fresh = to.state();
  const bool same = std::equal(old.begin(), old.end(), fresh.begin(), fresh.end(), [](const auto& a, const auto& b) {
    return a.name == b.name && a.tensor.size() == b.tensor.size() && a.tensor.dtype() == b.tensor.dtype();
  });
  if (!same)
    throw Error::usage("the optimizer would have to remember something else than it has in this run so far",
                       "Keep its settings that add or drop state (momentum, amsgrad), or begin a new run.");
  const NoGrad off;
  for (size_t i = 0; i < old.size(); ++i) copy_(fresh[i].tensor, old[i].tensor);
  to.set_steps(from.steps());
  for (size_t i = 0; i < to.parameters().size(); ++i) to.set_begun(i, from.begun(i));
}
}  // namespace

void TrainingSession::Impl::change(const Recipe& r) {
  for (const AttrDef& def : Recipe::keys())
    if (!may_change(def.name) && !(recipe.at(def.name) == r.at(def.name)))
      throw Error::usage(def.name + " cannot change in a run that has begun", "Begin a new run to change it.");
  GroupScope scope(group);
  auto new_optimizer = make_optimizer(r);
  hand_over(*optimizer, *new_optimizer);
  auto new_schedule = make_schedule(r);
  if (r.text("schedule.type") == recipe.text("schedule.type")) new_schedule->load(schedule->state());
  Task new_task(r, *data.train, model->input(), model->output());
  check_early_stop(r, new_task.view());
  CallbackList new_callbacks = make_callbacks(r, new_task.view());
  if (r.text("callbacks") == recipe.text("callbacks"))
    new_callbacks.load(callbacks.state());
  else
    new_callbacks.take_over(callbacks);
  std::vector<int64_t> without = left_out(r);
  // From here on nothing throws.
  optimizer = std::move(new_optimizer);
  schedule = std::move(new_schedule);
  callbacks.detach();
  callbacks = std::move(new_callbacks);
  callbacks.attach(model);
  task.emplace(std::move(new_task));
  recipe = r;
  plan_steps();
  base_lr = r.number("optimizer.lr");
  total = steps_of(r);
  take_limits();
  loader->leave_out(std::move(without));
}

}  // namespace tenon
