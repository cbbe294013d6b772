#include "engine/nn/parametrize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/backend.h"
#include "core/error.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/checkpoint.h"
#include "engine/ops/create.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon::nn {
namespace {

Tensor parameter(Module& m, const std::string& name) {
  Tensor t = m.own(name);
  if (!t) throw Error(m.describe() + " has no parameter \"" + name + "\"");
  NoGrad no_grad;
  return clone(detach(t), Order::contiguous);
}

/// Norms over all axes but `dim`, kept with size 1.
Tensor norm_except(const Tensor& v, int dim) {
  Dims axes;
  for (int i = 0; i < v.ndim(); ++i)
    if (i != dim) axes.push_back(i);
  if (axes.n == 0) return abs(v);
  return sqrt(sum(square(v), axes, dim >= 0));
}

/// The matrix whose rows are axis `dim`.
Tensor as_matrix(const Tensor& w, int dim) {
  Tensor t = w;
  if (dim != 0) {
    Dims order{dim};
    for (int i = 0; i < w.ndim(); ++i)
      if (i != dim) order.push_back(i);
    t = permute(w, order);
  }
  return reshape(t, {t.size(0), t.size(0) > 0 ? t.numel() / t.size(0) : 0});
}
Tensor unit(const Tensor& v, double eps) { return div(v, maximum(sqrt(sum(square(v))), scalar_like(eps, v))); }

}  // namespace

void weight_norm(Module& m, const std::string& name, int dim) {
  Tensor v = parameter(m, name);
  if (dim != -1) dim = wrap_axis(dim, v.ndim());
  Tensor g;
  {
    NoGrad no_grad;
    g = norm_except(v, dim);
  }
  m.reparametrize(name, {{name + "_g", g}, {name + "_v", v}}, {},
                  [g, v, dim](bool) { return mul(v, div(g, norm_except(v, dim))); });
}

void spectral_norm(Module& m, const std::string& name, int64_t iterations, double eps, int dim, uint64_t seed) {
  Tensor w = parameter(m, name), u, v;
  dim = wrap_axis(dim, w.ndim());
  if (iterations < 1) throw Error("spectral_norm: at least one power iteration is needed");
  auto follow = [=](const Tensor& from, Tensor& left, Tensor& right) {
    NoGrad no_grad;
    Tensor matrix = as_matrix(detach(from), dim);
    for (int64_t i = 0; i < iterations; ++i) {
      copy_(right, reshape(unit(matmul(matrix, unsqueeze(left, 1), true, false), eps), right.size()));
      copy_(left, reshape(unit(matmul(matrix, unsqueeze(right, 1)), eps), left.size()));
    }
  };
  {
    NoGrad no_grad;
    int64_t rows = as_matrix(w, dim).size(0), cols = as_matrix(w, dim).size(1);
    CategoryScope buffers(Category::buffer);
    auto start = [&](int64_t n, const char* which) {
      Tensor t = empty({n}, w.dtype());
      Philox random{seed, stream_of((m.path() + "." + name + which).c_str())};
      for (int64_t i = 0; i < n; ++i) {
        double x = random.normal(static_cast<uint64_t>(i));
        if (w.dtype() == DType::f64)
          t.data<double>()[i] = x;
        else
          t.data<float>()[i] = static_cast<float>(x);
      }
      return clone(unit(to_device(t, w.device()), eps));
    };
    u = start(rows, "_u");
    v = start(cols, "_v");
    // PyTorch begins with vectors that are settled.
    for (int i = 0; i < 15; ++i) follow(w, u, v);
  }
  m.reparametrize(name, {{name + "_orig", w}}, {{name + "_u", u}, {name + "_v", v}}, [=](bool training) mutable {
    if (training && !recomputing()) follow(w, u, v);
    Tensor left = clone(u), right = clone(v);  // later iterations must not change what this pass saves
    return div(w, sum(mul(left, reshape(matmul(as_matrix(w, dim), unsqueeze(right, 1)), left.size()))));
  });
}

int64_t Amount::of(int64_t left) const {
  if (!(value >= 0)) throw Error("an amount of " + std::to_string(value) + " cannot be pruned");
  auto n =
      static_cast<int64_t>(value <= 1 && value != std::floor(value) ? std::llround(value * static_cast<double>(left))
                           : value == 1                             ? left
                                                                    : std::llround(value));
  if (value > 1 && n > left)
    throw Error("of " + std::to_string(left) + " that are left " + std::to_string(n) + " cannot be pruned");
  return std::min(n, left);
}

namespace {

double at(const Tensor& t, int64_t i) { return storage_value(t, t.offset() + i); }
/// Of a tensor on the host.
void set_zero(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::f64)
    t.data<double>()[i] = 0;
  else
    t.data<float>()[i] = 0;
}
/// After writes to what to_host(mask) gave.
void put_back(const Tensor& mask, const Tensor& marks) {
  if (!marks.same(mask)) return copy_(mask, marks);
  mask.storage()->changed();
}

/// The parameter as it was and its mask, which is made on the first call.
std::pair<Tensor, Tensor> masked(Module& m, const std::string& name) {
  Tensor mask = m.own(name + "_mask");
  if (!mask) {
    Tensor w = parameter(m, name);
    {
      CategoryScope buffers(Category::buffer);
      mask = ones_like(w);
    }
    m.reparametrize(name, {{name + "_orig", w}}, {{name + "_mask", mask}},
                    [w, mask](bool) { return mul(w, clone(mask)); });
  }
  return {detach(m.own(name + "_orig")), mask};
}

/// Slices along an axis: the element with the number `inner` of slice `s`.
struct Slices {
  int64_t count, stride, length;
  Slices(const Tensor& t, int dim) : count(t.size(dim)), stride(1), length(0) {
    for (int i = dim + 1; i < t.ndim(); ++i) stride *= t.size(i);
    length = count > 0 ? t.numel() / count : 0;
  }
  int64_t element(int64_t s, int64_t inner) const { return (inner / stride * count + s) * stride + inner % stride; }
};

/// Sets the mask of the `amount` units of least importance to 0; equal ones by their number. A unit that is gone
/// already is left alone.
template <class Gone, class Importance, class Drop>
void drop_least(int64_t units, Amount amount, const Gone& gone, const Importance& importance, const Drop& drop) {
  std::vector<std::pair<double, int64_t>> left;
  for (int64_t i = 0; i < units; ++i)
    if (!gone(i)) left.emplace_back(importance(i), i);
  std::sort(left.begin(), left.end());
  int64_t n = amount.of(static_cast<int64_t>(left.size()));
  for (int64_t k = 0; k < n; ++k) drop(left[static_cast<size_t>(k)].second);
}
void elements(Module& m, const std::string& name, Amount amount,
              const std::function<double(const Tensor&, int64_t)>& importance) {
  auto [w, mask] = masked(m, name);
  const Tensor values = to_host(w), marks = to_host(mask);
  drop_least(
      w.numel(), amount, [&](int64_t i) { return at(marks, i) == 0; }, [&](int64_t i) { return importance(values, i); },
      [&](int64_t i) { set_zero(marks, i); });
  put_back(mask, marks);
}
void slices(Module& m, const std::string& name, Amount amount, int dim,
            const std::function<double(const Tensor&, const Slices&, int64_t)>& importance) {
  auto [w, mask] = masked(m, name);
  Slices s(w, wrap_axis(dim, w.ndim()));
  const Tensor values = to_host(w), marks = to_host(mask);
  auto gone = [&](int64_t i) {
    for (int64_t k = 0; k < s.length; ++k)
      if (at(marks, s.element(i, k)) != 0) return false;
    return true;
  };
  drop_least(
      s.count, amount, gone, [&](int64_t i) { return importance(values, s, i); },
      [&](int64_t i) {
        for (int64_t k = 0; k < s.length; ++k) set_zero(marks, s.element(i, k));
      });
  put_back(mask, marks);
}

}  // namespace

void prune_l1(Module& m, const std::string& name, Amount amount) {
  elements(m, name, amount, [](const Tensor& w, int64_t i) { return std::abs(at(w, i)); });
}
void prune_random(Module& m, const std::string& name, Amount amount, uint64_t seed) {
  Philox random{seed, stream_of((m.path() + "." + name + ".prune").c_str())};
  elements(m, name, amount,
           [random](const Tensor&, int64_t i) { return random.uniform_double(static_cast<uint64_t>(i)); });
}
void prune_ln_structured(Module& m, const std::string& name, Amount amount, double n, int dim) {
  slices(m, name, amount, dim, [n](const Tensor& w, const Slices& s, int64_t i) {
    double total = 0;
    for (int64_t k = 0; k < s.length; ++k) {
      double v = std::abs(at(w, s.element(i, k)));
      total = std::isinf(n) ? std::max(total, v) : total + std::pow(v, n);
    }
    return total;
  });
}
void prune_random_structured(Module& m, const std::string& name, Amount amount, int dim, uint64_t seed) {
  Philox random{seed, stream_of((m.path() + "." + name + ".prune").c_str())};
  slices(m, name, amount, dim,
         [random](const Tensor&, const Slices&, int64_t i) { return random.uniform_double(static_cast<uint64_t>(i)); });
}
void prune_mask(Module& m, const std::string& name, const Tensor& given) {
  Tensor t = m.own(name);
  if (!t) t = m.own(name + "_orig");
  if (!t || !(t.size() == given.size()))
    throw Error("a mask of size " + to_string(given.size()) + " does not fit \"" + name + "\" of " + m.describe());
  auto [w, mask] = masked(m, name);
  NoGrad no_grad;
  copy_(mask, mul(mask, cast(ne(given, 0), mask.dtype())));
}

}  // namespace tenon::nn
