#include "engine/autograd/node.h"

#include <bit>
#include <fmt/format.h>

#include "core/error.h"
#include "core/freelist.h"
#include "engine/autograd/autograd.h"

namespace tenon {
namespace {

std::atomic<uint64_t> g_order{1};

size_t aligned(size_t n) { return (n + 15) & ~size_t{15}; }

Node* new_node(const OpDef* op, int inputs, int outputs, int saved) {
  size_t attrs = op ? aligned(op->attrs_size) : 0;
  size_t bytes = aligned(sizeof(Node)) + aligned(static_cast<size_t>(inputs) * sizeof(Edge)) + aligned(static_cast<size_t>(inputs) * sizeof(Meta)) +
                 aligned(static_cast<size_t>(saved) * sizeof(SavedTensor)) + attrs + aligned(static_cast<size_t>(outputs) * sizeof(Tensor)) +
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
  return n;
}

void destroy_node(Node* n) {
  for (int i = 0; i < n->saved_count; ++i) n->saved[i].~SavedTensor();
  for (int i = 0; i < n->outputs; ++i) n->grads[i].~Tensor();
  if (n->op && n->op->destroy_attrs) n->op->destroy_attrs(n->attrs);
  size_t bytes = n->bytes;
  n->~Node();
  FreeList::give(n, bytes);
}

AutogradMeta* ensure_meta(const Tensor& t) {
  if (!t.impl()->grad) t.impl()->grad = new AutogradMeta;
  return autograd_meta(t);
}

Node* make_node(const OpDef& op, const void* attrs, const Tensor* in, int inputs, uint32_t seq) {
  uint32_t mask = op.saves.inputs & ((inputs < 32 ? 1u << inputs : 0u) - 1u);
  int saved = std::popcount(mask) + std::popcount(op.saves.outputs);
  Node* n = new_node(&op, inputs, op.info.outputs, saved);
  op.copy_attrs(n->attrs, attrs);
  n->origin = t_state.origin;
  n->origin.seq = seq;
  n->order = g_order.fetch_add(1, std::memory_order_relaxed);
  int s = 0;
  for (int i = 0; i < inputs; ++i) {
    if (in[i].defined()) {
      n->metas[i] = in[i].meta();
      Edge e = edge_of(in[i]);
      if (e.fn) {
        node_retain(e.fn);
        n->next[i] = e;
      }
    }
    if (mask >> i & 1u) {
      if (in[i].defined()) n->saved[s] = {in[i], in[i].version()};
      ++s;
    }
  }
  return n;
}

// The saved handle has no history of its own: a node that held its own output would never be freed.
void save_outputs(Node* n, const Tensor* out) {
  int s = n->saved_count - std::popcount(n->op->saves.outputs);
  for (int i = 0; i < n->outputs; ++i)
    if (n->op->saves.outputs >> i & 1u) n->saved[s++] = {view_of(out[i], out[i].layout()), out[i].version()};
}

}  // namespace

void* AutogradMeta::operator new(size_t bytes) { return FreeList::take(bytes); }
void AutogradMeta::operator delete(void* p) { FreeList::give(p, sizeof(AutogradMeta)); }

AutogradMeta::~AutogradMeta() {
  if (!fn) return;
  if (is_leaf) fn->leaf = nullptr;
  if (retain_grad && fn->retained) std::erase(*fn->retained, this);
  node_release(fn);
}

int64_t Node::saved_bytes() const {
  int64_t sum = 0;
  for (int i = 0; i < saved_count; ++i)
    if (saved[i].value) sum += static_cast<int64_t>(saved[i].value.nbytes());
  return sum;
}

void node_retain(Node* n) { n->refs.fetch_add(1, std::memory_order_relaxed); }

void node_release(Node* n) {
  if (!drop(n->refs)) return;
  // A saved tensor may hold the last reference to further nodes, so releases nest through tensors: collect instead of recursing.
  thread_local std::vector<Node*>* dying = nullptr;
  if (dying) {
    dying->push_back(n);
    return;
  }
  std::vector<Node*> list{n};
  dying = &list;
  while (!list.empty()) {
    Node* d = list.back();
    list.pop_back();
    for (int i = 0; i < d->inputs; ++i) {
      Node* f = d->next[i].fn;
      if (f && drop(f->refs)) list.push_back(f);
    }
    destroy_node(d);
  }
  dying = nullptr;
}

Edge edge_of(const Tensor& t) {
  if (!t.requires_grad()) return {};
  AutogradMeta* m = ensure_meta(t);
  if (m->made_at != AutogradMeta::kAnyVersion && m->made_at != t.version())
    throw Error(fmt::format("the memory of a view (of size {}) was changed in place since the view was taken", to_string(t.size())), "take the view again after the change");
  if (!m->fn) {
    m->fn = new_node(nullptr, 0, 1, 0);
    m->fn->leaf = m;
    m->fn->out_metas[0] = t.meta();
  }
  return {m->fn, m->slot};
}

void record_node(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out, uint32_t seq) {
  Node* n = make_node(op, attrs, in, inputs, seq);
  if (op.saves.outputs) save_outputs(n, out);
  bool first_used = false;  // output 0 takes the reference made by make_node
  for (int i = 0; i < op.info.outputs; ++i) {
    n->out_metas[i] = out[i].meta();
    if (!is_floating(out[i].dtype())) continue;
    auto* m = new AutogradMeta;
    m->fn = n;
    m->slot = static_cast<uint16_t>(i);
    m->is_leaf = false;
    if (op.view) m->made_at = out[i].version();
    if (i > 0) node_retain(n);
    first_used |= i == 0;
    out[i].impl()->grad = m;
    out[i].impl()->flags |= TensorImpl::requires_grad;
  }
  if (!first_used) node_release(n);
}

void check_in_place_allowed(const Tensor& t) {
  if (!t.requires_grad()) {
    if (t.storage() && t.storage()->refs.load() > 1)
      throw Error("a tensor that shares its memory with others cannot take on a gradient in place: the others would not know", "write to a copy: clone()");
    return;
  }
  AutogradMeta* m = autograd_meta(t);
  if (!m || m->is_leaf)
    throw Error("a leaf that requires a gradient cannot be changed in place while gradients are recorded", "do it inside NoGrad, or on a copy");
  if (m->fn->op && m->fn->op->view)
    throw Error("a view of a tensor that requires a gradient cannot be changed in place while gradients are recorded", "use the form that returns a new tensor");
}

void record_in_place(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor& out, uint32_t seq) {
  Node* n = make_node(op, attrs, in, inputs, seq);
  // The tensor is its own input: a saved handle of it must not keep the history that is about to end in this node.
  for (int i = 0; i < n->saved_count; ++i)
    if (n->saved[i].value && n->saved[i].value.same(out)) n->saved[i].value = view_of(out, out.layout());
  if (op.saves.outputs) save_outputs(n, &out);
  n->out_metas[0] = out.meta();
  AutogradMeta* m = ensure_meta(out);
  Node* before = m->fn;
  m->made_at = AutogradMeta::kAnyVersion;
  if (before && !before->op) before->leaf = nullptr;  // it was a leaf once: its accumulating node must not outlive the pointer
  if (m->retain_grad && before && before->retained) {
    std::erase(*before->retained, m);
    m->retain_grad = false;
  }
  m->fn = n;  // takes the reference made by make_node
  m->slot = 0;
  m->is_leaf = false;
  out.impl()->flags |= TensorImpl::requires_grad;
  if (before) node_release(before);
}

void refresh_saved_output(const Tensor& out) {
  Node* n = autograd_meta(out)->fn;
  for (int k = std::popcount(n->op->saves.outputs); k > 0; --k) n->saved[n->saved_count - k].version = out.version();
}

const SavedTensor& Grad::saved(int index, const char* what, int i) const {
  const SavedTensor& s = node_.saved[index];
  if (node_.freed)
    throw Error(fmt::format("backward through {} #{} a second time: its saved tensors were freed", node_.op->info.name, node_.origin.seq),
                "pass retain_graph to the first backward");
  if (s.value.defined() && s.value.version() != s.version)
    throw Error(fmt::format("{} {} ({}, size {}) that {} #{} of module '{}' saved for its gradient was changed in place: it had version {}, now it has {}", what, i,
                            name(s.value.dtype()), to_string(s.value.size()), node_.op->info.name, node_.origin.seq, module_path(node_.origin.module), s.version,
                            s.value.version()),
                "use the form that returns a new tensor, or clone before writing");
  return s;
}

Tensor Grad::x(int i) const {
  uint32_t mask = node_.op->saves.inputs;
  if (!(mask >> i & 1u)) throw Error(fmt::format("{} does not save its input {}", node_.op->info.name, i));
  return saved(std::popcount(mask & ((1u << i) - 1u)), "input", i).value;
}

// Gives the saved output back with this node as its history, so that backward is differentiable through it.
Tensor Grad::y(int i) const {
  uint32_t mask = node_.op->saves.outputs;
  if (!(mask >> i & 1u)) throw Error(fmt::format("{} does not save its output {}", node_.op->info.name, i));
  int first = node_.saved_count - std::popcount(mask);
  const SavedTensor& s = saved(first + std::popcount(mask & ((1u << i) - 1u)), "output", i);
  if (!grad_enabled() || !is_floating(s.value.dtype())) return s.value;
  Tensor t = view_of(s.value, s.value.layout());
  auto* m = new AutogradMeta;
  m->fn = &node_;
  m->slot = static_cast<uint16_t>(i);
  m->is_leaf = false;
  node_retain(&node_);
  t.impl()->grad = m;
  t.impl()->flags |= TensorImpl::requires_grad;
  return t;
}

}  // namespace tenon
