#include "engine/autograd/autograd.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/error.h"
#include "engine/autograd/node.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

std::atomic<uint32_t> g_pass{1};
int g_next_hook = 1;

Layout dense_layout(const Tensor& t) {
  Layout l = t.layout();
  l.offset = 0;
  return l.is_dense() ? l : Layout::contiguous(t.size());
}

struct Capture {
  Node* fn;
  uint16_t slot;
  Tensor* to;
};

// One walk over the graph. Nodes run in falling order of recording; a leaf as soon as its last gradient has come.
class Pass {
 public:
  Pass(const BackwardOptions& o, std::vector<Capture> captures, bool accumulate)
      : retain_(o.retain_graph || o.create_graph), create_(o.create_graph), accumulate_(accumulate), captures_(std::move(captures)) {}

  void seed(const Tensor& root, const Tensor& given) {
    if (!root.requires_grad())
      throw Error(fmt::format("backward: the tensor of size {} requires no gradient and has no history", to_string(root.size())));
    Tensor g = given;
    if (!g) {
      if (root.numel() != 1)
        throw Error(fmt::format("backward: a gradient must be given for a tensor of size {} (only for one element it is 1)", to_string(root.size())));
      g = ones(root.size(), root.dtype());
    }
    if (!(g.size() == root.size()))
      throw Error(fmt::format("backward: the gradient has size {}, the tensor {}", to_string(g.size()), to_string(root.size())));
    Edge e = edge_of(root);
    roots_.push_back({e, g});
  }

  void run() {
    count();
    for (auto& [edge, g] : roots_) deliver(edge, std::move(g));
    for (auto& [edge, g] : roots_)
      if (edge.fn->pending == 0) ready(edge.fn);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), lower);
      Node* n = heap_.back();
      heap_.pop_back();
      step(*n);
    }
  }

 private:
  static bool lower(const Node* a, const Node* b) { return a->order < b->order; }

  void count() {
    uint32_t pass = g_pass.fetch_add(1);
    std::vector<Node*> stack;
    auto visit = [&](Node* n) {
      if (n->stamp == pass) return;
      n->stamp = pass;
      n->pending = 0;
      queued_.push_back(n);
      stack.push_back(n);
    };
    for (auto& r : roots_) visit(r.first.fn);
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      for (int i = 0; i < n->inputs; ++i)
        if (Node* f = n->next[i].fn) {
          visit(f);
          ++f->pending;
        }
    }
  }

  void add_to(Tensor& slot, Tensor g) {
    if (!slot) {
      slot = std::move(g);
      return;
    }
    TensorImpl& p = *slot.impl();
    bool mine = p.refs.load() == 1 && p.storage && p.storage->refs.load() == 1 && !slot.layout().may_overlap();
    if (!create_ && mine) add_(slot, g);
    else slot = add(slot, g);
  }

  void deliver(Edge e, Tensor g) { add_to(e.fn->grads[e.slot], std::move(g)); }

  void ready(Node* n) {
    n->pending = -1;  // queued once only
    if (n->op) {
      heap_.push_back(n);
      std::push_heap(heap_.begin(), heap_.end(), lower);
    } else {
      settle(*n);
    }
  }

  // Hooks, captures and retained gradients see the finished gradients of a node's outputs.
  void finish(Node& n) {
    if (n.hooks)
      for (auto hooks = *n.hooks; auto& h : hooks)
        if (n.grads[h.slot]) {
          Tensor changed = h.call(n.grads[h.slot]);
          if (changed) n.grads[h.slot] = changed;
        }
    if (n.retained)
      for (AutogradMeta* m : *n.retained) m->grad = n.grads[m->slot];
    for (auto& c : captures_)
      if (c.fn == &n) *c.to = n.grads[c.slot];
    if (OpObserver* o = current_observer()) o->backward_node(n);
  }

  void settle(Node& leaf) {
    finish(leaf);
    Tensor g = std::move(leaf.grads[0]);
    AutogradMeta* m = leaf.leaf;
    if (!g || !m || !accumulate_) return;
    bool shared = g.impl()->refs.load() != 1 || !g.storage() || g.storage()->refs.load() != 1;
    if (m->grad) {
      add_to(m->grad, std::move(g));
    } else if (!create_ && (shared || !g.layout().is_dense())) {
      // Later passes add in place, so it must be ours alone. No op: whether someone else holds the gradient must not number ops differently.
      m->grad = empty_strided(dense_layout(g), g.dtype(), g.device());
      copy_(m->grad, g);
    } else {
      m->grad = std::move(g);
    }
  }

  void step(Node& n) {
    finish(n);
    bool any = false;
    for (int i = 0; i < n.outputs; ++i) any |= n.grads[i].defined();
    Tensor results[8];
    std::vector<Tensor> many;
    Tensor* out = results;
    if (n.inputs > 8) {
      many.resize(n.inputs);
      out = many.data();
    }
    if (any) {
      ModuleScope module(n.origin.module);
      uint32_t forward = t_forward_seq;
      t_forward_seq = n.origin.seq;
      struct Restore { uint32_t to; ~Restore() { t_forward_seq = to; } } restore{forward};
      if (n.freed && n.saved_count)
        throw Error(fmt::format("backward through {} #{} of module '{}' a second time: its saved tensors were freed", n.op->info.name, n.origin.seq,
                                module_path(n.origin.module)),
                    "pass retain_graph to the first backward");
      Grad d(n, out);
      n.op->backward(d);
      for (int i = 0; i < n.inputs; ++i) {
        if (!out[i] || !n.next[i].fn) continue;
        if (!(out[i].size() == n.metas[i].shape)) out[i] = sum_to(out[i], n.metas[i].shape);
        if (out[i].dtype() != n.metas[i].dtype) out[i] = cast(out[i], n.metas[i].dtype);
      }
    }
    for (int i = 0; i < n.outputs; ++i) n.grads[i].reset();
    if (!retain_) {
      n.freed = true;
      for (int i = 0; i < n.saved_count; ++i) n.saved[i].value.reset();
    }
    for (int i = 0; i < n.inputs; ++i) {
      Edge e = n.next[i];
      if (!e.fn) continue;
      if (out[i]) deliver(e, std::move(out[i]));
      if (--e.fn->pending == 0) ready(e.fn);
    }
  }

  bool retain_, create_, accumulate_;
  std::vector<Capture> captures_;
  std::vector<std::pair<Edge, Tensor>> roots_;
  std::vector<Node*> heap_, queued_;

 public:
  // A pass that ended in an error leaves no half-summed gradients behind.
  ~Pass() {
    if (std::uncaught_exceptions())
      for (Node* n : queued_)
        for (int i = 0; i < n->outputs; ++i) n->grads[i].reset();
  }
};

void run_pass(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients, const BackwardOptions& o, std::vector<Capture> captures, bool accumulate) {
  PhaseScope phase(Phase::backward);
  const uint32_t no_grad = mode::no_grad;
  ModeGuard guard(o.create_graph ? 0u : no_grad, o.create_graph ? no_grad : 0u);
  Pass pass(o, std::move(captures), accumulate);
  for (size_t i = 0; i < roots.size(); ++i) pass.seed(roots[i], i < gradients.size() ? gradients[i] : Tensor());
  pass.run();
}

}  // namespace

Tensor& set_requires_grad(Tensor& t, bool on) {
  if (on && !is_floating(t.dtype())) throw Error(fmt::format("a tensor of {} cannot require a gradient: only floating-point tensors have one", name(t.dtype())));
  AutogradMeta* m = autograd_meta(t);
  if (m && !m->is_leaf) {
    if (!on) throw Error("the result of an op cannot stop requiring its gradient", "use detach()");
    return t;
  }
  t.impl()->flags = static_cast<uint8_t>(on ? t.impl()->flags | TensorImpl::requires_grad : t.impl()->flags & ~TensorImpl::requires_grad);
  return t;
}

Tensor grad_of(const Tensor& t) { return autograd_meta(t) ? autograd_meta(t)->grad : Tensor(); }

void set_grad(const Tensor& t, const Tensor& grad) {
  if (!t.impl()->grad) t.impl()->grad = new AutogradMeta;
  autograd_meta(t)->grad = grad;
}

void zero_grad(const Tensor& t) {
  if (autograd_meta(t)) autograd_meta(t)->grad.reset();
}

bool is_leaf(const Tensor& t) { return !autograd_meta(t) || autograd_meta(t)->is_leaf; }

void retain_grad(const Tensor& t) {
  if (is_leaf(t)) return;  // leaves keep theirs anyway
  AutogradMeta* m = autograd_meta(t);
  if (m->retain_grad) return;
  m->retain_grad = true;
  if (!m->fn->retained) m->fn->retained = std::make_unique<std::vector<AutogradMeta*>>();
  m->fn->retained->push_back(m);
}

Tensor detach(const Tensor& t) { return view_of(t, t.layout()); }

int add_hook(const Tensor& t, std::function<Tensor(const Tensor&)> hook) {
  Edge e = edge_of(t);
  if (!e.fn) throw Error("a hook was put on a tensor that requires no gradient");
  if (!e.fn->hooks) e.fn->hooks = std::make_unique<std::vector<Node::Hook>>();
  e.fn->hooks->push_back({g_next_hook, e.slot, std::move(hook)});
  return g_next_hook++;
}

void remove_hook(const Tensor& t, int id) {
  Edge e = edge_of(t);
  if (e.fn && e.fn->hooks) std::erase_if(*e.fn->hooks, [&](const Node::Hook& h) { return h.id == id; });
}

void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients, BackwardOptions options) {
  run_pass(roots, gradients, options, {}, true);
}

void backward(const Tensor& root, const Tensor& gradient, BackwardOptions options) {
  run_pass({root}, {gradient}, options, {}, true);
}

std::vector<Tensor> grad(const std::vector<Tensor>& roots, const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients,
                         BackwardOptions options, bool allow_unused) {
  std::vector<Tensor> results(inputs.size());
  std::vector<Capture> captures;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Edge e = edge_of(inputs[i]);
    if (!e.fn) throw Error(fmt::format("grad: input {} requires no gradient", i));
    captures.push_back({e.fn, e.slot, &results[i]});
  }
  run_pass(roots, gradients, options, std::move(captures), false);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!results[i] && !allow_unused) throw Error(fmt::format("grad: nothing depends on input {}", i), "pass allow_unused to get an undefined tensor for it");
  return results;
}

}  // namespace tenon
