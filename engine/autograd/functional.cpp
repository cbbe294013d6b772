#include "engine/autograd/functional.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

std::vector<Tensor> fresh_leaves(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& t : inputs) {
    Tensor leaf = detach(t);
    if (is_floating(t.dtype())) set_requires_grad(leaf);
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

/// Gradients with zeros where nothing depended on an input.
std::vector<Tensor> gradients(const Tensor& y, const std::vector<Tensor>& x, const Tensor& v, bool create) {
  BackwardOptions o;
  o.retain_graph = true;
  o.create_graph = create;
  if (!y.requires_grad()) {
    std::vector<Tensor> none;
    for (const Tensor& t : x) none.push_back(zeros_like(t));
    return none;
  }
  std::vector<Tensor> g = grad({y}, x, {v}, o, true);
  for (size_t i = 0; i < g.size(); ++i)
    if (!g[i]) g[i] = zeros_like(x[i]);
  return g;
}

std::vector<Tensor> detached(std::vector<Tensor> all) {
  for (Tensor& t : all) t = detach(t);
  return all;
}

Tensor unit(const Tensor& like, int64_t at) {
  Tensor e = zeros_like(like);
  Tensor flat = view(e, {-1});
  fill(select(flat, 0, at), 1);
  return e;
}

Tensor dot_all(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) throw Error(fmt::format("{} vectors were given for {} inputs", b.size(), a.size()));
  Tensor total;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i].size() == b[i].size()))
      throw Error(
          fmt::format("vector {} has size {}, its input {}", i, to_string(b[i].size()), to_string(a[i].size())));
    Tensor d = sum(mul(a[i], b[i]));
    total = total ? add(total, d) : d;
  }
  return total;
}

/// Rows written one after the other into [count, size...].
void put_row(const Tensor& rows, int64_t i, const Tensor& value) {
  NoGrad no_grad;
  copy_(select(rows, 0, i), value);
}

Shape joined(const Shape& a, const Shape& b) {
  Shape s = a;
  for (int64_t n : b) s.push_back(n);
  return s;
}

}  // namespace

std::vector<Tensor> vjp(const ScalarFunction& f, const std::vector<Tensor>& inputs, const Tensor& v) {
  EnableGrad record;
  std::vector<Tensor> x = fresh_leaves(inputs);
  return detached(gradients(f(x), x, v, false));
}

Tensor jvp(const ScalarFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& vectors) {
  EnableGrad record;
  std::vector<Tensor> x = fresh_leaves(inputs);
  Tensor y = f(x), u = ones_like(y);
  set_requires_grad(u);
  return detach(gradients(dot_all(gradients(y, x, u, true), vectors), {u}, {}, false)[0]);
}

Tensor jacobian(const std::function<Tensor(const Tensor&)>& f, const Tensor& at) {
  EnableGrad record;
  Tensor x = fresh_leaves({at})[0], y = f(x);
  Tensor rows = empty(joined({y.numel()}, x.size()), y.dtype(), x.device());
  for (int64_t i = 0; i < y.numel(); ++i) put_row(rows, i, gradients(y, {x}, unit(y, i), false)[0]);
  return view(rows, joined(y.size(), x.size()));
}

std::vector<Tensor> hessian_vector_product(const ScalarFunction& f, const std::vector<Tensor>& inputs,
                                           const std::vector<Tensor>& vectors) {
  EnableGrad record;
  std::vector<Tensor> x = fresh_leaves(inputs);
  return detached(gradients(dot_all(gradients(f(x), x, {}, true), vectors), x, {}, false));
}

Tensor hessian(const std::function<Tensor(const Tensor&)>& f, const Tensor& at) {
  EnableGrad record;
  Tensor x = fresh_leaves({at})[0];
  Tensor first = gradients(f(x), {x}, {}, true)[0];
  Tensor rows = empty(joined({x.numel()}, x.size()), x.dtype(), x.device());
  for (int64_t i = 0; i < x.numel(); ++i) put_row(rows, i, gradients(first, {x}, unit(first, i), false)[0]);
  return view(rows, joined(x.size(), x.size()));
}

std::vector<Tensor> per_sample_gradients(const std::function<Tensor(int64_t)>& loss, int64_t samples,
                                         const std::vector<Tensor>& parameters) {
  EnableGrad record;
  std::vector<Tensor> all;
  for (const Tensor& p : parameters) all.push_back(empty(joined({samples}, p.size()), p.dtype(), p.device()));
  for (int64_t i = 0; i < samples; ++i) {
    std::vector<Tensor> g = gradients(loss(i), parameters, {}, false);
    for (size_t k = 0; k < parameters.size(); ++k) put_row(all[k], i, g[k]);
  }
  return all;
}

}  // namespace tenon
