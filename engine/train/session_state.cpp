#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/backend.h"
#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/view.h"
#include "engine/train/session_impl.h"

namespace tenon {
namespace {

constexpr int kStateVersion = 1;

}  // namespace

std::vector<nn::Named> TrainingSession::Impl::tensors() const {
  std::vector<nn::Named> all;
  for (const nn::Named& n : model->parameters()) all.push_back({"model/" + n.name, n.tensor});
  for (const nn::Named& n : model->buffers()) all.push_back({"model/" + n.name, n.tensor});
  for (const nn::Named& n : optimizer->state()) all.push_back({"optimizer/" + n.name, n.tensor});
  if (average)
    for (const nn::Named& n : average->averages()) all.push_back({"average/" + n.name, n.tensor});
  std::sort(all.begin(), all.end(), [](const nn::Named& a, const nn::Named& b) { return a.name < b.name; });
  return all;
}

std::vector<int64_t> TrainingSession::Impl::begun_of(const nlohmann::json& state, int64_t steps) const {
  std::vector<int64_t> all;
  for (const nn::Named& p : optimizer->parameters()) {
    const auto told = state.find("optimizer_begun");
    const bool there = told != state.end() && told->is_object() && told->contains(p.name);
    const nlohmann::json begun = there ? (*told)[p.name] : nlohmann::json(0);
    if (!begun.is_number_integer() || begun.get<int64_t>() < 0 || begun.get<int64_t>() > steps)
      throw Error(fmt::format("the state says of {} that the optimizer had done {} steps before it, of {}", p.name,
                              begun.dump(), steps));
    all.push_back(begun.get<int64_t>());
  }
  return all;
}

Checkpoint TrainingSession::save() const {
  const Impl& m = *impl_;
  NoGrad no_grad;
  CategoryScope category(Category::other);
  Checkpoint c;
  c.step = m.done;
  for (const nn::Named& n : m.tensors())
    c.tensors.emplace_back(n.name, clone(to_host(detach(n.tensor)), Order::contiguous));
  c.state = {{"version", kStateVersion},
             {"step", m.done},
             {"epoch", m.place() / m.per_epoch},
             {"cursor", m.place() % m.per_epoch},
             {"seed", m.seed},
             {"base_lr", m.base_lr},
             {"optimizer_steps", m.optimizer->steps()}};
  // Entries beyond these are there only where something keeps them.
  if (nlohmann::json schedule = m.schedule->state(); !schedule.is_null()) c.state["schedule"] = std::move(schedule);
  if (m.shift != 0) c.state["shift"] = m.shift;
  if (m.scaler) c.state["scaler"] = m.scaler->state();
  if (!m.callbacks.empty()) c.state["callbacks"] = m.callbacks.state();
  for (size_t i = 0; i < m.optimizer->parameters().size(); ++i)
    if (const int64_t begun = m.optimizer->begun(i); begun != 0)
      c.state["optimizer_begun"][m.optimizer->parameters()[i].name] = begun;
  if (m.average) c.state["averaged"] = m.average->updates();
  if (m.teacher) m.teacher->keep(c);
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
    throw Error(fmt::format("the checkpoint of step {} was made with seed {}; the recipe says {}", c.step,
                            number("seed").get<uint64_t>(), m.seed));
  int64_t done = number("step").get<int64_t>(), steps = number("optimizer_steps").get<int64_t>();
  double base = number("base_lr").get<double>();
  const int64_t shift = c.state.contains("shift") ? number("shift").get<int64_t>() : 0, place = done + shift;
  if (done < 0 || place < 0 || number("epoch").get<int64_t>() != place / m.per_epoch ||
      number("cursor").get<int64_t>() != place % m.per_epoch)
    throw Error(
        fmt::format(
            "the checkpoint of step {} stands at batch {} of epoch {}; with this recipe an epoch has {} batches", done,
            number("cursor").get<int64_t>(), number("epoch").get<int64_t>(), m.per_epoch),
        "the batch size or the data set differs from the run's");
  std::map<std::string, Tensor> given;
  for (const auto& [name, t] : c.tensors)
    if (!Teacher::owns(name)) given.emplace(name, t);
  std::unique_ptr<Teacher> teacher = Teacher::kept(c, m.device);
  if (static_cast<bool>(teacher) != learns_from_teacher(m.recipe))
    throw Error(fmt::format("the checkpoint of step {} has {} teacher; the recipe names {}", c.step,
                            teacher ? "a" : "no", teacher ? "none" : "one"),
                "it belongs to another recipe");
  auto mine = m.tensors();
  for (const nn::Named& n : mine) {
    auto found = given.find(n.name);
    if (found == given.end())
      throw Error(fmt::format("the checkpoint of step {} has no tensor \"{}\"", c.step, n.name),
                  "it belongs to another model or optimizer");
    const Tensor& t = found->second;
    if (!(t.size() == n.tensor.size()) || t.dtype() != n.tensor.dtype())
      throw Error(fmt::format("tensor \"{}\" of the checkpoint of step {} is {} {}, not {} {}", n.name, c.step,
                              name(t.dtype()), to_string(t.size()), name(n.tensor.dtype()), to_string(n.tensor.size())),
                  "it belongs to another model");
  }
  if (given.size() != mine.size()) {
    for (const nn::Named& n : mine) given.erase(n.name);
    throw Error(fmt::format("the checkpoint of step {} has a tensor \"{}\" that this session does not know", c.step,
                            given.begin()->first),
                "it belongs to another model or optimizer");
  }
  auto entry = [&](const char* key) { return c.state.contains(key) ? c.state[key] : nlohmann::json(); };
  const std::vector<int64_t> begun = m.begun_of(c.state, steps);
  int64_t averaged = m.average ? number("averaged").get<int64_t>() : 0;
  // Whichever refuses, all are as they were.
  const nlohmann::json schedule_before = m.schedule->state(), callbacks_before = m.callbacks.state();
  try {
    m.schedule->load(entry("schedule"));
    m.callbacks.load(entry("callbacks"));
    if (m.scaler) m.scaler->load(entry("scaler"));
  } catch (...) {
    m.schedule->load(schedule_before);
    m.callbacks.load(callbacks_before);
    throw;
  }
  if (teacher) m.learn_from(std::move(teacher));
  NoGrad no_grad;
  for (const nn::Named& n : mine) copy_(n.tensor, given.at(n.name));
  m.optimizer->zero_grad();
  m.optimizer->set_steps(steps);
  for (size_t i = 0; i < begun.size(); ++i) m.optimizer->set_begun(i, begun[i]);
  if (m.average) m.average->set_updates(averaged);
  m.done = done;
  m.shift = shift;
  m.total = m.steps_of(m.recipe);
  m.base_lr = base;
  m.seek();
}

}  // namespace tenon
