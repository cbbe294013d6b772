// What a run begins with, and what of it is never trained: see Note [What a run begins with].
#include <fmt/format.h>

#include <algorithm>

#include "core/backend.h"
#include "core/dry_device.h"
#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/train/freeze.h"
#include "engine/train/session_impl.h"

namespace tenon {

void TrainingSession::Impl::freeze() {
  trained = model->parameters();
  const Freeze frozen(recipe.text("init.freeze"));
  if (!frozen.any()) return;
  std::vector<std::string> names;
  for (const nn::Named& n : model->state_dict()) names.push_back(n.name);
  frozen.check(names);
  for (nn::Named& p : trained)
    if (frozen.holds(p.name)) set_requires_grad(p.tensor, false);
  const bool any = !trained.empty();
  std::erase_if(trained, [](const nn::Named& p) { return !p.tensor.requires_grad(); });
  if (any && trained.empty())
    throw Error::usage(fmt::format("init.freeze = {}: every parameter is frozen, and nothing is left to train",
                                   recipe.text("init.freeze")),
                       "leave the last layer out");
  for (const auto& [path, module] : model->named_modules()) {
    if (!module->children().empty()) continue;
    const std::vector<nn::Named> buffers = module->buffers();
    bool all = !buffers.empty();
    for (const nn::Named& b : buffers) all &= frozen.holds(path + "." + b.name);
    if (all) at_rest.push_back(module);
  }
}

void TrainingSession::Impl::take_edits() {
  edits = parse_edits(recipe.text("edits"));
  if (edits.empty()) return;
  if (replica) throw Error::usage("edits: several replicas compute a step in parts, whose ops have other values");
  for (const TensorEdit& e : edits) {
    if (e.seq && recipe.integer("recompute") > 1)
      throw Error::usage(
          fmt::format("edits: \"{}\": with recompute > 1 backward computes ops again, without the edit", edit_text(e)),
          "set recompute=0, which changes no bit");
    if (e.target == TensorEdit::Target::output) continue;
    std::vector<std::string> names;
    for (const nn::Named& n : e.target == TensorEdit::Target::state ? optimizer->state() : model->state_dict())
      names.push_back(n.name);
    if (std::find(names.begin(), names.end(), e.name) == names.end())
      throw Error::usage(fmt::format("edits: \"{}\": there is no {}", edit_text(e), e.name),
                         near_names(e.name, names.data(), names.size()));
  }
}

void TrainingSession::Impl::start_training() {
  model->train(true);
  for (nn::Module* m : at_rest) m->train(false);
}

void TrainingSession::learn_from(std::unique_ptr<Teacher> teacher) {
  GroupScope group(impl_->group);
  impl_->learn_from(std::move(teacher));
}
bool TrainingSession::lacks_teacher() const { return learns_from_teacher(impl_->recipe) && !impl_->teacher; }

void TrainingSession::Impl::learn_from(std::unique_ptr<Teacher> given) {
  const std::string& kind = task->view().task;
  if (!task->picks_classes())
    throw Error::usage(fmt::format("distill.from: a teacher is for tasks with classes, and this one is {}", kind),
                       "reset distill.from");
  if (!(given->input().shape == model->input().shape) || given->input().dtype != model->input().dtype)
    throw Error(
        fmt::format("the teacher takes {} {}, the model {} {}", name(given->input().dtype),
                    to_string(given->input().shape), name(model->input().dtype), to_string(model->input().shape)),
        "a teacher sees the batches that the student sees");
  if (!(given->output().shape == model->output().shape))
    throw Error(fmt::format("the teacher gives {} for each sample, the model {}", to_string(given->output().shape),
                            to_string(model->output().shape)),
                "a teacher has the classes that the student has");
  features.reset();
  if (!feature_pairs(recipe).empty()) features.emplace(recipe, spec, model, *given);
  teacher = std::move(given);
}

Tensor TrainingSession::Impl::loss_of(const Tensor& x, const Tensor& output, const Tensor& answer, Terms* told,
                                      double share) {
  const Tensor own = task->loss(output, answer);
  if (!learns_from_teacher(recipe) || (is_dry(device) && !teacher)) return own;
  if (!teacher)
    throw Error(fmt::format("the teacher that distill.from = {} names is not there", recipe.text("distill.from")),
                "begin a run with tenon train, or reset distill.from");
  const Tensor far = task->distance(output, (*teacher)(x), temperature);
  if (told) told->outputs.push_back({told->readings.add(far), share});
  const Tensor learnt = add(mul(own, 1 - teacher_weight), mul(far, teacher_weight));
  if (!features) return learnt;
  // A mean of all elements; where losses of samples are added up, so is it.
  const Tensor each = features->distance(), apart = task->sums() ? mul(each, static_cast<double>(x.size(0))) : each;
  if (told) told->features.push_back({told->readings.add(apart), share});
  return add(learnt, mul(apart, feature_weight));
}

WeightMap TrainingSession::Impl::start_from(std::vector<GivenTensor> tensors) {
  if (done != 0) throw Error("a session that has done steps cannot begin with other weights");
  WeightMap map = map_weights(model_tensors(*model, recipe), std::move(tensors), WeightRules(recipe));
  if (map.taken() == 0)
    throw Error("no tensor of the file fits the model: " + map.text(),
                map.rule.empty() ? "give rules for the names, as in init.map=\"backbone.*=features.*\""
                                 : fmt::format("init.map=\"{}\" would pair {}", map.rule, map.rule_pairs));
  if (recipe.text("init.missing") == "fail") {
    std::string lacks;
    size_t n = 0;
    for (const WeightRow& r : map.rows)
      if (r.target >= 0 && !r.taken() && ++n <= 6)
        lacks += fmt::format("{}{} ({})", lacks.empty() ? "" : ", ", map.model[static_cast<size_t>(r.target)].name,
                             name(r.state));
    if (n > 6) lacks += fmt::format(" and {} more", n - 6);
    if (n > 0)
      throw Error(fmt::format("the file does not give the model all it has: {}", lacks),
                  (map.rule.empty() ? std::string()
                                    : fmt::format("init.map=\"{}\" would pair {} more; ", map.rule, map.rule_pairs)) +
                      "init.missing=keep keeps the starting values of what is missing");
  }
  NoGrad off;
  const std::vector<nn::Named> mine = model->state_dict();
  for (const WeightRow& r : map.rows)
    if (r.taken())
      copy_(mine[static_cast<size_t>(r.target)].tensor,
            to_device(map.given[static_cast<size_t>(r.source)].tensor, device));
  share_weights();
  if (average) build_average();  // it begins where the weights do
  return map;
}

}  // namespace tenon
