#pragma once
#include <functional>
#include <memory>
#include <string>
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

// Hooks. Each returns a number for remove_hook(t, number), which removes a hook of any kind; one that is gone already
// is left alone.
/// Sees the complete gradient of `t` in every backward, and replaces it where it returns a defined tensor.
int add_hook(const Tensor& t, std::function<Tensor(const Tensor& gradient)> hook);
/// Called after a leaf's gradient was added to grad_of(leaf), as soon as its last contribution has come: while the rest
/// of backward still runs. Throws for a tensor that is no leaf.
int add_leaf_hook(const Tensor& leaf, std::function<void(const Tensor& leaf)> hook);
/// Before the backward of the op that made `t`: may replace the gradients of the op's outputs (undefined where nothing
/// depended on one).
int add_node_pre_hook(const Tensor& t, std::function<void(std::vector<Tensor>& outputs)> hook);
/// After it: may replace the gradients of the op's inputs.
int add_node_hook(const Tensor& t,
                  std::function<void(std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs)> hook);
void remove_hook(const Tensor& t, int id);

struct PackedTensor;
/// Replaces, for a scope on this thread, how ops keep tensors for backward: `pack` is asked for every one of them and
/// may return null to keep it as it is. A packed tensor is not checked for later writes: the pack holds what it was.
/// Innermost scope first, and only that.
class SavedTensorHooks {
 public:
  using Pack = std::function<std::unique_ptr<PackedTensor>(const Tensor&)>;
  explicit SavedTensorHooks(Pack pack);
  ~SavedTensorHooks();
  SavedTensorHooks(const SavedTensorHooks&) = delete;
  static const Pack* current();

 private:
  Pack pack_;
  SavedTensorHooks* outer_;
};
/// A pack for SavedTensorHooks: tensors of at least `least` bytes go to a file in `folder` that has no name, and are
/// read back when backward needs them. Throws Error naming the folder where that fails.
SavedTensorHooks::Pack offload_to(const std::string& folder, size_t least = 1 << 20);

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;   ///< gradients are themselves differentiable; implies retain_graph
  std::vector<Tensor> inputs;  ///< of backward(): only these accumulate a gradient (leaves, or tensors with
                               ///< retain_grad); empty: every leaf
};
/// Adds d(root)/d(leaf) into every leaf's gradient. `gradient` may be undefined for a root of one element (then it is
/// 1).
void backward(const Tensor& root, const Tensor& gradient = {}, BackwardOptions options = {});
void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients, BackwardOptions options = {});
/// d(roots)/d(inputs), without touching any leaf's gradient. An input that no root depends on gets an undefined tensor
/// (with allow_unused) or an Error naming its place.
std::vector<Tensor> grad(const std::vector<Tensor>& roots, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& gradients = {}, BackwardOptions options = {},
                         bool allow_unused = false);

}  // namespace tenon
