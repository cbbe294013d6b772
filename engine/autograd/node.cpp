#include "engine/autograd/node.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"
#include "core/freelist.h"
#include "core/profile.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/idle_nodes.h"
#include "engine/ops/as_strided.h"

namespace tenon {

std::string writer_text(const Storage& s) {
  return s.written_by ? fmt::format(" by {} #{}", interned_name(s.written_by), s.written_seq) : std::string();
}

namespace {

// Note [The order of nodes]
// A thread numbers what it records, and a node comes behind what it reads, whoever recorded that: a logical clock. So
// backward runs a thread's nodes in falling order of recording, whatever other threads recorded in between, and no
// counter is shared.
thread_local constinit uint64_t t_order = 0;

size_t aligned(size_t n) { return (n + 15) & ~size_t{15}; }

Ref<Node> new_node(const OpDef* op, int inputs, int outputs, int saved) {
  size_t attrs = op ? aligned(op->attrs.size) : 0;
  size_t bytes = aligned(sizeof(Node)) + aligned(static_cast<size_t>(inputs) * sizeof(Edge)) +
                 aligned(static_cast<size_t>(inputs) * sizeof(Meta)) +
                 aligned(static_cast<size_t>(saved) * sizeof(SavedTensor)) + attrs +
                 aligned(static_cast<size_t>(outputs) * sizeof(Tensor)) +
                 aligned(static_cast<size_t>(outputs) * sizeof(Meta));
  char* at = static_cast<char*>(FreeList::take(bytes));
  Node* n = new (at) Node;
  at += aligned(sizeof(Node));
  auto place = [&]<class T>(T*& member, int count) {
    member = reinterpret_cast<T*>(at);
    for (int i = 0; i < count; ++i) new (member + i) T;
    at += aligned(static_cast<size_t>(count) * sizeof(T));
  };
  place(n->next, inputs);
  place(n->metas, inputs);
  place(n->saved, saved);
  place(n->grads, outputs);
  place(n->out_metas, outputs);
  n->attrs = at;
  n->bytes = static_cast<uint32_t>(bytes);
  n->op = op;
  n->inputs = static_cast<uint16_t>(inputs);
  n->outputs = static_cast<uint16_t>(outputs);
  n->saved_count = static_cast<uint16_t>(saved);
  return Ref<Node>::adopt(n);
}

void destroy_node(Node* n) {
  for (int i = 0; i < n->inputs; ++i) n->next[i].~Edge();
  for (int i = 0; i < n->saved_count; ++i) n->saved[i].~SavedTensor();
  for (int i = 0; i < n->outputs; ++i) n->grads[i].~Tensor();
  if (n->op && n->op->attrs.destroy) n->op->attrs.destroy(n->attrs);
  size_t bytes = n->bytes;
  n->~Node();
  FreeList::give(n, bytes);
}

AutogradMeta* ensure_meta(const Tensor& t) {
  if (!t.impl()->grad) t.impl()->grad = new AutogradMeta;
  return autograd_meta(t);
}

Tensor with_history(Tensor t, Edge e) {
  auto* m = new AutogradMeta;
  m->fn = std::move(e.fn);
  m->slot = e.slot;
  m->is_leaf = false;
  t.impl()->grad = m;
  t.impl()->flags |= TensorImpl::requires_grad;
  return t;
}

/// A handle of its own: the same elements, without history.
Tensor bare(const Tensor& t) {
  Tensor own(tensor_impl_new());
  TensorImpl& p = *own.impl();
  p.meta = t.meta();
  p.stride = t.stride();
  p.offset = t.offset();
  p.storage = t.impl()->storage;
  return own;
}

SavedTensor packed(const Tensor& t) {
  SavedTensor s;
  {
    NoGrad no_grad;
    s.packed = (*SavedTensorHooks::current())(bare(t));
  }
  if (!s.packed) return s;
  s.version = t.version();
  return s;
}

// Note [What a node saves]
// A leaf is saved as it is. Of a result, a node saves a second handle without history: an in-place write gives the
// first handle a new history, and a node that saved it would then be held by what it holds. The history that the result
// had when it was saved is the node's own edge to it, or for an output the node itself; Grad::x() and Grad::y() put it
// back for the time it is used, where gradients are recorded.
SavedTensor save_input(const Tensor& t, const Edge& history) {
  if (t.impl()->flags & TensorImpl::inference)
    throw Error(fmt::format("a tensor of size {} that was made in inference mode would be needed for a gradient",
                            to_string(t.size())),
                "clone() it outside of InferenceMode, or use NoGrad instead");
  if (SavedTensorHooks::current()) [[unlikely]] {
    SavedTensor s = packed(t);
    if (s.packed) return s;
  }
  if (!history.fn || !history.fn->op) return {t, t.version()};
  return {bare(t), t.version()};
}

void take_history_from_base(const Tensor& view);

/// Of a tensor that requires a gradient, up to date with its base; a leaf gets its node on the first call.
AutogradMeta* history_of(const Tensor& t) {
  AutogradMeta* m = ensure_meta(t);
  const TensorImpl* base = t.impl()->base.get();
  if (base && (base->flags & TensorImpl::requires_grad) && m->made_at != t.version()) take_history_from_base(t);
  if (!m->fn) {
    m->fn = new_node(nullptr, 0, 1, 0);
    m->fn->leaf = m;
    m->fn->out_metas[0] = t.meta();
  }
  return m;
}

Ref<Node> make_node(const OpDef& op, const void* attrs, const Tensor* in, int inputs, int outputs, uint32_t seq) {
  uint32_t mask = op.saves.inputs & ((inputs < 32 ? 1u << inputs : 0u) - 1u);
  int saved = std::popcount(mask) + std::popcount(op.saves.outputs);
  Ref<Node> n = new_node(&op, inputs, outputs, saved);
  op.attrs.copy(n->attrs, attrs);
  n->origin = t_state.origin;
  n->origin.seq = seq;
  int s = 0;
  for (int i = 0; i < inputs; ++i) {
    if (in[i].defined()) {
      n->metas[i] = in[i].meta();
      if (in[i].requires_grad()) {
        const AutogradMeta* m = history_of(in[i]);
        n->next[i].fn = Ref<Node>::share(m->fn.get());
        n->next[i].slot = m->slot;
        t_order = std::max(t_order, m->fn->order);
      }
    }
    if (mask >> i & 1u) {
      if (in[i].defined()) n->saved[s] = save_input(in[i], n->next[i]);
      ++s;
    }
  }
  n->order = ++t_order;  // after its inputs, of which a view may have taken a new history just now
  return n;
}

// The saved handle has no history of its own: a node that held its own output would never be freed.
void save_outputs(Node& n, const Tensor* out) {
  int s = n.saved_count - std::popcount(n.op->saves.outputs);
  for (int i = 0; i < n.outputs; ++i)
    if (n.op->saves.outputs >> i & 1u) n.saved[s++] = {bare(out[i]), out[i].version()};
}

/// Makes output 0 of `n` the history of `t`, in place of what it had.
void give_history(const Tensor& t, Ref<Node> n, uint32_t made_at) {
  AutogradMeta* m = ensure_meta(t);
  const Ref<Node> before = std::move(m->fn);
  if (before && !before->op)
    before->leaf = nullptr;  // it was a leaf once: its accumulating node must not outlive the pointer
  if (m->retain_grad && before && before->retained) {
    std::erase(*before->retained, m);
    m->retain_grad = false;
  }
  m->fn = std::move(n);
  m->slot = 0;
  m->is_leaf = false;
  m->made_at = made_at;
  t.impl()->flags |= TensorImpl::requires_grad;
}

Tensor base_of(const Tensor& view) { return Tensor(view.impl()->base); }

/// A new history for a view whose memory was written to by another name: the elements at its place in the base as that
/// is now.
void take_history_from_base(const Tensor& view) {
  static const OpDef* as_strided = all_ops().find("as_strided");
  Tensor base = base_of(view);
  const StridedPlace place{base.layout(), view.layout()};
  Ref<Node> n = make_node(*as_strided, &place, &base, 1, 1, t_state.origin.seq);
  n->out_metas[0] = view.meta();
  give_history(view, std::move(n), view.version());
}

void replace_in_base(const Tensor& view) {
  static const OpDef* replace = all_ops().find("strided_replace");
  Tensor in[] = {base_of(view), view};
  const StridedPlace place{in[0].layout(), view.layout()};
  Ref<Node> n = make_node(*replace, &place, in, 2, 1, t_state.origin.seq);
  n->out_metas[0] = in[0].meta();
  give_history(in[0], std::move(n), AutogradMeta::kAnyVersion);
}

}  // namespace

void SavedTensor::reset() {
  value.reset();
  packed.reset();
}

MemorySpan idle_nodes() { return FreeList::heads(); }

void* AutogradMeta::operator new(size_t bytes) { return FreeList::take(bytes); }
void AutogradMeta::operator delete(void* p) { FreeList::give(p, sizeof(AutogradMeta)); }

AutogradMeta::~AutogradMeta() {
  if (!fn) return;
  if (is_leaf) fn->leaf = nullptr;
  if (retain_grad && fn->retained) std::erase(*fn->retained, this);
}

int64_t Node::saved_bytes() const {
  int64_t sum = 0;
  for (int i = 0; i < saved_count; ++i)
    if (saved[i].value) sum += static_cast<int64_t>(saved[i].value.nbytes());
  return sum;
}

namespace {
/// Nodes whose last reference has gone; few of them take no memory.
struct Dying {
  Node* few[32];
  int count = 0;
  std::vector<Node*> more;
  void add(Node* n) {
    if (count < 32)
      few[count++] = n;
    else
      more.push_back(n);
  }
  Node* take() {
    if (more.empty()) return count ? few[--count] : nullptr;
    Node* n = more.back();
    more.pop_back();
    return n;
  }
};
}  // namespace

void release_last(Node* n) {
  // Edges and saved tensors may hold the last reference to further nodes: collect those instead of recursing.
  thread_local Dying* dying = nullptr;
  if (dying) return dying->add(n);
  Dying list;
  dying = &list;
  for (; n; n = list.take()) destroy_node(n);
  dying = nullptr;
}

Edge edge_of(const Tensor& t) {
  if (!t.requires_grad()) return {};
  const AutogradMeta* m = history_of(t);
  return {m->fn, m->slot};
}

static void attach(Ref<Node> n, Tensor* out, int outputs, bool view) {
  for (int i = outputs - 1; i >= 0; --i) {
    n->out_metas[i] = out[i].meta();
    if (!is_floating(out[i].dtype())) continue;
    auto* m = new AutogradMeta;
    if (i == 0)
      m->fn = std::move(n);
    else
      m->fn = n;
    m->slot = static_cast<uint16_t>(i);
    m->is_leaf = false;
    if (view) m->made_at = out[i].version();
    if (out[i].impl()->grad) delete out[i].impl()->grad;
    out[i].impl()->grad = m;
    out[i].impl()->flags |= TensorImpl::requires_grad;
  }
}

void record_node(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out, uint32_t seq) {
  Ref<Node> n = make_node(op, attrs, in, inputs, op.info.outputs, seq);
  if (op.saves.outputs) save_outputs(*n, out);
  attach(std::move(n), out, op.info.outputs, op.view != nullptr);
}

void record_node(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out, int outputs) {
  attach(make_node(op, attrs, in, inputs, outputs, t_state.origin.seq), out, outputs, false);
}

void pack_saved_outputs(const Tensor& out) {
  AutogradMeta* m = autograd_meta(out);
  if (!m || !m->fn || !m->fn->op) return;
  Node* n = m->fn.get();
  for (int k = std::popcount(n->op->saves.outputs); k > 0; --k) {
    SavedTensor& s = n->saved[n->saved_count - k];
    SavedTensor p = packed(s.value);
    if (p.packed) s = std::move(p);
  }
}

void check_in_place_allowed(const Tensor& t) {
  if (t.impl()->flags & TensorImpl::inference)
    throw Error("a tensor that was made in inference mode cannot take on a gradient",
                "clone() it outside of InferenceMode");
  auto is_wanted_leaf = [](const TensorImpl* p) {
    auto* m = static_cast<AutogradMeta*>(p->grad);
    return (p->flags & TensorImpl::requires_grad) && (!m || m->is_leaf);
  };
  if (t.impl()->base && is_wanted_leaf(t.impl()->base.get()))
    throw Error("a view of a leaf that requires a gradient cannot be changed in place while gradients are recorded",
                "do it inside NoGrad, or on a copy");
  if (is_wanted_leaf(t.impl()))
    throw Error("a leaf that requires a gradient cannot be changed in place while gradients are recorded",
                "do it inside NoGrad, or on a copy");
}

void record_in_place(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor& out, uint32_t seq) {
  Ref<Node> n = make_node(op, attrs, in, inputs, 1, seq);
  if (op.saves.outputs) save_outputs(*n, &out);
  n->out_metas[0] = out.meta();
  give_history(out, std::move(n), AutogradMeta::kAnyVersion);
}

void finish_in_place(const Tensor& out) {
  AutogradMeta* m = autograd_meta(out);
  for (int k = std::popcount(m->fn->op->saves.outputs); k > 0; --k)
    m->fn->saved[m->fn->saved_count - k].version = out.version();
  if (m->fn->op->saves.outputs && SavedTensorHooks::current()) pack_saved_outputs(out);
  if (!out.impl()->base) return;
  m->made_at = out.version();
  replace_in_base(out);
}

Tensor Grad::saved(int index, const char* what, int i, const Edge& history) const {
  const SavedTensor& s = node_.saved[index];
  if (node_.freed)
    throw Error(fmt::format("backward through {} #{} a second time: its saved tensors were freed", node_.op->info.name,
                            node_.origin.seq),
                "pass retain_graph to the first backward");
  if (s.packed) {
    Tensor t = s.packed->unpack();
    return history.fn && grad_enabled() ? with_history(bare(t), history) : t;
  }
  if (s.value.defined() && s.value.version() != s.version)
    throw Error(
        fmt::format("{} {} ({}, size {}) that {} #{} of module '{}' saved for its gradient was changed in "
                    "place{}: it had version {}, now it has {}",
                    what, i, name(s.value.dtype()), to_string(s.value.size()), node_.op->info.name, node_.origin.seq,
                    module_path(node_.origin.module), writer_text(*s.value.storage()), s.version, s.value.version()),
        "use the form that returns a new tensor, or clone before writing");
  if (history.fn && history.fn->op && grad_enabled() && s.value.defined()) return with_history(bare(s.value), history);
  return s.value;
}

Tensor Grad::x(int i) const {
  uint32_t mask = node_.op->saves.inputs;
  if (!(mask >> i & 1u)) throw Error(fmt::format("{} does not save its input {}", node_.op->info.name, i));
  return saved(std::popcount(mask & ((1u << i) - 1u)), "input", i, node_.next[i]);
}

// Gives the saved output back with this node as its history, so that backward is differentiable through it.
Tensor Grad::y(int i) const {
  uint32_t mask = node_.op->saves.outputs;
  if (!(mask >> i & 1u)) throw Error(fmt::format("{} does not save its output {}", node_.op->info.name, i));
  int first = node_.saved_count - std::popcount(mask);
  Tensor t = saved(first + std::popcount(mask & ((1u << i) - 1u)), "output", i, {});
  if (!grad_enabled() || !is_floating(t.dtype())) return t;
  return output_with_history(t, i);
}

Tensor Grad::output_with_history(const Tensor& value, int i) const {
  return with_history(bare(value), {Ref<Node>::share(&node_), static_cast<uint16_t>(i)});
}

}  // namespace tenon
