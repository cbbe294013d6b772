#include "engine/nn/hooks.h"

#include <cstddef>

#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/view.h"

namespace tenon::nn {
namespace {

constexpr int kMost = 4;  // tensors an op may give

/// What a module's inputs pass through so that their gradients come together: copies forward, and backward calls f with
/// all of them.
struct Boundary {
  static constexpr OpInfo info{"module_boundary", "", OpKind::copy, kMost};
  using Call_ = std::function<void(std::vector<Tensor>&)>;
  struct Attrs {
    std::shared_ptr<Call_> f;
    template <class F>
    void fields(F&& visit) const {
      visit("function", f, false);
    }
  };
  static void infer(const Attrs&, const Tensor* in, int n, Meta* out) {
    for (int i = 0; i < kMost; ++i) {
      if (i < n && in[i])
        out[i] = in[i].meta();
      else
        out[i].shape = {0};
      for (int k = 0; k < n; ++k)
        if (in[k]) out[i].device = in[k].device();
    }
  }
  static void cpu(const Call& c) {
    for (int i = 0; i < c.inputs; ++i)
      if (c.in[i]) copy_(c.out[i], c.in[i]);
  }
  static void backward(Grad& d) {
    std::vector<Tensor> g;
    for (int i = 0; i < d.inputs(); ++i) g.push_back(d.needs(i) ? d.out(i) : Tensor());
    if (const auto& f = d.as<Attrs>().f; f && *f) (*f)(g);
    for (int i = 0; i < d.inputs(); ++i)
      if (d.needs(i)) d.in(i) = g[static_cast<size_t>(i)];
  }
  static void samples(Samples& s) { s.add("two tensors", Attrs{}, {s.values({2, 3}), s.values({4})}); }
};
const Register<Boundary> boundary_op;

}  // namespace

Module::Hooks& Module::hooks() {
  if (!hooks_) {
    hooks_ = std::make_shared<Hooks>();
    hooks_->owner = this;
  }
  return *hooks_;
}

const char* Module::hooks_at(size_t offset) {
  if (offset < offsetof(Hooks, post)) return "a hook before";
  return offset < offsetof(Hooks, backward) ? "a forward hook of" : "a backward hook of";
}

Module::~Module() {
  if (hooks_) hooks_->owner = nullptr;
}

int Module::add_forward_pre_hook(std::function<void(Module&, std::vector<Tensor>&)> hook) {
  hooks().pre.push_back({hooks().next, std::move(hook)});
  return hooks_->next++;
}
int Module::add_forward_hook(std::function<void(Module&, std::span<const Tensor>, Tensor&)> hook) {
  hooks().post.push_back({hooks().next, std::move(hook)});
  return hooks_->next++;
}
int Module::add_full_backward_hook(std::function<void(Module&, std::vector<Tensor>&, const Tensor&)> hook) {
  hooks().backward.push_back({hooks().next, std::move(hook)});
  return hooks_->next++;
}
void Module::remove_hook(int id) {
  if (!hooks_) return;
  auto mine = [&](const auto& h) { return h.id == id; };
  std::erase_if(hooks_->pre, mine);
  std::erase_if(hooks_->post, mine);
  std::erase_if(hooks_->backward, mine);
}

bool Module::hooked() const {
  if (hooks_ && !(hooks_->pre.empty() && hooks_->post.empty() && hooks_->backward.empty())) return true;
  for (const auto& [name, child] : children_)
    if (child->hooked()) return true;
  return false;
}

Tensor Module::run_hooked(std::span<const Tensor> given) {
  std::shared_ptr<Hooks> h = hooks_;  // a hook may remove itself
  std::vector<Tensor> inputs(given.begin(), given.end());
  for (auto hooks = h->pre; auto& hook : hooks) hook.call(*this, inputs);
  bool watched = false;
  if (!h->backward.empty() && grad_enabled())
    for (const Tensor& t : inputs) watched |= t && t.requires_grad();
  std::shared_ptr<Tensor> grad_output;
  if (watched) {
    if (inputs.size() > kMost)
      throw Error("a backward hook was put on a module of " + std::to_string(inputs.size()) +
                  " inputs; at most 4 are supported");
    grad_output = std::make_shared<Tensor>();
    auto call = std::make_shared<Boundary::Call_>([h, name = describe(), grad_output](std::vector<Tensor>& g) {
      if (!h->owner)
        throw Error("backward came to a hook of " + name + ", which is gone", "keep the module until backward has run");
      for (auto hooks = h->backward; auto& hook : hooks) hook.call(*h->owner, g, *grad_output);
    });
    Tensor out[kMost];
    apply_many<Boundary>({call}, inputs.data(), static_cast<int>(inputs.size()), out);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] && inputs[i].requires_grad()) inputs[i] = out[i];
  }
  Tensor y = forward(std::span<const Tensor>(inputs));
  for (auto hooks = h->post; auto& hook : hooks) hook.call(*this, inputs, y);
  if (watched && y.requires_grad())
    add_hook(y, [grad_output](const Tensor& g) {
      *grad_output = g;
      return Tensor();
    });
  return y;
}

}  // namespace tenon::nn
