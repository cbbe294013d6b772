#pragma once
#include <functional>
#include <vector>

#include "core/tensor.h"

namespace tenon {

/// Marks a leaf as wanting its gradient. Throws for integer tensors and for results of ops.
Tensor& set_requires_grad(Tensor& t, bool on = true);
/// The accumulated gradient; undefined where there is none.
Tensor grad_of(const Tensor& t);
void set_grad(const Tensor& t, const Tensor& grad);
void zero_grad(const Tensor& t);  // drops it: the next backward moves its gradient in instead of adding
bool is_leaf(const Tensor& t);
/// Keeps the gradient of a non-leaf after backward.
void retain_grad(const Tensor& t);
/// The same storage without history.
Tensor detach(const Tensor& t);

/// A hook sees (and may replace) the gradient of a tensor. Returns a number for remove_hook().
int add_hook(const Tensor& t, std::function<Tensor(const Tensor&)> hook);
void remove_hook(const Tensor& t, int id);

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;  ///< gradients are themselves differentiable; implies retain_graph
};
/// Adds d(root)/d(leaf) into every leaf's gradient. `gradient` may be undefined for a root of one element (then it is 1).
void backward(const Tensor& root, const Tensor& gradient = {}, BackwardOptions options = {});
void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients, BackwardOptions options = {});
/// d(roots)/d(inputs), without touching any leaf's gradient. An input that no root depends on gets an undefined tensor
/// (with allow_unused) or an Error naming its place.
std::vector<Tensor> grad(const std::vector<Tensor>& roots, const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients = {},
                         BackwardOptions options = {}, bool allow_unused = false);

}  // namespace tenon
