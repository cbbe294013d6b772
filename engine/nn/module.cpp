#include "engine/nn/module.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>

#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/hooks.h"

namespace tenon::nn {
namespace {

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

}  // namespace

// Note [Derived parameters]
// A derived parameter is a member that forward() reads, so whoever computes it must be alone in the module. In
// training, and wherever gradients are recorded (its history is part of their graph), it is computed for each outermost
// call, and calls follow each other. In evaluation without gradients it is frozen: computed once and kept until a part
// of it is written to (their versions say so) or a call of the other kind comes in between; such calls share the
// module.
struct Module::Frozen {
  std::shared_mutex mutex;         ///< shared by calls on frozen values, else held by one call
  bool valid = false;              ///< the values are frozen
  std::vector<uint32_t> versions;  ///< of the parts that they were computed from
};

thread_local Module::Entered* Module::Entered::innermost_ = nullptr;

std::vector<uint32_t> Module::versions_of_parts() const {
  std::vector<uint32_t> all;
  for (const Derived& d : derived_)
    for (const std::string& part : d.parts) all.push_back(own(part).version());
  return all;
}

void Module::derive() {
  for (Derived& d : derived_) *d.at = d.compute(training_);
}

void Module::Entered::enter(Module& m) {
  for (const Entered* e = innermost_; e; e = e->outer_)
    if (e->module_ == &m) return;
  Frozen& f = *m.frozen_;
  if (!m.training_ && !grad_enabled()) {
    f.mutex.lock_shared();
    while (!f.valid || f.versions != m.versions_of_parts()) {
      f.mutex.unlock_shared();
      {
        std::lock_guard alone(f.mutex);
        f.valid = false;
        m.derive();
        f.versions = m.versions_of_parts();
        f.valid = true;
      }
      f.mutex.lock_shared();
    }
  } else {
    std::unique_lock alone(f.mutex);
    f.valid = false;
    m.derive();
    alone.release();
    alone_ = true;
  }
  module_ = &m;
  outer_ = std::exchange(innermost_, this);
}

void Module::Entered::leave() {
  innermost_ = outer_;
  if (alone_)
    module_->frozen_->mutex.unlock();
  else
    module_->frozen_->mutex.unlock_shared();
}

Tensor Module::operator()(std::span<const Tensor> inputs) {
  Entered entered(*this);
  return hooks_ ? run_hooked(inputs) : forward(inputs);
}

Tensor Module::run_as(const Module& place, std::span<const Tensor> inputs) {
  Entered entered(*this, place);
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

void Module::places(std::vector<const Tensor*>& out) const {
  for (const auto* own : {&parameters_, &buffers_})
    for (const Entry& n : *own) out.push_back(n.at);
  for (const auto& [name, child] : children_) child->places(out);
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
  frozen_ = std::make_shared<Frozen>();
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
  frozen_->valid = false;
}

void Module::stand_in(const std::string& name, std::function<Tensor(const Tensor& parameter)> compute) {
  const auto found =
      std::find_if(parameters_.begin(), parameters_.end(), [&](const Entry& e) { return e.name == name; });
  if (found == parameters_.end() || found->owned) throw Error(describe() + " has no plain parameter \"" + name + "\"");
  const auto owned = std::make_shared<Tensor>(*found->at);
  derived_.push_back(
      {name, found->at, {name}, [owned, compute = std::move(compute)](bool) { return compute(*owned); }});
  found->at = owned.get();
  found->owned = owned;
  frozen_ = std::make_shared<Frozen>();
}

void Module::end_stand_in(const std::string& name) {
  const auto found = std::find_if(derived_.begin(), derived_.end(), [&](const Derived& d) { return d.name == name; });
  const auto entry =
      std::find_if(parameters_.begin(), parameters_.end(), [&](const Entry& e) { return e.name == name; });
  if (found == derived_.end() || entry == parameters_.end())
    throw Error(describe() + " has nothing in the place of \"" + name + "\"");
  *found->at = *entry->owned;
  entry->at = found->at;
  entry->owned.reset();
  derived_.erase(found);
  frozen_->valid = false;
}

bool Module::reparametrized(const std::string& name) const {
  return std::any_of(derived_.begin(), derived_.end(), [&](const Derived& d) { return d.name == name; });
}

}  // namespace tenon::nn
