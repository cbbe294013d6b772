#include "engine/autograd/autograd.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/error.h"
#include "engine/autograd/node.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

/// Of a pass; 0, which claims nothing, is left out when the numbers come round.
uint32_t next_number() {
  static std::atomic<uint32_t> last{0};
  uint32_t n;
  do n = last.fetch_add(1, std::memory_order_relaxed) + 1;
  while (n == 0);
  return n;
}

Layout dense_layout(const Tensor& t) {
  Layout l = t.layout();
  l.offset = 0;
  return l.is_dense() ? l : Layout::contiguous(t.size());
}

struct Capture {
  Edge from;
  Tensor* to;
};

// One walk over the graph. Nodes run in falling order of recording; a leaf as soon as its last gradient has come.
class Pass {
 public:
  /// With captures, only what lies before them runs; the gradients of other leaves are left alone.
  Pass(const BackwardOptions& o, std::vector<Capture> captures)
      : retain_(o.retain_graph || o.create_graph),
        create_(o.create_graph),
        accumulate_(captures.empty()),
        captures_(std::move(captures)) {}

  void seed(const Tensor& root, const Tensor& given) {
    if (!root.requires_grad())
      throw Error(fmt::format("backward: the tensor of size {} requires no gradient and has no history",
                              to_string(root.size())));
    Tensor g = given;
    if (!g) {
      if (root.numel() != 1)
        throw Error(
            fmt::format("backward: a gradient must be given for a tensor of size {} (only for one element it is 1)",
                        to_string(root.size())));
      g = ones(root.size(), root.dtype(), root.device());
    }
    if (!(g.size() == root.size()))
      throw Error(fmt::format("backward: the gradient has size {}, the tensor {}", to_string(g.size()),
                              to_string(root.size())));
    roots_.push_back({edge_of(root), g});
  }

  void run() {
    count();
    for (auto& [edge, g] : roots_)
      if (edge.fn->needed) deliver(edge, std::move(g));
    for (auto& [edge, g] : roots_)
      if (edge.fn->needed && edge.fn->pending == 0) ready(edge.fn.get());
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), lower);
      Node* n = heap_.back();
      heap_.pop_back();
      step(*n);
    }
  }

 private:
  static bool lower(const Node* a, const Node* b) { return a->order < b->order; }

  [[noreturn]] static void refuse(const Node& n) {
    const std::string what =
        n.op ? fmt::format("{} #{} of module '{}'", n.op->info.name, n.origin.seq, module_path(n.origin.module))
             : fmt::format("the gradient of a leaf of size {}", to_string(n.out_metas[0].shape));
    throw Error(fmt::format("backward: {} is part of a backward that has not ended", what),
                "two threads cannot walk one graph, nor graphs that end in the same leaves, at the same time");
  }

  /// True on the first visit. See Note [Passes claim what they walk].
  bool claim(Node& n) {
    if (n.claim.load(std::memory_order_relaxed) == number_) return false;
    uint32_t nobody = 0;
    if (!n.claim.compare_exchange_strong(nobody, number_, std::memory_order_acquire, std::memory_order_relaxed))
      refuse(n);
    return true;
  }

  void count() {
    static thread_local size_t last_size = 0;  // a loop walks graphs of one size
    visited_.reserve(last_size);
    auto visit = [&](Node* n) {
      if (!claim(*n)) return;
      visited_.push_back(n);
      n->pending = 0;
      n->sum_made = false;
      n->needed = accumulate_;
    };
    for (auto& r : roots_) visit(r.first.fn.get());
    for (size_t k = 0; k < visited_.size(); ++k) {
      Node* n = visited_[k];
      for (int i = 0; i < n->inputs; ++i)
        if (Node* f = n->next[i].fn.get()) {
          visit(f);
          ++f->pending;
        }
    }
    last_size = visited_.size();
    if (accumulate_) return;
    mark_needed();
    for (Node* n : visited_) n->pending = 0;
    for (Node* n : visited_)
      for (int i = 0; n->needed && i < n->inputs; ++i)
        if (Node* f = n->next[i].fn.get(); f && f->needed) ++f->pending;
  }

  // Inputs have a lower order than what they go into, so one walk from the oldest node up is enough.
  void mark_needed() {
    for (auto& c : captures_)
      if (c.from.fn->claim.load(std::memory_order_relaxed) == number_) c.from.fn->needed = true;
    std::vector<Node*> oldest_first = visited_;
    std::sort(oldest_first.begin(), oldest_first.end(), lower);
    for (Node* n : oldest_first)
      for (int i = 0; i < n->inputs; ++i)
        if (Node* f = n->next[i].fn.get()) n->needed |= f->needed;
  }

  /// Nobody else holds the sum, so it may be written.
  bool mine(const Tensor& sum) const {
    const TensorImpl& p = *sum.impl();
    return !create_ && p.refs.load() == 1 && p.storage.unique() && !sum.layout().may_overlap();
  }

  void add_to(Tensor& slot, Tensor g) {
    if (!slot) {
      slot = std::move(g);
      return;
    }
    if (mine(slot))
      add_(slot, g);
    else
      slot = add(slot, g);
  }

  /// `made`: by this pass, in memory of its own.
  void deliver(const Edge& e, Tensor g, bool made = false) {
    Tensor& slot = e.fn->grads[e.slot];
    if (e.slot == 0) e.fn->sum_made = made || slot.defined();  // a sum is new, or was nobody's
    add_to(slot, std::move(g));
  }

  void ready(Node* n) {
    n->pending = -1;  // queued once only
    if (n->op) {
      heap_.push_back(n);
      std::push_heap(heap_.begin(), heap_.end(), lower);
    } else {
      settle(*n);
      give_back(*n);
    }
  }

  // Hooks, captures and retained gradients see the finished gradients of a node's outputs.
  void finish(Node& n) {
    if (n.hooks)
      for (auto hooks = n.hooks->gradient; auto& h : hooks)
        if (n.grads[h.slot]) {
          Tensor changed = h.call(n.grads[h.slot]);
          if (changed) n.grads[h.slot] = changed;
        }
    if (n.retained)
      for (AutogradMeta* m : *n.retained) m->grad = n.grads[m->slot];
    for (auto& c : captures_)
      if (c.from.fn == &n) *c.to = n.grads[c.from.slot];
    if (OpObserver* o = current_observer()) o->backward_node(n);
  }

  void settle(Node& leaf) {
    finish(leaf);
    Tensor g = std::move(leaf.grads[0]);
    AutogradMeta* m = leaf.leaf;
    if (!g || !m || !accumulate_) return;
    bool shared = g.impl()->refs.load() != 1 || !g.impl()->storage.unique();
    if (m->grad) {
      add_to(m->grad, std::move(g));
    } else if (!create_ && (shared || !g.layout().is_dense())) {
      // Later passes add in place, so it must be ours alone. No op: whether someone else holds the gradient must not
      // number ops differently.
      m->grad = empty_strided(dense_layout(g), g.dtype(), g.device());
      copy_(m->grad, g);
    } else {
      m->grad = std::move(g);
    }
    if (leaf.hooks && !leaf.hooks->leaf.empty()) {
      Tensor t = m->self_handle();
      if (t)
        for (auto hooks = leaf.hooks->leaf; auto& h : hooks) h.call(t);
    }
  }

  static bool leads_on(const Node& n) {
    for (int i = 0; i < n.inputs; ++i)
      if (n.next[i].fn && n.next[i].fn->needed) return true;
    return false;
  }

  static void before(Node& n) {
    for (auto hooks = n.hooks->before; auto& h : hooks) {
      std::vector<Tensor> outputs(n.grads, n.grads + n.outputs);
      h.call(outputs);
      for (int i = 0; i < n.outputs && i < static_cast<int>(outputs.size()); ++i)
        n.grads[i] = outputs[static_cast<size_t>(i)];
    }
  }
  static void after(Node& n, Tensor* results) {
    for (auto hooks = n.hooks->after; auto& h : hooks) {
      std::vector<Tensor> inputs(results, results + n.inputs);
      h.call(inputs, std::vector<Tensor>(n.grads, n.grads + n.outputs));
      for (int i = 0; i < n.inputs && i < static_cast<int>(inputs.size()); ++i)
        results[i] = inputs[static_cast<size_t>(i)];
    }
  }

  /// Whether the gradient of a node's input is that of its output with zeros around it: of a slice, say.
  bool is_part(const Node& n) const {
    return n.op->view && !n.op->info.reads_strides && n.inputs == 1 && n.grads[0].defined() &&
           n.grads[0].numel() < n.metas[0].shape.product();
  }

  /// The gradient of a part is added to that part of a sum that is there, instead of a sum as large as the whole with
  /// zeros around the part. Whether it is does not depend on who holds the sum: that would number ops differently where
  /// a recorder looks.
  bool add_to_part(Node& n) {
    if (create_ || n.hooks || !is_part(n)) return false;
    const Edge& e = n.next[0];
    const Tensor& g = n.grads[0];
    if (!e.fn || !e.fn->needed || e.slot != 0 || !e.fn->sum_made) return false;
    Tensor& slot = e.fn->grads[0];
    if (!slot || !slot.is_contiguous() || slot.offset() != 0 || !(slot.size() == n.metas[0].shape) ||
        slot.dtype() != g.dtype())
      return false;
    const Layout part = n.op->view(n.attrs, Layout::contiguous(slot.size()));
    if (part.may_overlap() || !(part.size == g.size())) return false;
    Tensor there = view_of(slot, part);
    add_(there, g);
    return true;
  }

  void step(Node& n) {
    finish(n);
    if (n.hooks) before(n);
    bool any = false;
    for (int i = 0; i < n.outputs; ++i) any |= n.grads[i].defined();
    any &= leads_on(n);
    bool part = false;
    constexpr int kFew = 4;
    Tensor results[kFew];
    std::vector<Tensor> many;
    Tensor* out = results;
    if (n.inputs > kFew) {
      many.resize(n.inputs);
      out = many.data();
    }
    if (any) {
      ModuleScope module(n.origin.module);
      uint32_t forward = t_forward_seq;
      t_forward_seq = n.origin.seq;
      struct Restore {
        uint32_t to;
        ~Restore() { t_forward_seq = to; }
      } restore{forward};
      if (n.freed && n.saved_count)
        throw Error(fmt::format("backward through {} #{} of module '{}' a second time: its saved tensors were freed",
                                n.op->info.name, n.origin.seq, module_path(n.origin.module)),
                    "pass retain_graph to the first backward");
      Grad d(n, out);
      part = is_part(n);
      if (!add_to_part(n)) n.op->backward(d);
      for (int i = 0; i < n.inputs; ++i) {
        if (!out[i] || !n.next[i].fn) continue;
        if (!(out[i].size() == n.metas[i].shape)) out[i] = sum_to(out[i], n.metas[i].shape);
        if (out[i].dtype() != n.metas[i].dtype) out[i] = cast(out[i], n.metas[i].dtype);
      }
      if (n.hooks) after(n, out);
    }
    for (int i = 0; i < n.outputs; ++i) n.grads[i].reset();
    if (!retain_) {
      n.freed = true;
      for (int i = 0; i < n.saved_count; ++i) n.saved[i].reset();
    }
    for (int i = 0; i < n.inputs; ++i) {
      const Edge& e = n.next[i];
      if (!e.fn || !e.fn->needed) continue;
      if (out[i]) deliver(e, std::move(out[i]), part && !create_ && !n.hooks);
      if (--e.fn->pending == 0) ready(e.fn.get());
    }
    give_back(n);
  }

  void give_back(Node& n) {
    n.claim.store(0, std::memory_order_release);
    ++given_back_;
  }

  const uint32_t number_ = next_number();
  bool retain_, create_, accumulate_;
  std::vector<Capture> captures_;
  std::vector<std::pair<Edge, Tensor>> roots_;
  std::vector<Node*> heap_, visited_;
  size_t given_back_ = 0;  ///< of the visited: they are done, and nobody's

 public:
  // A pass that ended in an error leaves no half-summed gradients behind.
  ~Pass() {
    if (given_back_ == visited_.size()) return;
    const bool failed = std::uncaught_exceptions() > 0;
    for (Node* n : visited_) {
      if (n->claim.load(std::memory_order_relaxed) != number_) continue;  // it may be another's by now
      for (int i = 0; failed && i < n->outputs; ++i) n->grads[i].reset();
      n->claim.store(0, std::memory_order_release);
    }
  }
};

void run_pass(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients, const BackwardOptions& o,
              std::vector<Capture> captures) {
  PhaseScope phase(Phase::backward);
  const uint32_t no_grad = mode::no_grad;
  ModeGuard guard(o.create_graph ? 0u : no_grad, mode::autocast | (o.create_graph ? no_grad : 0u));
  Pass pass(o, std::move(captures));
  for (size_t i = 0; i < roots.size(); ++i) pass.seed(roots[i], i < gradients.size() ? gradients[i] : Tensor());
  pass.run();
}

}  // namespace

Tensor& set_requires_grad(Tensor& t, bool on) {
  if (on && !is_floating(t.dtype()))
    throw Error(
        fmt::format("a tensor of {} cannot require a gradient: only floating-point tensors have one", name(t.dtype())));
  AutogradMeta* m = autograd_meta(t);
  if (m && !m->is_leaf) {
    if (!on) throw Error("the result of an op cannot stop requiring its gradient", "use detach()");
    return t;
  }
  t.impl()->flags = static_cast<uint8_t>(on ? t.impl()->flags | TensorImpl::requires_grad
                                            : t.impl()->flags & ~TensorImpl::requires_grad);
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

bool is_leaf(const Tensor& t) {
  if (t.impl()->base && t.requires_grad()) return !edge_of(t).fn->op;  // its base may have taken on a history since
  return !autograd_meta(t) || autograd_meta(t)->is_leaf;
}

void retain_grad(const Tensor& t) {
  if (is_leaf(t)) return;  // leaves keep theirs anyway
  edge_of(t);
  AutogradMeta* m = autograd_meta(t);
  if (m->retain_grad) return;
  m->retain_grad = true;
  if (!m->fn->retained) m->fn->retained = std::make_unique<std::vector<AutogradMeta*>>();
  m->fn->retained->push_back(m);
}

Tensor detach(const Tensor& t) { return view_of(t, t.layout()); }

void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients, BackwardOptions options) {
  std::vector<Capture> captures;
  std::vector<Tensor> found(options.inputs.size());
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    Edge e = edge_of(options.inputs[i]);
    if (!e.fn) throw Error(fmt::format("backward: input {} requires no gradient", i));
    captures.push_back({std::move(e), &found[i]});
  }
  run_pass(roots, gradients, options, std::move(captures));
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    Tensor& grad = autograd_meta(options.inputs[i])->grad;
    ModeGuard guard(options.create_graph ? 0u : +mode::no_grad, options.create_graph ? +mode::no_grad : 0u);
    grad = grad ? add(grad, found[i]) : clone(found[i]);
  }
}

void backward(const Tensor& root, const Tensor& gradient, BackwardOptions options) {
  backward(std::vector<Tensor>{root}, std::vector<Tensor>{gradient}, std::move(options));
}

std::vector<Tensor> grad(const std::vector<Tensor>& roots, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& gradients, BackwardOptions options, bool allow_unused) {
  std::vector<Tensor> results(inputs.size());
  std::vector<Capture> captures;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Edge e = edge_of(inputs[i]);
    if (!e.fn) throw Error(fmt::format("grad: input {} requires no gradient", i));
    captures.push_back({std::move(e), &results[i]});
  }
  run_pass(roots, gradients, options, std::move(captures));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!results[i] && !allow_unused)
      throw Error(fmt::format("grad: nothing depends on input {}", i),
                  "pass allow_unused to get an undefined tensor for it");
  return results;
}

}  // namespace tenon
