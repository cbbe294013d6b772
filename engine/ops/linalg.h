#pragma once
#include "core/tensor.h"
#include "engine/ops/products.h"

// Linear algebra on the last two axes, all others being a batch; f32 and f64. The names are torch.linalg's. Computed by
// LAPACK, one matrix on one thread, so the bits never depend on the number of threads. A matrix that is singular (or
// not positive definite) is an Error that says which one of the batch. Gradients: Giles, Collected matrix derivative
// results for forward and reverse mode AD (2008), and for factors PyTorch's; they are defined where the factors are
// (distinct eigenvalues, distinct singular values).
namespace tenon {

/// Lower L with L L^T = A (upper: U = L^T). A is taken as symmetric: the mean of it and its transpose is factored.
Tensor cholesky(const Tensor& a, bool upper = false);
/// X with A X = B from A's Cholesky factor.
Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper = false);
/// X with A X = B, A [.., n, n], B [.., n, k] or [.., n]; batch axes broadcast.
Tensor solve(const Tensor& a, const Tensor& b);
/// X with A X = B (or X A = B where not `left`) for a triangular A, of which only that triangle is read.
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left = true, bool unitriangular = false);
Tensor inv(const Tensor& a);
Tensor det(const Tensor& a);
struct SlogDet {
  Tensor sign, logabsdet;
};
SlogDet slogdet(const Tensor& a);

struct Qr {
  Tensor q, r;
};
/// Reduced: A [.., m, n] = Q [.., m, k] R [.., k, n], k = min(m, n).
Qr qr(const Tensor& a);
struct Eigh {
  Tensor values, vectors;
};
/// A = V diag(w) V^T for symmetric A (the mean of it and its transpose), w ascending.
Eigh eigh(const Tensor& a);
struct Svd {
  Tensor u, s, vh;
};
/// Reduced: A = U diag(s) Vh, s descending.
Svd svd(const Tensor& a);
/// X with the least |A X - B| (the shortest of several where A is wide); A has full rank.
Tensor lstsq(const Tensor& a, const Tensor& b);
/// Moore and Penrose's inverse; singular values below rcond * the largest count as 0.
Tensor pinv(const Tensor& a, double rcond = 1e-15);
/// A^n; negative n by the inverse.
Tensor matrix_power(const Tensor& a, int64_t n);
Tensor trace(const Tensor& a);

/// (sum |x|^order)^(1/order) over axes (none: all); order may be 0 (how many are not 0), inf or -inf.
Tensor vector_norm(const Tensor& x, double order = 2, const Dims& axes = {}, bool keep = false);
enum class MatrixNorm : uint8_t { fro, nuc, inf, minus_inf, one, minus_one, two, minus_two };
Tensor matrix_norm(const Tensor& a, MatrixNorm order = MatrixNorm::fro, bool keep = false);

}  // namespace tenon
