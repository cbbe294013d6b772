#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/state.h"
#include "core/tensor.h"
#include "engine/op/op.h"

namespace tenon {

struct Node;
/// Without recursion: graphs are as deep as the program was long.
void release_last(Node* n);

/// Where a gradient goes: output `slot` of `fn`.
struct Edge {
  Ref<Node> fn;
  uint16_t slot = 0;
};

/// What a pack hook made of a tensor. Destroying it frees whatever stands behind it.
struct PackedTensor {
  virtual ~PackedTensor() = default;
  /// The tensor of the same dtype, size and values, without history.
  virtual Tensor unpack() = 0;
};

/// " by relu #12" of the op that wrote into it last; empty where that was none.
std::string writer_text(const Storage& s);

/// A tensor kept for backward, with the version it had; or what a pack hook made of it. See Note [What a node saves].
struct SavedTensor {
  Tensor value;
  std::unique_ptr<PackedTensor> packed;
  uint32_t version = 0;

  SavedTensor() = default;
  SavedTensor(Tensor v, uint32_t n) : value(std::move(v)), version(n) {}
  bool holds() const { return value.defined() || packed != nullptr; }
  void reset();
};

// Note [Passes claim what they walk]
// A backward keeps its scratch (pending, needed, grads) in the nodes. Before it touches a node's it writes its number
// into `claim`, and it gives all of them back at its end; a node with another pass' number is an Error. So two threads
// that walk one graph, or graphs that end in the same leaves, find out instead of mixing their gradients up.

/// One op of the recorded graph, or (op == nullptr) the place where the gradient of a leaf accumulates.
struct Node {
  std::atomic<int> refs{1};
  const OpDef* op = nullptr;
  Origin origin;       ///< of the forward op
  uint64_t order = 0;  ///< grows with recording: every input has a lower one, see Note [The order of nodes]
  uint16_t inputs = 0, outputs = 0;
  std::atomic<uint32_t> claim{0};  ///< the backward pass that walks it now; 0: none
  int32_t pending = 0;             ///< consumers whose gradient has not come yet, in that pass
  bool needed = true;              ///< a gradient that is asked for lies behind it, in that pass
  bool sum_made = false;           ///< that pass made the memory of grads[0]: none but an observer holds it
  bool freed = false;              ///< saved tensors were given up by a backward without retain_graph
  Edge* next = nullptr;            ///< [inputs]
  Meta* metas = nullptr;           ///< [inputs], of the inputs
  SavedTensor* saved = nullptr;    ///< inputs that are saved, then outputs, in order of their bits
  uint16_t saved_count = 0;
  void* attrs = nullptr;
  Tensor* grads = nullptr;             ///< [outputs], filled during backward
  Meta* out_metas = nullptr;           ///< [outputs]
  class AutogradMeta* leaf = nullptr;  ///< the leaf's data while it lives; for op == nullptr
  std::unique_ptr<struct NodeHooks> hooks;
  std::unique_ptr<std::vector<class AutogradMeta*>> retained;  ///< outputs that keep their gradient
  uint32_t bytes = 0;  ///< of the block that holds the node and the arrays above

  int64_t saved_bytes() const;
};

/// Autograd's data of a tensor that requires a gradient.
class AutogradMeta : public GradMeta {
 public:
  ~AutogradMeta() override;
  static void* operator new(size_t bytes);
  static void operator delete(void* p);

  Ref<Node> fn;  ///< the node whose output this is; for leaves the accumulating node, once made
  uint16_t slot = 0;
  bool is_leaf = true;
  /// A view's history says how to get it from its base as that was at this version; see Note [Writing into a view].
  static constexpr uint32_t kAnyVersion = ~0u;
  uint32_t made_at = kAnyVersion;
  bool retain_grad = false;
  TensorImpl* self = nullptr;  ///< the leaf this belongs to, where hooks want it; not counted: it owns this
  Tensor grad;

  Tensor self_handle() const { return Tensor(Ref<TensorImpl>::share(self)); }
};

/// The hooks of a node, each with the number that removes it.
struct NodeHooks {
  struct OnGradient {
    int id;
    uint16_t slot;
    std::function<Tensor(const Tensor&)> call;
  };
  struct OnLeaf {
    int id;
    std::function<void(const Tensor& leaf)> call;
  };
  struct Before {
    int id;
    std::function<void(std::vector<Tensor>& outputs)> call;
  };
  struct After {
    int id;
    std::function<void(std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs)> call;
  };
  std::vector<OnGradient> gradient;  ///< of an output, complete and not yet used
  std::vector<OnLeaf> leaf;          ///< after a leaf has accumulated
  std::vector<Before> before;        ///< the node's backward runs
  std::vector<After> after;
};

inline AutogradMeta* autograd_meta(const Tensor& t) { return static_cast<AutogradMeta*>(t.impl()->grad); }

/// Where the gradient of `t` goes: its node, made on the first call for a leaf. Null where it needs none.
Edge edge_of(const Tensor& t);

/// A node for a computation outside the ops (CustomFunction): `outputs` may differ from op.info.outputs. Nothing is
/// saved.
void record_node(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out, int outputs);
void record_node(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out, uint32_t seq);
void record_in_place(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor& out, uint32_t seq);
/// Gives the outputs that the node of `out` saved to the pack hook: they have their values now.
void pack_saved_outputs(const Tensor& out);
/// After the write: saved outputs get their version, and the base of a view its new history.
void finish_in_place(const Tensor& out);
void check_in_place_allowed(const Tensor& t);

/// What an op's backward() sees.
class Grad {
 public:
  Grad(Node& node, Tensor* results) : node_(node), results_(results) {}

  /// Gradient of output i; undefined where nothing depended on it.
  const Tensor& out(int i = 0) const { return node_.grads[i]; }
  /// Assign the gradient of input i. A broadcast input may get the gradient at the broadcast size: it is summed
  /// afterwards.
  Tensor& in(int i) { return results_[i]; }
  bool needs(int i) const { return node_.next[i].fn && node_.next[i].fn->needed; }
  /// Saved input and output i; throws Error naming the op and both versions where it was overwritten in between.
  Tensor x(int i) const;
  Tensor y(int i = 0) const;
  const Meta& meta(int i) const { return node_.metas[i]; }
  const Meta& out_meta(int i = 0) const { return node_.out_metas[i]; }
  int inputs() const { return node_.inputs; }
  int outputs() const { return node_.outputs; }
  /// `value` with this node as the history of its output i.
  Tensor output_with_history(const Tensor& value, int i) const;
  template <class A>
  const A& as() const {
    return *static_cast<const A*>(node_.attrs);
  }

 private:
  Tensor saved(int index, const char* what, int i, const Edge& history) const;
  Node& node_;
  Tensor* results_;
};

}  // namespace tenon
