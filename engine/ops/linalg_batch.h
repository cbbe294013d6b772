#pragma once
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/ops/create.h"
#include "engine/ops/dense.h"
#include "engine/ops/pointwise.h"

// What the ops on batches of matrices share.
namespace tenon::linalg {

inline DType need_matrix(const Meta& a, bool square) {
  const DType t = ops::common_float({&a});
  if (a.shape.n < 2) throw Error(fmt::format("size {} has no matrix: two axes at least", to_string(a.shape)));
  if (square && a.shape[a.shape.n - 1] != a.shape[a.shape.n - 2])
    throw Error(fmt::format("matrices of size {} are not square", to_string(a.shape)));
  return t;
}

inline int64_t matrices(const Shape& s) {
  int64_t n = 1;
  for (int i = 0; i < s.n - 2; ++i) n *= s[i];
  return n;
}

/// f(i) for every matrix of a batch; one of n rows is some n^3 of work.
template <class F>
void each(int64_t count, int64_t n, const F& f) {
  parallel_for(count, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, n * n * n)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

/// "matrix 3 of the batch" or "the matrix".
inline std::string which(int64_t i, const Shape& s) {
  return s.n == 2 ? "the matrix" : fmt::format("matrix {} of the batch", i);
}

/// LAPACK looks for NaN first and says so by a negative number.
inline void refuse_nan(int info, int64_t i, const Shape& s) {
  if (info < 0) throw Error(fmt::format("{} holds NaN", which(i, s)));
}

inline Tensor transposed(const Tensor& a) { return transpose(a, -1, -2); }

/// n x n with ones on the diagonal.
inline Tensor identity(int64_t n, DType t, Device device = {}) { return eye(n, -1, t, device); }

}  // namespace tenon::linalg
