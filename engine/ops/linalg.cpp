#include "engine/ops/linalg.h"

#include <fmt/format.h>
#include <cmath>

#include "core/error.h"
#include "engine/ops/create.h"
#include "engine/ops/join.h"
#include "engine/ops/linalg_batch.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon {

using linalg::transposed;

Tensor lstsq(const Tensor& a, const Tensor& b) {
  if (a.ndim() < 2 || b.ndim() < 2)
    throw Error(
        fmt::format("lstsq: sizes {} and {}; both have two axes at least", to_string(a.size()), to_string(b.size())));
  if (a.size(-2) >= a.size(-1)) {
    const Qr f = qr(a);
    return solve_triangular(f.r, matmul(f.q, b, true, false), true);
  }
  const Qr f = qr(transposed(a));  // A = R^T Q^T, and the shortest X lies in Q's range
  return matmul(f.q, solve_triangular(transposed(f.r), b, false));
}

Tensor pinv(const Tensor& a, double rcond) {
  const Svd f = svd(a);
  if (f.s.size(-1) == 0) return transposed(a);
  const Tensor large = gt(f.s, mul(amax(f.s, {-1}, true), rcond));
  const Tensor inverse = where(large, reciprocal(where(large, f.s, scalar_like(1, f.s))), scalar_like(0, f.s));
  return matmul(mul(transposed(f.vh), unsqueeze(inverse, -2)), transposed(f.u));
}

Tensor matrix_power(const Tensor& a, int64_t n) {
  linalg::need_matrix(a.meta(), true);
  if (n == 0) return add(mul(a, 0.0), linalg::identity(a.size(-1), a.dtype(), a.device()));
  Tensor square = n < 0 ? inv(a) : a, y;
  for (uint64_t k = n < 0 ? uint64_t{0} - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);;
       square = matmul(square, square)) {
    if (k & 1) y = y ? matmul(y, square) : square;
    if ((k >>= 1) == 0) return y;
  }
}

Tensor trace(const Tensor& a) {
  if (a.ndim() != 2) throw Error(fmt::format("trace: size {} is no matrix", to_string(a.size())));
  return sum(diagonal(a));
}

Tensor vector_norm(const Tensor& x, double order, const Dims& axes, bool keep) {
  if (std::isnan(order)) throw Error("vector_norm: the order is not a number");
  if (order == 0) return sum(cast(ne(x, 0), x.dtype()), axes, keep);
  if (order == 1) return sum(abs(x), axes, keep);
  if (order == INFINITY) return amax(abs(x), axes, keep);
  if (order == -INFINITY) return amin(abs(x), axes, keep);
  Tensor s = order == 2 ? sum(square(x), axes, keep) : sum(pow(abs(x), order), axes, keep);
  // At 0 the root has no slope; the norm's gradient there is 0.
  const Tensor none = eq(s, 0), safe = where(none, scalar_like(1, s), s);
  return where(none, order > 0 ? scalar_like(0, s) : s, order == 2 ? sqrt(safe) : pow(safe, 1 / order));
}

Tensor matrix_norm(const Tensor& a, MatrixNorm order, bool keep) {
  linalg::need_matrix(a.meta(), false);
  auto sums = [&](int axis, bool largest) {
    const Tensor s = sum(abs(a), {axis}, true);
    const Dims both{-2, -1};
    return largest ? amax(s, both, keep) : amin(s, both, keep);
  };
  auto of_values = [&](const Tensor& t) { return keep ? unsqueeze(t, -1) : t; };
  switch (order) {
    case MatrixNorm::fro:
      return vector_norm(a, 2, {-2, -1}, keep);
    case MatrixNorm::nuc:
      return of_values(sum(svd(a).s, {-1}, keep));
    case MatrixNorm::inf:
      return sums(-1, true);
    case MatrixNorm::minus_inf:
      return sums(-1, false);
    case MatrixNorm::one:
      return sums(-2, true);
    case MatrixNorm::minus_one:
      return sums(-2, false);
    case MatrixNorm::two:
      return of_values(amax(svd(a).s, {-1}, keep));
    case MatrixNorm::minus_two:
      break;
  }
  return of_values(amin(svd(a).s, {-1}, keep));
}

}  // namespace tenon
