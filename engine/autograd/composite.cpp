#include "engine/autograd/composite.h"

#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

/// Nodes beyond which a walk over the graph does not go: the walk that asked for this gradient is there already. Holds
/// them, for the tensors they belong to may go first.
class Fence {
 public:
  Fence() = default;
  Fence(const Fence&) = delete;
  ~Fence() {
    for (auto& [node, inputs] : nodes_) node->inputs = inputs;
  }
  void add(const Ref<Node>& n) { nodes_.emplace_back(n, n->inputs); }
  void close() {
    for (auto& [node, inputs] : nodes_) node->inputs = 0;
  }

 private:
  std::vector<std::pair<Ref<Node>, uint16_t>> nodes_;
};

}  // namespace

void composite_gradient(Grad& d, const std::vector<Tensor>& inputs,
                        const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f) {
  EnableGrad on;
  Fence fence;
  std::vector<Tensor> args = inputs, wanted;
  std::vector<int> which;
  for (int i = 0; i < d.inputs() && i < static_cast<int>(args.size()); ++i) {
    Tensor& t = args[static_cast<size_t>(i)];
    if (!t || (!d.needs(i) && !t.requires_grad())) continue;
    t = clone(t);
    if (!d.needs(i)) {  // of the result's own gradient alone, and of what the asking walk has claimed
      fence.add(autograd_meta(t)->fn);
      continue;
    }
    // What a pack hook gave back has no history: it is a leaf here.
    if (AutogradMeta* m = autograd_meta(t); m && m->fn)
      fence.add(m->fn);
    else
      set_requires_grad(t);
    wanted.push_back(t);
    which.push_back(i);
  }
  std::vector<Tensor> outputs = f(args), roots, gradients;
  for (size_t o = 0; o < outputs.size(); ++o)
    if (d.out(static_cast<int>(o)) && outputs[o] && outputs[o].requires_grad()) {
      roots.push_back(outputs[o]);
      gradients.push_back(d.out(static_cast<int>(o)));
    }
  if (roots.empty() || wanted.empty()) return;
  BackwardOptions create;
  create.create_graph = true;
  fence.close();
  std::vector<Tensor> g = grad(roots, wanted, gradients, create, true);
  for (size_t k = 0; k < which.size(); ++k) d.in(which[k]) = g[k];
}

}  // namespace tenon
