#include "engine/nn/module.h"

#include <algorithm>

#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/hooks.h"

namespace tenon::nn {
namespace {

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

}  // namespace

Module::Entered::Entered(Module& m) : module_(m), scope_(m.path_id_) {
  if (m.entered_++ > 0) return;
  try {
    for (Derived& d : m.derived_) *d.at = d.compute(m.training_);
  } catch (...) {
    --m.entered_;
    throw;
  }
}

Tensor Module::operator()(std::span<const Tensor> inputs) {
  Entered entered(*this);
  return hooks_ ? run_hooked(inputs) : forward(inputs);
}

Tensor Module::forward(const Tensor&) { throw Error(describe() + " has no forward pass for one input"); }

Tensor Module::forward(std::span<const Tensor> inputs) {
  if (inputs.size() != 1) throw Error(describe() + " takes 1 input, not " + std::to_string(inputs.size()));
  return forward(inputs[0]);
}

void Module::reset(uint64_t) {}

void Module::collect(int which, const std::string& prefix, std::vector<Named>& out) const {
  if (which & kParameters)
    for (const Entry& n : parameters_) out.push_back({join(prefix, n.name), *n.at});
  if (which & kBuffers)
    for (const Entry& n : buffers_) out.push_back({join(prefix, n.name), *n.at});
  for (const auto& [name, child] : children_) child->collect(which, join(prefix, name), out);
}

std::vector<Named> Module::parameters() const {
  std::vector<Named> out;
  collect(kParameters, {}, out);
  return out;
}

std::vector<Named> Module::buffers() const {
  std::vector<Named> out;
  collect(kBuffers, {}, out);
  return out;
}

std::vector<Named> Module::state_dict() const {
  std::vector<Named> out;
  collect(kParameters | kBuffers, {}, out);
  return out;
}

int64_t Module::parameter_count() const {
  int64_t n = 0;
  for (const Named& p : parameters()) n += p.tensor.numel();
  return n;
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> out{{"", this}};
  for (const auto& [name, child] : children_)
    for (auto& [path, m] : child->named_modules()) out.emplace_back(path.empty() ? name : join(name, path), m);
  return out;
}

void Module::apply(const std::function<void(Module&)>& f) {
  for (const auto& child : children_) child.second->apply(f);
  f(*this);
}

Tensor Module::own(const std::string& name) const {
  for (const auto* list : {&parameters_, &buffers_})
    for (const Entry& e : *list)
      if (e.name == name) return *e.at;
  return {};
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& child : children_) child.second->train(on);
}

void Module::requires_grad_(bool on) {
  for (Named& p : parameters()) set_requires_grad(p.tensor, on);
}

void Module::zero_grad() {
  for (const Named& p : parameters()) tenon::zero_grad(p.tensor);
}

void Module::initialize(uint64_t seed, const std::string& path) {
  path_ = path;
  path_id_ = intern_module(path);
  {
    NoGrad no_grad;
    ModuleScope scope(path_id_);
    reset(seed);
  }
  for (Entry& p : parameters_) set_requires_grad(*p.at);
  for (const auto& [name, child] : children_) child->initialize(seed, join(path, name));
}

void Module::reparametrize(const std::string& name, std::vector<Named> parameters, std::vector<Named> buffers,
                           std::function<Tensor(bool training)> compute) {
  auto found = std::find_if(parameters_.begin(), parameters_.end(), [&](const Entry& e) { return e.name == name; });
  if (found == parameters_.end()) throw Error(describe() + " has no parameter \"" + name + "\"");
  Derived d{name, found->at, {}, std::move(compute)};
  bool grad = found->at->requires_grad();
  parameters_.erase(found);
  for (Named& p : parameters) {
    d.parts.push_back(p.name);
    set_requires_grad(p.tensor, grad);
    auto owned = std::make_shared<Tensor>(p.tensor);
    parameters_.push_back({p.name, owned.get(), owned});
  }
  for (Named& b : buffers) {
    d.parts.push_back(b.name);
    auto owned = std::make_shared<Tensor>(b.tensor);
    buffers_.push_back({b.name, owned.get(), owned});
  }
  *d.at = d.compute(training_);
  derived_.push_back(std::move(d));
}

void Module::bake(const std::string& name) {
  auto found = std::find_if(derived_.begin(), derived_.end(), [&](const Derived& d) { return d.name == name; });
  if (found == derived_.end()) throw Error(describe() + " has no parametrisation of \"" + name + "\"");
  Tensor value;
  {
    NoGrad no_grad;
    value = detach(found->compute(false));
  }
  bool grad = false;
  for (const std::string& part : found->parts) grad |= own(part).requires_grad();
  for (auto* list : {&parameters_, &buffers_})
    std::erase_if(*list, [&](const Entry& e) {
      return std::find(found->parts.begin(), found->parts.end(), e.name) != found->parts.end();
    });
  *found->at = value;
  set_requires_grad(*found->at, grad);
  parameters_.push_back({name, found->at, {}});
  derived_.erase(found);
}

bool Module::reparametrized(const std::string& name) const {
  return std::any_of(derived_.begin(), derived_.end(), [&](const Derived& d) { return d.name == name; });
}

}  // namespace tenon::nn
