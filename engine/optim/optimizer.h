#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "engine/nn/module.h"
#include "engine/spec/attr.h"

namespace tenon {
class Readings;
}
namespace tenon::optim {

/// What holds for one parameter apart from the others.
struct ParameterSettings {
  double lr_scale = 1;       ///< its rate, as a multiple of the step's
  double weight_decay = -1;  ///< instead of the optimizer's; negative: the optimizer's own
};

/// Changes parameters along their gradients. Parameters without a gradient are left alone.
class Optimizer {
 public:
  /// Of `values` it takes "weight_decay" and "maximize" where they are defined.
  Optimizer(std::vector<nn::Named> parameters, const AttrValues& values);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;

  /// Drops every gradient.
  void zero_grad();
  /// 2-norm over all gradients; reads them once and writes nothing. Not finite exactly where a gradient is not.
  /// What else is there to be read of the device is read with it.
  double gradient_norm(Readings& with);
  double gradient_norm();
  /// The norm of each parameter's gradient as of the last gradient_norm(), in the order of parameters(); 0 without a
  /// gradient.
  const std::vector<double>& gradient_norms() const { return norms_; }
  /// Multiplies every gradient, and the norms with them.
  void scale_gradients(double factor);
  /// PyTorch's clip_grad_norm_: scales all gradients so that the norm of the last gradient_norm() becomes at most
  /// `max`. Returns that norm.
  double clip_norm(double max);
  /// PyTorch's clip_grad_value_: every gradient into [-max, max].
  void clip_value(double max);

  /// One update from the gradients at hand.
  void step(double lr);
  /// Computes loss and gradients again where the parameters stand now; returns the loss.
  using Closure = std::function<double()>;
  /// Line searches evaluate several times a step. Others are given no closure: gradients are at hand, and `loss` with
  /// them.
  virtual bool needs_closure() const { return false; }
  void step(double lr, double loss, const Closure& closure);

  const std::vector<nn::Named>& parameters() const { return parameters_; }
  ParameterSettings& settings(size_t parameter) { return settings_[parameter]; }
  /// What it remembers: of each parameter, named "<parameter>/<what>", then what belongs to none, named "<what>".
  std::vector<nn::Named> state() const;
  /// Steps applied so far; part of the state.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t n) { steps_ = n; }
  /// Steps that were applied before a parameter came to it: what it remembers of that one is as young. Part of the
  /// state.
  int64_t begun(size_t parameter) const { return begun_[parameter]; }
  void set_begun(size_t parameter, int64_t steps) { begun_[parameter] = steps; }

 protected:
  /// A tensor beside each parameter, of its size and filled with `value`, kept as "<parameter>/<what>". Returns its
  /// slot for slot().
  int add_state(const std::string& what, double value = 0);
  /// One with sizes of its own: none where `size` gives no axes for a parameter.
  int add_state(const std::string& what, const std::function<Shape(const Tensor&)>& size);
  /// On the CPU, filled with 0.
  const Tensor& add_shared_state(const std::string& what, const Shape& size, DType dtype);
  const Tensor& slot(int which, size_t parameter) const {
    return slots_[static_cast<size_t>(which)].tensors[parameter];
  }
  double decay(size_t parameter) const {
    double own = settings_[parameter].weight_decay;
    return own < 0 ? weight_decay_ : own;
  }
  /// Steps that a parameter has seen.
  int64_t age(size_t parameter) const { return steps_ - begun_[parameter]; }
  virtual void update(size_t parameter, const Tensor& p, const Tensor& grad, double lr) = 0;
  /// What step() with a closure runs.
  virtual void search(double lr, double loss, const Closure& closure);

  int64_t steps_ = 0;

 private:
  struct Slot {
    std::string what;
    std::vector<Tensor> tensors;
  };
  std::vector<nn::Named> parameters_;
  std::vector<ParameterSettings> settings_;
  std::vector<uint16_t> modules_;  ///< path ids the updates are attributed to
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<nn::Named>> shared_;
  std::vector<double> norms_;
  std::vector<int64_t> begun_;
  double weight_decay_ = 0;
  bool maximize_ = false;
};

/// One optimizer, registered in the file that defines it. `attrs` begins with "lr"; all of them are keys of the recipe
/// ("optimizer.<name>").
struct OptimizerDef {
  std::string name, help;
  std::vector<AttrDef> attrs;
  std::unique_ptr<Optimizer> (*make)(std::vector<nn::Named> parameters, const AttrValues& values);
};
bool register_optimizer(OptimizerDef def, Place place = Place::current());
/// Sorted by name.
const Registry<OptimizerDef>& optimizers();
/// Throws Error (usage) for a name that is none, listing the near ones, and for attributes it does not have.
std::unique_ptr<Optimizer> make_optimizer(const std::string& name, std::vector<nn::Named> parameters,
                                          const std::vector<Attr>& given = {});

/// Sets what rules say of the parameters they name: "head.*: lr=10; *.bias: weight_decay=0" (a star stands for any
/// text, a later rule wins; lr is a multiple of the step's rate). With `no_decay`, parameters of less than two axes
/// (biases, gains of norms) do not decay unless a rule says so. Throws Error (usage) beginning with `key` for a rule
/// that fits no parameter.
void apply_rules(Optimizer& optimizer, const std::string& rules, bool no_decay, const std::string& key);

/// Entries that definitions share.
AttrDef lr_attr(double fallback);
AttrDef weight_decay_attr(double fallback, const char* help);
AttrDef maximize_attr();
AttrDef unit_attr(const char* name, double fallback, const char* help);  ///< in [0, 1)
AttrDef eps_attr(double fallback, const char* help = "added to the denominator");

}  // namespace tenon::optim
