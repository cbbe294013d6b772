#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/module.h"

namespace tenon::optim {

/// Changes parameters along their gradients. Parameters without a gradient are left alone.
class Optimizer {
 public:
  explicit Optimizer(std::vector<nn::Named> parameters);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;

  /// Drops every gradient.
  void zero_grad();
  /// 2-norm over all gradients; reads them once and writes nothing. Not finite exactly where a gradient is not.
  double gradient_norm();
  /// The norm of each parameter's gradient as of the last gradient_norm(), in the order of parameters(); 0 without a gradient.
  const std::vector<double>& gradient_norms() const { return norms_; }
  void step(double lr);

  const std::vector<nn::Named>& parameters() const { return parameters_; }
  /// What it remembers of each parameter, named "<parameter>/<what>".
  std::vector<nn::Named> state() const;
  /// Steps applied so far; part of the state.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t n) { steps_ = n; }

 protected:
  /// A zeroed tensor beside each parameter, kept as "<parameter>/<what>". Returns its slot for slot().
  int add_state(const std::string& what);
  const Tensor& slot(int which, size_t parameter) const { return slots_[static_cast<size_t>(which)].tensors[parameter]; }
  virtual void update(size_t parameter, const Tensor& p, const Tensor& grad, double lr) = 0;

  int64_t steps_ = 0;

 private:
  struct Slot {
    std::string what;
    std::vector<Tensor> tensors;
  };
  std::vector<nn::Named> parameters_;
  std::vector<uint16_t> modules_;  ///< path ids the updates are attributed to
  std::vector<Slot> slots_;
  std::vector<double> norms_;
};

struct SgdOptions {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
};
std::unique_ptr<Optimizer> sgd(std::vector<nn::Named> parameters, const SgdOptions& options = {});

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;  ///< AdamW
};
std::unique_ptr<Optimizer> adam(std::vector<nn::Named> parameters, const AdamOptions& options = {});

}  // namespace tenon::optim
