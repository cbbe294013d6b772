#include "engine/autograd/gradcheck.h"

#include <fmt/format.h>
#include <cmath>

#include "core/random.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

// A fixed random weight for every element of every output makes one number of f, so that one backward checks all.
Tensor weights(const Shape& size, uint64_t stream) {
  Tensor w = empty(size, DType::f64);
  Philox random{3, stream};
  for (int64_t i = 0; i < w.numel(); ++i) w.data<double>()[i] = random.normal(static_cast<uint64_t>(i));
  return w;
}

Tensor weighted(const std::vector<Tensor>& outputs) {
  Tensor total = scalar(0, DType::f64);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] && is_floating(outputs[i].dtype()))
      total = add(total, sum(mul(cast(outputs[i], DType::f64), weights(outputs[i].size(), i))));
  return total;
}

}  // namespace

std::string gradcheck(const Function& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o) {
  std::vector<Tensor> args, leaves;
  std::vector<size_t> which;
  for (const Tensor& t : inputs) {
    Tensor a = t.defined() ? clone(detach(t)) : t;
    if (t.defined() && t.requires_grad()) {
      set_requires_grad(a);
      which.push_back(args.size());
      leaves.push_back(a);
    }
    args.push_back(a);
  }
  Tensor total = weighted(f(args));
  if (!total.requires_grad()) return "no output depends on any input that requires a gradient";
  std::vector<Tensor> grads = grad({total}, leaves, {}, {}, true);
  for (size_t k = 0; k < leaves.size(); ++k) {
    Tensor flat = args[which[k]];
    Tensor laid =
        empty_strided(Layout{flat.size(), flat.stride(), 0}, DType::f64);  // the gradient in the leaf's memory order
    fill(laid, 0);
    if (grads[k]) copy_(laid, grads[k]);
    for (int64_t i = 0; i < flat.numel(); ++i) {
      double* at = flat.data<double>() + i;  // clone() of a dense tensor is dense
      double kept = *at;
      auto value = [&](double x) {
        NoGrad off;
        *at = x;
        return item(weighted(f(args)));
      };
      double numeric = (value(kept + o.step) - value(kept - o.step)) / (2 * o.step);
      *at = kept;
      double analytic = laid.data<double>()[i];
      if (!(std::abs(numeric - analytic) <= o.absolute + o.relative * std::abs(numeric)))
        return fmt::format("input {} element {}: backward says {}, differences say {}", which[k], i, analytic, numeric);
    }
  }
  return {};
}

std::string gradgradcheck(const Function& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o) {
  auto gradients = [&](const std::vector<Tensor>& args) {
    std::vector<Tensor> leaves;
    for (const Tensor& a : args)
      if (a.defined() && a.requires_grad()) leaves.push_back(a);
    EnableGrad on;
    Tensor total = weighted(f(args));
    // A square makes the first gradient depend on the inputs also where f is linear.
    BackwardOptions create;
    create.create_graph = true;
    return grad({mul(total, total)}, leaves, {}, create, true);
  };
  GradcheckOptions loose = o;
  loose.absolute *= 10;
  return gradcheck(gradients, inputs, loose);
}

}  // namespace tenon
