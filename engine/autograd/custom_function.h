#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace tenon {

/// What a custom function remembers between forward and backward.
class FunctionContext {
 public:
  ~FunctionContext();
  /// Keeps inputs or outputs of forward for backward; a later in-place write into one of them is found when it is read.
  void save_for_backward(std::vector<Tensor> tensors);
  /// Throws Error naming the function and both versions where a tensor was written to since.
  std::vector<Tensor> saved() const;
  /// Whether input i of forward requires a gradient.
  bool needs(size_t i) const { return i < needs_.size() && needs_[i]; }

 private:
  friend std::vector<Tensor> apply_function(const std::shared_ptr<class CustomFunction>&, const std::vector<Tensor>&);
  friend struct CustomFunctionOp;
  struct Kept;
  std::vector<bool> needs_;
  std::vector<Kept> kept_;
  std::string name_;
};

/// A function with a gradient of its own, as torch.autograd.Function: forward runs without recording, and backward
/// stands for its derivative. Written with ops that are differentiable, backward is differentiable again.
class CustomFunction {
 public:
  virtual ~CustomFunction() = default;
  virtual const char* name() const { return "custom_function"; }
  virtual std::vector<Tensor> forward(FunctionContext& context, const std::vector<Tensor>& inputs) = 0;
  /// One gradient an input, undefined where there is none; `gradients` has one an output, undefined where nothing
  /// depended on it.
  virtual std::vector<Tensor> backward(FunctionContext& context, const std::vector<Tensor>& gradients) = 0;
};
/// Throws Error naming the function where backward gives another number of gradients than there are inputs, or one of
/// another size.
std::vector<Tensor> apply_function(const std::shared_ptr<CustomFunction>& function, const std::vector<Tensor>& inputs);

/// f(x) forward, the identity backward: the straight-through estimator (Bengio, Leonard, Courville 2013) for rounding,
/// signs, codes.
Tensor straight_through(const Tensor& x, Tensor (*f)(const Tensor&));

}  // namespace tenon
