#include "engine/ops/statistics.h"

#include <fmt/format.h>

#include <limits>

#include "core/backend.h"
#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/create.h"
#include "engine/ops/gather.h"
#include "engine/ops/index.h"
#include "engine/ops/join.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/sort.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

Dims all_axes(const Tensor& x, const Dims& axes) {
  if (axes.n) return axes;
  Dims all;
  for (int i = 0; i < x.ndim(); ++i) all.push_back(i);
  return all;
}

int64_t count_over(const Tensor& x, const Dims& axes) {
  int64_t n = 1;
  for (int64_t a : all_axes(x, axes)) n *= x.size(wrap_axis(a, x.ndim()));
  return n;
}

/// A result whose axes were kept, as asked for.
Tensor dropped(const Tensor& kept, const Tensor& x, const Dims& axes, bool keep) {
  if (keep) return kept;
  uint32_t mask = 0;
  for (int64_t a : all_axes(x, axes)) mask |= 1u << wrap_axis(a, x.ndim());
  Shape s;
  for (int i = 0; i < kept.ndim(); ++i)
    if (!(mask >> i & 1u)) s.push_back(kept.size(i));
  return reshape(kept, s);
}

double largest(DType t) {
  switch (t) {
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    default:
      return std::numeric_limits<float>::max();
  }
}

}  // namespace

VarMean var_mean(const Tensor& x, const Dims& axes, double correction, bool keep) {
  if (!is_floating(x.dtype()))
    throw Error(fmt::format("the variance of {} values", name(x.dtype())), "cast to f32 first");
  Tensor m = mean(x, axes, true);
  Tensor squares = sum(square(sub(x, m)), axes, keep);
  double divisor = std::max(0.0, static_cast<double>(count_over(x, axes)) - correction);
  return {div(squares, divisor), dropped(m, x, axes, keep)};
}
Tensor var(const Tensor& x, const Dims& axes, double correction, bool keep) {
  return var_mean(x, axes, correction, keep).var;
}
Tensor stddev(const Tensor& x, const Dims& axes, double correction, bool keep) {
  return sqrt(var(x, axes, correction, keep));
}

Tensor logsumexp(const Tensor& x, const Dims& axes, bool keep) {
  Tensor top = detach(amax(x, axes, true));
  top = where(isfinite(top), top, zeros_like(top));
  Tensor s = log(sum(exp(sub(x, top)), axes, true));
  return dropped(add(s, top), x, axes, keep);
}

Tensor norm(const Tensor& x, double p, const Dims& axes, bool keep) {
  Tensor a = abs(x);
  if (p == INFINITY) return amax(a, axes, keep);
  if (p == -INFINITY) return amin(a, axes, keep);
  if (p == 0) return sum(cast(ne(a, 0), x.dtype()), axes, keep);
  if (p == 1) return sum(a, axes, keep);
  Tensor s = p == 2 ? sum(square(x), axes, keep) : sum(pow(a, p), axes, keep);
  // The root's slope at 0 is infinite; the norm's subgradient there is 0.
  Tensor zero = eq(s, 0), safe = where(zero, ones_like(s), s);
  return where(zero, zeros_like(s), p == 2 ? sqrt(safe) : pow(safe, 1 / p));
}

Tensor any(const Tensor& x, const Dims& axes, bool keep) { return gt(sum(ne(x, 0), axes, keep), 0); }
Tensor all(const Tensor& x, const Dims& axes, bool keep) { return eq(sum(eq(x, 0), axes, keep), 0); }
Tensor count_nonzero(const Tensor& x, const Dims& axes) { return sum(ne(x, 0), axes); }

Tensor nansum(const Tensor& x, const Dims& axes, bool keep) {
  return is_floating(x.dtype()) ? sum(where(isnan(x), zeros_like(x), x), axes, keep) : sum(x, axes, keep);
}
Tensor nanmean(const Tensor& x, const Dims& axes, bool keep) {
  return div(nansum(x, axes, keep), cast(sum(logical_not(isnan(x)), axes, keep), x.dtype()));
}

Tensor quantile(const Tensor& x, const Tensor& q, int axis, bool keep) {
  if (!is_floating(x.dtype())) throw Error(fmt::format("quantiles of {} values", name(x.dtype())), "cast to f32 first");
  if (q.ndim() > 1)
    throw Error(fmt::format("quantile: the shares have size {}; they must have one axis at most", to_string(q.size())));
  if (x.ndim() == 0) throw Error("quantile: a tensor without axes");
  int a = wrap_axis(axis, x.ndim());
  int64_t n = x.size(a);
  if (n == 0) throw Error("quantile: of no elements");
  const Tensor shares = to_host(contiguous(cast(detach(q), DType::f64)));
  Tensor sorted = movedim(sort(x, a).values, {a}, {-1});
  Tensor spoiled = any(isnan(sorted), {-1}, true);
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < shares.numel(); ++i) {
    double share = shares.data<double>()[i];
    if (!(share >= 0 && share <= 1)) throw Error(fmt::format("quantile: the share {} is not between 0 and 1", share));
    double at = share * static_cast<double>(n - 1);
    auto below = static_cast<int64_t>(at);
    Tensor low = narrow(sorted, -1, below, 1), high = narrow(sorted, -1, std::min(below + 1, n - 1), 1);
    Tensor value = lerp(low, high, at - static_cast<double>(below));
    value = movedim(where(spoiled, full_like(value, NAN), value), {-1}, {a});
    rows.push_back(keep ? value : squeeze(value, a));
  }
  return q.ndim() == 0 ? rows[0] : stack(rows, 0);
}

Tensor cov(const Tensor& x, double correction) {
  if (x.ndim() > 2)
    throw Error(fmt::format("cov: a tensor of size {} has no rows of observations", to_string(x.size())));
  Tensor rows = x.ndim() == 2 ? x : reshape(x, {1, x.numel()});
  Tensor centred = sub(rows, mean(rows, {1}, true));
  Tensor c =
      div(matmul(centred, transpose(centred, 0, 1)), std::max(0.0, static_cast<double>(rows.size(1)) - correction));
  return x.ndim() == 2 ? c : reshape(c, {});
}
Tensor corrcoef(const Tensor& x) {
  Tensor c = cov(x);
  if (c.ndim() == 0) return div(c, c);
  Tensor s = sqrt(diagonal(c));
  return clamp(div(div(c, unsqueeze(s, 1)), s), -1, 1);
}

Tensor nan_to_num(const Tensor& x, double nan, double posinf, double neginf) {
  if (!is_floating(x.dtype())) return x;
  double top = largest(x.dtype());
  Tensor y = where(isnan(x), full_like(x, nan), x);
  y = where(eq(x, INFINITY), full_like(x, posinf == INFINITY ? top : posinf), y);
  return where(eq(x, -INFINITY), full_like(x, neginf == -INFINITY ? -top : neginf), y);
}

}  // namespace tenon
