// Going on from a step of another session: see Note [A branch].
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/view.h"
#include "engine/train/freeze.h"
#include "engine/train/session_impl.h"

namespace tenon {
namespace {

/// "layers.0.weight" of "model/layers.0.weight" and of "optimizer/layers.0.weight/exp_avg".
std::string parameter_of(const std::string& tensor) {
  const size_t begin = tensor.find('/') + 1, end = tensor.rfind('/');
  return tensor.substr(begin, end > begin ? end - begin : tensor.npos);
}

/// Of the optimizer, and of no one parameter.
bool is_shared(const std::string& tensor) { return tensor.starts_with("optimizer/") && tensor.rfind('/') == 9; }

}  // namespace

void TrainingSession::branch(const Checkpoint& state, const Recipe& of) {
  GroupScope group(impl_->group);
  impl_->branch(state, of);
}

void TrainingSession::Impl::go_on_with_optimizer(const nlohmann::json& state, const std::set<std::string>& taken) {
  const int64_t steps = state.value("optimizer_steps", int64_t{0});
  optimizer->set_steps(steps);
  const std::vector<int64_t> begun = begun_of(state, steps);
  // A parameter of which it remembers nothing is new to it.
  std::map<std::string, bool> remembered;
  for (const nn::Named& n : optimizer->state())
    if (n.name.find('/') != n.name.npos)
      remembered[n.name.substr(0, n.name.rfind('/'))] |= taken.contains("optimizer/" + n.name);
  for (size_t i = 0; i < begun.size(); ++i) {
    const auto at = remembered.find(optimizer->parameters()[i].name);
    optimizer->set_begun(i, at == remembered.end() || at->second ? begun[i] : steps);
  }
}

void TrainingSession::Impl::branch(const Checkpoint& c, const Recipe& of) {
  if (done != 0) throw Error("a session that has done steps cannot go on from another one");
  if (replica) throw Error::usage("a branch cannot be trained by several replicas");
  const auto same = [&](const char* key) { return recipe.text(key) == of.text(key); };
  const Freeze anew(recipe.text("init.anew"), "init.anew");
  std::vector<std::string> names;
  for (const nn::Named& n : model->state_dict()) names.push_back(n.name);
  anew.check(names);

  const std::map<std::string, Tensor> given(c.tensors.begin(), c.tensors.end());
  std::vector<std::pair<Tensor, Tensor>> taken;
  std::set<std::string> names_taken;
  // What an optimizer remembers of all parameters together is of use as a whole.
  bool shared_fits = true;
  for (const nn::Named& n : tensors())
    if (is_shared(n.name)) {
      const auto found = given.find(n.name);
      shared_fits &= found != given.end() && found->second.size() == n.tensor.size();
    }
  for (const nn::Named& n : tensors()) {
    if (anew.holds(parameter_of(n.name))) continue;
    const auto found = given.find(n.name);
    const bool fits =
        found != given.end() && found->second.size() == n.tensor.size() && found->second.dtype() == n.tensor.dtype();
    const bool weights = n.name.starts_with("model/");
    if (weights && !fits)
      throw Error(fmt::format("the state of step {} has no tensor \"{}\" of {} {}", c.step, n.name,
                              name(n.tensor.dtype()), to_string(n.tensor.size())),
                  "it belongs to another model");
    if (!weights && is_shared(n.name) && !shared_fits) continue;
    const char* kind = n.name.starts_with("average/") ? "average.type" : "optimizer.type";
    if (fits && (weights || same(kind))) taken.emplace_back(n.tensor, found->second), names_taken.insert(n.name);
  }
  const auto number = [&](const char* key) { return c.state.value(key, int64_t{0}); };
  const auto entry = [&](const char* key) { return c.state.contains(key) ? c.state[key] : nlohmann::json(); };
  if (same("schedule.type")) schedule->load(entry("schedule"));
  if (scaler && c.state.contains("scaler")) scaler->load(c.state["scaler"]);
  if (same("callbacks")) {
    callbacks.load(entry("callbacks"));
  } else {
    CallbackList before = make_callbacks(of, task->view());
    before.load(entry("callbacks"));
    callbacks.take_over(before);
  }

  if (learns_from_teacher(recipe) && same("distill.from"))
    if (auto theirs = Teacher::kept(c, device)) learn_from(std::move(theirs));

  const NoGrad off;
  if (anew.any()) model->initialize(seed + 1);
  for (auto& [mine, theirs] : taken) copy_(mine, theirs);
  if (same("optimizer.type")) go_on_with_optimizer(c.state, names_taken);
  if (average && same("average.type"))
    average->set_updates(number("averaged"));
  else if (average)
    build_average();  // it begins where the weights are

  // In samples of the running epoch, both of whose lengths are rounded to whole batches.
  const int64_t samples = number("cursor") * of.integer("data.batch_size");
  const int64_t index = std::min(samples / recipe.integer("data.batch_size"), per_epoch - 1);
  done = number("step");
  shift = number("epoch") * per_epoch + index - done;
  total = steps_of(recipe);
  seek();
}

}  // namespace tenon
