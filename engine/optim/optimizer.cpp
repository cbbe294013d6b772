#include "engine/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/dry_device.h"
#include "core/error.h"
#include "core/name_pattern.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/init.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/readings.h"
#include "engine/optim/sum_of_squares.h"

namespace tenon::optim {
namespace {

std::string module_of(const std::string& parameter) {
  size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

Registry<OptimizerDef>& optimizer_registry() {
  static auto& all = *new Registry<OptimizerDef>("optimizer");
  return all;
}

}  // namespace

Optimizer::Optimizer(std::vector<nn::Named> parameters, const AttrValues& values)
    : parameters_(std::move(parameters)),
      settings_(parameters_.size()),
      norms_(parameters_.size()),
      begun_(parameters_.size()) {
  if (values.has("weight_decay")) weight_decay_ = values.number("weight_decay");
  if (values.has("maximize")) maximize_ = values.flag("maximize");
  for (const nn::Named& p : parameters_) {
    if (!p.tensor.is_contiguous() || (p.tensor.dtype() != DType::f32 && p.tensor.dtype() != DType::f64))
      throw Error("parameter " + p.name + " cannot be trained: optimizers work on contiguous f32 and f64");
    modules_.push_back(intern_module(module_of(p.name)));
  }
}

void Optimizer::zero_grad() {
  for (const nn::Named& p : parameters_) tenon::zero_grad(p.tensor);
}

double Optimizer::gradient_norm() {
  Readings alone(parameters_.empty() ? Device{} : parameters_[0].tensor.device());
  return gradient_norm(alone);
}

double Optimizer::gradient_norm(Readings& with) {
  std::vector<std::pair<size_t, size_t>> sums;  // of a parameter, a number
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (const Tensor g = grad_of(parameters_[i].tensor)) sums.emplace_back(i, sum_of_squares(g, with));
  std::fill(norms_.begin(), norms_.end(), 0);
  double total = 0;
  for (const auto& [parameter, number] : sums) {
    const double sum = with.at(number);
    norms_[parameter] = std::sqrt(sum);
    total += sum;
  }
  return std::sqrt(total);
}

void Optimizer::scale_gradients(double factor) {
  NoGrad no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor g = grad_of(parameters_[i].tensor);
    if (!g) continue;
    ModuleScope module(modules_[i]);
    mul_(g, factor);
    norms_[i] *= factor;
  }
}

double Optimizer::clip_norm(double max) {
  double total = 0;
  for (double n : norms_) total += n * n;
  total = std::sqrt(total);
  double factor = max / (total + 1e-6);
  if (factor < 1) scale_gradients(factor);
  return total;
}

void Optimizer::clip_value(double max) {
  NoGrad no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor g = grad_of(parameters_[i].tensor);
    if (!g) continue;
    ModuleScope module(modules_[i]);
    minimum_(g, max);
    maximum_(g, -max);
  }
}

void Optimizer::step(double lr) {
  NoGrad no_grad;
  ++steps_;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor g = grad_of(parameters_[i].tensor);
    if (!g) continue;
    ModuleScope module(modules_[i]);
    update(i, parameters_[i].tensor, maximize_ ? neg(g) : g, lr * settings_[i].lr_scale);
  }
}

void Optimizer::step(double lr, double loss, const Closure& closure) {
  if (!needs_closure()) return step(lr);
  ++steps_;
  search(lr, loss, closure);
}

void Optimizer::search(double, double, const Closure&) {}

int Optimizer::add_state(const std::string& what, double value) {
  int at = add_state(what, [](const Tensor& p) { return p.size(); });
  // A parameter without axes has a state without axes, which add_state() below takes for none.
  Slot& slot = slots_[static_cast<size_t>(at)];
  CategoryScope category(Category::optimizer);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!slot.tensors[i]) {
      const Tensor& p = parameters_[i].tensor;
      slot.tensors[i] = empty(p.size(), p.dtype(), p.device());
    }
    nn::fill(slot.tensors[i], value);
  }
  return at;
}

int Optimizer::add_state(const std::string& what, const std::function<Shape(const Tensor&)>& size) {
  CategoryScope category(Category::optimizer);
  Slot slot{what, {}};
  for (const nn::Named& p : parameters_) {
    Shape s = size(p.tensor);
    slot.tensors.push_back(s.n ? empty(s, p.tensor.dtype(), p.tensor.device()) : Tensor());
    if (s.n) nn::fill(slot.tensors.back(), 0);
  }
  slots_.push_back(std::move(slot));
  return static_cast<int>(slots_.size()) - 1;
}

const Tensor& Optimizer::add_shared_state(const std::string& what, const Shape& size, DType dtype) {
  CategoryScope category(Category::optimizer);
  const bool dry = !parameters_.empty() && is_dry(parameters_[0].tensor.device());
  const Device device = dry ? parameters_[0].tensor.device() : Device{};
  shared_.push_back(std::make_unique<nn::Named>(nn::Named{what, empty(size, dtype, device)}));
  nn::fill(shared_.back()->tensor, 0);
  return shared_.back()->tensor;
}

std::vector<nn::Named> Optimizer::state() const {
  std::vector<nn::Named> all;
  for (size_t i = 0; i < parameters_.size(); ++i)
    for (const Slot& s : slots_)
      if (s.tensors[i]) all.push_back({parameters_[i].name + "/" + s.what, s.tensors[i]});
  for (const auto& s : shared_) all.push_back(*s);
  return all;
}

bool register_optimizer(OptimizerDef def, Place place) { return optimizer_registry().add(std::move(def), place); }
const Registry<OptimizerDef>& optimizers() { return optimizer_registry(); }

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, std::vector<nn::Named> parameters,
                                          const std::vector<Attr>& given) {
  const OptimizerDef& def = optimizers().at(name);
  return def.make(std::move(parameters), AttrValues(def.attrs, given, name));
}

void apply_rules(Optimizer& optimizer, const std::string& rules, bool no_decay, const std::string& key) {
  const auto& parameters = optimizer.parameters();
  if (optimizer.needs_closure() && !parse_calls(rules, key).empty())
    throw Error::usage(key + ": this optimizer sees all parameters as one vector and has no rules for some of them");
  if (no_decay)
    for (size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].tensor.ndim() < 2) optimizer.settings(i).weight_decay = 0;
  static const std::vector<AttrDef> known = {{"lr", 1.0, 0, 1e30, "multiple of the step's learning rate"},
                                             {"weight_decay", 0.0, 0, 1e30, "instead of the optimizer's weight decay"}};
  for (const AttrCall& rule : parse_calls(rules, key)) {
    std::string pattern = rule.name.ends_with(':') ? rule.name.substr(0, rule.name.size() - 1) : rule.name;
    bool any = false;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!fits_pattern(pattern, parameters[i].name)) continue;
      any = true;
      for (const Attr& a : call_attrs(rule, known, key)) {
        (a.name == "lr" ? optimizer.settings(i).lr_scale : optimizer.settings(i).weight_decay) =
            std::get<double>(a.value);
      }
    }
    if (any) continue;
    std::vector<std::string> names;
    for (const nn::Named& p : parameters) names.push_back(p.name);
    std::string near = near_names(pattern, names.data(), names.size());
    throw Error::usage(
        key + ": no parameter that is trained is called \"" + pattern + "\"" + (near.empty() ? "" : " (" + near + ")"),
        "a rule begins with the name of a parameter, as in \"" + names.front() + ": lr=0.1\"; * stands for any text");
  }
}

AttrDef lr_attr(double fallback) { return {"lr", fallback, 0, 1e30, "base learning rate"}; }
AttrDef weight_decay_attr(double fallback, const char* help) { return {"weight_decay", fallback, 0, 1e30, help}; }
AttrDef maximize_attr() { return {"maximize", false, 0, 0, "climb instead of descend"}; }
AttrDef unit_attr(const char* name, double fallback, const char* help) { return {name, fallback, 0, 0.9999999, help}; }
AttrDef eps_attr(double fallback, const char* help) { return {"eps", fallback, 0, 1e30, help}; }

}  // namespace tenon::optim
