#pragma once
#include <cstdint>

namespace tenon::kernels {

// Products on the calling thread that a library's call, or the packing of a side, would take longer than; see gemm()
// for what they are given. f32 and f64.

/// What the sums of C begin with: zeros, or the values at `at`, where each row's lie `row` behind those of the one
/// above.
template <class T>
struct Start {
  const T* at = nullptr;
  int64_t row = 0;
  Start from(int64_t i, int64_t j) const { return at ? Start{at + i * row + j, row} : *this; }
  T one(int64_t r) const { return at ? at[r * row] : T(0); }
};

/// C [m, n] = op(A) op(B) + what it starts with, of few elements.
template <class T>
void small_product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
                   T* c, int64_t ldc, Start<T> start);

/// C [m, n] = A B^T + what it starts with, of few rows: each element is a sum along a row of A and one of B.
template <class T>
void product_of_dots(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
                     int64_t ldc, Start<T> start);

/// One row: C [n] = A B, or added to C, where the elements of A lie a_step apart. B is read once, row by row. The bits
/// of tiled_gemm().
template <class T>
void row_product(int64_t n, int64_t k, const T* a, int64_t a_step, const T* b, int64_t ldb, T* c, bool add);

}  // namespace tenon::kernels
