#include "engine/kernels/gemm.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "engine/kernels/dnnl.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kTinyProduct = 32 * 1024;  // multiply-adds below which a library call costs more than the product
constexpr int64_t kTinyB = 4096;             // elements of B that fit the stack copy

// Note [Fused multiply-add]
// The build forbids contraction so that every form of a formula gives the same bits. Inside a product there is only this form,
// and the fused instruction halves its cost, so it is asked for by name.
inline float fma_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma_(double a, double b, double c) { return __builtin_fma(a, b, c); }

/// Rows [m0, m1) of C by accumulating over k in order, W columns at a time in registers. B is row-major here.
template <class T, int W, int R>
inline void tile(int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c, int64_t ldc, bool add) {
  T acc[R][W];
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < W; ++j) acc[r][j] = add ? c[r * ldc + j] : T(0);
  for (int64_t p = 0; p < k; ++p) {
    const T* row = b + p * ldb;
    for (int r = 0; r < R; ++r) {
      T x = a[r * a_row + p * a_col];
      for (int j = 0; j < W; ++j) acc[r][j] = fma_(x, row[j], acc[r][j]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < W; ++j) c[r * ldc + j] = acc[r][j];
}

template <class T, int R>
inline void rows(int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c, int64_t ldc, bool add) {
  constexpr int W = 64 / sizeof(T);
  int64_t j = 0;
  for (; j + W <= n; j += W) tile<T, W, R>(k, a, a_row, a_col, b + j, ldb, c + j, ldc, add);
  for (; j + 4 <= n; j += 4) tile<T, 4, R>(k, a, a_row, a_col, b + j, ldb, c + j, ldc, add);
  for (; j < n; ++j) tile<T, 1, R>(k, a, a_row, a_col, b + j, ldb, c + j, ldc, add);
}

template <class T>
void plain(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c, int64_t ldc, bool add) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) rows<T, 4>(n, k, a + i * a_row, a_row, a_col, b, ldb, c + i * ldc, ldc, add);
  for (; i < m; ++i) rows<T, 1>(n, k, a + i * a_row, a_row, a_col, b, ldb, c + i * ldc, ldc, add);
}

template <class T>
void transpose_b(int64_t n, int64_t k, const T* b, int64_t ldb, T* out) {
  for (int64_t p = 0; p < k; ++p)
    for (int64_t j = 0; j < n; ++j) out[p * n + j] = b[j * ldb + p];
}

/// Dot products along contiguous rows, for a transposed B too large to copy; eight partial sums, added in a fixed order.
template <class T>
T dot(int64_t k, const T* a, int64_t a_col, const T* b) {
  T acc[8] = {};
  int64_t p = 0;
  for (; p + 8 <= k; p += 8)
    for (int j = 0; j < 8; ++j) acc[j] = fma_(a[(p + j) * a_col], b[p + j], acc[j]);
  for (int j = 0; p < k; ++p, ++j) acc[j] = fma_(a[p * a_col], b[p], acc[j]);
  return ((acc[0] + acc[4]) + (acc[2] + acc[6])) + ((acc[1] + acc[5]) + (acc[3] + acc[7]));
}

template <class T>
void small(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc, bool add) {
  int64_t a_row = ta ? 1 : lda, a_col = ta ? lda : 1;
  if (!tb) return plain(m, n, k, a, a_row, a_col, b, ldb, c, ldc, add);
  if (n * k <= kTinyB) {
    T copy[kTinyB];
    transpose_b(n, k, b, ldb, copy);
    return plain(m, n, k, a, a_row, a_col, copy, n, c, ldc, add);
  }
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T sum = dot(k, a + i * a_row, a_col, b + j * ldb);
      c[i * ldc + j] = add ? c[i * ldc + j] + sum : sum;
    }
}

/// How many rows (columns) of a large product one piece gets.
int64_t cut(int64_t along, int64_t m, int64_t n, int64_t k) {
  double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  int64_t pieces = std::clamp<int64_t>(static_cast<int64_t>(flops / 6e6), 1, 64);
  int64_t grain = (along + pieces - 1) / pieces;
  int64_t step = along >= 1024 ? 128 : 32;  // thin pieces pack the other operand too often
  return (grain + step - 1) / step * step;
}

template <class T>
void clear(int64_t m, int64_t n, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) std::memset(c + i * ldc, 0, static_cast<size_t>(n) * sizeof(T));
}

template <class T, class Product>
void in_pieces(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
               const Product& product) {
  if (m >= n)
    parallel_for(m, cut(m, m, n, k), [&](int64_t i, int64_t e) { product(e - i, n, a + (ta ? i : i * lda), b, c + i * ldc); });
  else
    parallel_for(n, cut(n, m, n, k), [&](int64_t j, int64_t e) { product(m, e - j, a, b + (tb ? j * ldb : j), c + j); });
}

}  // namespace

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc,
          float beta) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (beta == 0) clear(m, n, c, ldc);
    return;
  }
  if (m * n * k < kTinyProduct) return small(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, beta != 0);
  in_pieces(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, [&](int64_t pm, int64_t pn, const float* pa, const float* pb, float* pc) {
    dnnl_gemm(ta, tb, pm, pn, k, pa, lda, pb, ldb, beta, pc, ldc);
  });
}

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb, double* c,
          int64_t ldc, double beta) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (beta == 0) clear(m, n, c, ldc);
    return;
  }
  if (m * n * k < kTinyProduct) return small(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, beta != 0);
  in_pieces(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, [&](int64_t pm, int64_t pn, const double* pa, const double* pb, double* pc) {
    small(ta, tb, pm, pn, k, pa, lda, pb, ldb, pc, ldc, beta != 0);
  });
}

}  // namespace tenon::kernels
