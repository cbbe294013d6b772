#include "engine/nn/module.h"

#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"

namespace tenon::nn {
namespace {

std::string join(const std::string& prefix, const std::string& name) { return prefix.empty() ? name : prefix + "." + name; }

}  // namespace

Tensor Module::operator()(std::span<const Tensor> inputs) {
  ModuleScope scope(path_id_);
  return forward(inputs);
}

Tensor Module::forward(const Tensor&) { throw Error(describe() + " has no forward pass for one input"); }

Tensor Module::forward(std::span<const Tensor> inputs) {
  if (inputs.size() != 1) throw Error(describe() + " takes 1 input, not " + std::to_string(inputs.size()));
  return forward(inputs[0]);
}

void Module::reset(uint64_t) {}

void Module::collect(bool parameters, const std::string& prefix, std::vector<Named>& out) const {
  for (const Named& n : parameters ? parameters_ : buffers_) out.push_back({join(prefix, n.name), n.tensor});
  for (const auto& [name, child] : children_) child->collect(parameters, join(prefix, name), out);
}

std::vector<Named> Module::parameters() const {
  std::vector<Named> out;
  collect(true, {}, out);
  return out;
}

std::vector<Named> Module::buffers() const {
  std::vector<Named> out;
  collect(false, {}, out);
  return out;
}

int64_t Module::parameter_count() const {
  int64_t n = 0;
  for (const Named& p : parameters()) n += p.tensor.numel();
  return n;
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& child : children_) child.second->train(on);
}

void Module::initialize(uint64_t seed, const std::string& path) {
  path_ = path;
  path_id_ = intern_module(path);
  {
    NoGrad no_grad;
    ModuleScope scope(path_id_);
    reset(seed);
  }
  for (Named& p : parameters_) set_requires_grad(p.tensor);
  for (const auto& [name, child] : children_) child->initialize(seed, join(path, name));
}

}  // namespace tenon::nn
