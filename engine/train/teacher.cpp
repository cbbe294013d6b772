#include "engine/train/teacher.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/backend.h"
#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/view.h"
#include "engine/train/recipe.h"

namespace tenon {

Teacher::Teacher(const ModelSpec& model, std::vector<std::pair<std::string, Tensor>> tensors, Device device)
    : spec_(model), tensors_(std::move(tensors)), module_(std::make_shared<GraphModule>(model, device)) {
  module_->initialize(0, "teacher");
  module_->requires_grad_(false);
  module_->eval();
  const std::map<std::string, Tensor> given(tensors_.begin(), tensors_.end());
  const NoGrad off;
  for (const nn::Named& n : module_->state_dict()) {
    const auto at = given.find(n.name);
    if (at == given.end() || !(at->second.size() == n.tensor.size()))
      throw Error(fmt::format("the teacher's weights have no {} of size {}", n.name, to_string(n.tensor.size())),
                  "they belong to another model");
    copy_(n.tensor, to_device(cast(at->second, n.tensor.dtype()), device));
  }
}

Tensor Teacher::operator()(const Tensor& x) const {
  const NoGrad off;
  return (*module_)(x);
}

void Teacher::keep(Checkpoint& c) const {
  c.state["teacher"] = spec_.to_json();
  for (const auto& [name, t] : tensors_) c.tensors.emplace_back("teacher/" + name, t);
}

std::unique_ptr<Teacher> Teacher::kept(const Checkpoint& c, Device device) {
  const auto spec = c.state.find("teacher");
  if (spec == c.state.end()) return nullptr;
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, t] : c.tensors)
    if (owns(name)) tensors.emplace_back(name.substr(name.find('/') + 1), t);
  return std::make_unique<Teacher>(ModelSpec::from_json(*spec), std::move(tensors), device);
}

bool learns_from_teacher(const Recipe& recipe) { return !recipe.text("distill.from").empty(); }

}  // namespace tenon
