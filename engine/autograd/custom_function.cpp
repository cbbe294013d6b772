#include "engine/autograd/custom_function.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/profile.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/node.h"
#include "engine/ops/view.h"

namespace tenon {

/// A saved input keeps its history through its handle. An output's would be this function's own node: it is found anew
/// when it is read.
struct FunctionContext::Kept {
  Tensor value;
  uint32_t version = 0;
  int output = -1;
};

FunctionContext::~FunctionContext() = default;

void FunctionContext::save_for_backward(std::vector<Tensor> tensors) {
  kept_.clear();
  for (Tensor& t : tensors) {
    uint32_t version = t ? t.version() : 0;
    kept_.push_back({std::move(t), version, -1});
  }
}

std::vector<Tensor> FunctionContext::saved() const {
  std::vector<Tensor> all;
  for (const Kept& k : kept_) {
    if (k.value && k.value.version() != k.version)
      throw Error(fmt::format("tensor {} (size {}) that {} saved for its gradient was changed in place{}: it had "
                              "version {}, now it has {}",
                              all.size(), to_string(k.value.size()), name_, writer_text(*k.value.storage()), k.version,
                              k.value.version()),
                  "use the form that returns a new tensor, or clone before writing");
    all.push_back(k.value);
  }
  return all;
}

struct CustomFunctionOp {
  static constexpr OpInfo info{.name = "custom_function"};
  struct Attrs {
    std::shared_ptr<CustomFunction> function;
    std::shared_ptr<FunctionContext> context;
    std::string name;  ///< of the function
    template <class F>
    void fields(F&& f) const {
      f("function", name);
      f("object", function, false);
      f("context", context, false);
    }
  };
  static void backward(Grad& d) {
    const auto& a = d.as<Attrs>();
    std::vector<Tensor> gradients;
    for (int i = 0; i < d.outputs(); ++i) gradients.push_back(d.out(i));
    // A saved output is part of the graph that backward may itself be differentiated in.
    std::vector<FunctionContext::Kept> bare = a.context->kept_;
    if (grad_enabled())
      for (auto& k : a.context->kept_)
        if (k.output >= 0) k.value = d.output_with_history(k.value, k.output);
    std::vector<Tensor> results = a.function->backward(*a.context, gradients);
    a.context->kept_ = std::move(bare);
    if (results.size() != static_cast<size_t>(d.inputs()))
      throw Error(fmt::format("the backward of {} gave {} gradients for {} inputs", a.function->name(), results.size(),
                              d.inputs()));
    for (int i = 0; i < d.inputs(); ++i) {
      Tensor& r = results[static_cast<size_t>(i)];
      if (!r || !d.needs(i)) continue;
      if (!(r.size() == d.meta(i).shape))
        throw Error(fmt::format("the backward of {} gave input {} a gradient of size {}; the input has size {}",
                                a.function->name(), i, to_string(r.size()), to_string(d.meta(i).shape)));
      d.in(i) = r;
    }
  }
};

/// No op of the registry: what it does comes with each call.
static const OpDef& definition() {
  static const OpDef def = [] {
    OpDef d;
    d.info = CustomFunctionOp::info;
    d.profile_name = intern_name(d.info.name);
    d.attrs = AttrsDef::of<CustomFunctionOp::Attrs>();
    d.backward = CustomFunctionOp::backward;
    return d;
  }();
  return def;
}

std::vector<Tensor> apply_function(const std::shared_ptr<CustomFunction>& function, const std::vector<Tensor>& inputs) {
  auto context = std::make_shared<FunctionContext>();
  context->name_ = function->name();
  bool any = false;
  for (const Tensor& t : inputs) {
    context->needs_.push_back(t.defined() && grad_enabled() && t.requires_grad());
    any |= context->needs_.back();
  }
  std::vector<Tensor> outputs;
  {
    NoGrad no_grad;
    outputs = function->forward(*context, inputs);
  }
  if (!any) return outputs;
  for (Tensor& o : outputs)
    for (const Tensor& i : inputs)
      if (o && i && o.same(i)) o = detach(o);  // the result is a tensor of its own, though it may share memory
  for (FunctionContext::Kept& k : context->kept_)
    for (size_t o = 0; o < outputs.size(); ++o)
      if (k.value && k.value.same(outputs[o])) {
        k.value = detach(k.value);
        k.output = static_cast<int>(o);
      }
  const CustomFunctionOp::Attrs attrs{function, context, function->name()};
  ++t_state.origin.seq;
  record_node(definition(), &attrs, inputs.data(), static_cast<int>(inputs.size()), outputs.data(),
              static_cast<int>(outputs.size()));
  return outputs;
}

namespace {
class StraightThrough : public CustomFunction {
 public:
  explicit StraightThrough(Tensor (*f)(const Tensor&)) : f_(f) {}
  const char* name() const override { return "straight_through"; }
  std::vector<Tensor> forward(FunctionContext&, const std::vector<Tensor>& in) override { return {f_(in[0])}; }
  std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& g) override { return {g[0]}; }

 private:
  Tensor (*f_)(const Tensor&);
};
}  // namespace

Tensor straight_through(const Tensor& x, Tensor (*f)(const Tensor&)) {
  return apply_function(std::make_shared<StraightThrough>(f), {x})[0];
}

}  // namespace tenon
