#include "engine/kernels/gemm.h"

#include <algorithm>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "core/parallel.h"
#include "engine/kernels/dnnl.h"
#include "engine/kernels/dnnl_matmul.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kTinyProduct = 32 * 1024;  // multiply-adds below which a library call costs more than the product
constexpr int64_t kTinyB = 4096;             // elements of B that fit the stack copy
// Up to so many products oneDNN's gemm and its matmul both add up in one chain, to the same bits. Beyond, gemm is as
// fast for a transposed right side.
constexpr int64_t kShortSum = 384;

// Note [Fused multiply-add]
// The build forbids contraction so that every form of a formula gives the same bits. Inside a product there is only
// this form, and the fused instruction halves its cost, so it is asked for by name. Lanes and scalars round alike.
inline float fma_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma_(double a, double b, double c) { return __builtin_fma(a, b, c); }

#if defined(__AVX2__)
void transpose_8x8(const float* from, int64_t from_row, float* to, int64_t to_row) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_row);
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_row, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_row, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}
#endif

/// 32 bytes of lanes.
template <class T>
struct Lanes;
#if defined(__AVX2__) && defined(__FMA__)
template <>
struct Lanes<float> {
  static constexpr int count = 8;
  __m256 v;
  static Lanes zero() { return {_mm256_setzero_ps()}; }
  static Lanes load(const float* p) { return {_mm256_loadu_ps(p)}; }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  void add_product(float x, const Lanes& y) { v = _mm256_fmadd_ps(_mm256_set1_ps(x), y.v, v); }
};
template <>
struct Lanes<double> {
  static constexpr int count = 4;
  __m256d v;
  static Lanes zero() { return {_mm256_setzero_pd()}; }
  static Lanes load(const double* p) { return {_mm256_loadu_pd(p)}; }
  void store(double* p) const { _mm256_storeu_pd(p, v); }
  void add_product(double x, const Lanes& y) { v = _mm256_fmadd_pd(_mm256_set1_pd(x), y.v, v); }
};
#else
template <class T>
struct Lanes {
  static constexpr int count = 32 / sizeof(T);
  T v[count];
  static Lanes zero() { return {}; }
  static Lanes load(const T* p) {
    Lanes l;
    std::copy_n(p, count, l.v);
    return l;
  }
  void store(T* p) const { std::copy_n(v, count, p); }
  void add_product(T x, const Lanes& y) {
    for (int i = 0; i < count; ++i) v[i] = fma_(x, y.v[i], v[i]);
  }
};
#endif

/// R rows and W lanes of C, accumulated over k in order, in registers. B is row-major here.
template <class T, int W, int R>
inline void tile(int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c, int64_t ldc,
                 bool add) {
  using L = Lanes<T>;
  L acc[R][W];
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < W; ++j) acc[r][j] = add ? L::load(c + r * ldc + j * L::count) : L::zero();
  for (int64_t p = 0; p < k; ++p) {
    L row[W];
    for (int j = 0; j < W; ++j) row[j] = L::load(b + p * ldb + j * L::count);
    for (int r = 0; r < R; ++r) {
      T x = a[r * a_row + p * a_col];
      for (int j = 0; j < W; ++j) acc[r][j].add_product(x, row[j]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < W; ++j) acc[r][j].store(c + r * ldc + j * L::count);
}

/// R rows of one column.
template <class T, int R>
inline void column(int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c, int64_t ldc,
                   bool add) {
  T acc[R];
  for (int r = 0; r < R; ++r) acc[r] = add ? c[r * ldc] : T(0);
  for (int64_t p = 0; p < k; ++p)
    for (int r = 0; r < R; ++r) acc[r] = fma_(a[r * a_row + p * a_col], b[p * ldb], acc[r]);
  for (int r = 0; r < R; ++r) c[r * ldc] = acc[r];
}

template <class T, int R>
inline void rows(int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c,
                 int64_t ldc, bool add) {
  constexpr int L = Lanes<T>::count;
  int64_t j = 0;
  for (; j + 2 * L <= n; j += 2 * L) tile<T, 2, R>(k, a, a_row, a_col, b + j, ldb, c + j, ldc, add);
  if (j + L <= n) {
    tile<T, 1, R>(k, a, a_row, a_col, b + j, ldb, c + j, ldc, add);
    j += L;
  }
  for (; j < n; ++j) column<T, R>(k, a, a_row, a_col, b + j, ldb, c + j, ldc, add);
}

template <class T>
void plain(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c,
           int64_t ldc, bool add) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) rows<T, 4>(n, k, a + i * a_row, a_row, a_col, b, ldb, c + i * ldc, ldc, add);
  for (; i < m; ++i) rows<T, 1>(n, k, a + i * a_row, a_row, a_col, b, ldb, c + i * ldc, ldc, add);
}

/// to[p * to_ld + j] = b[j * ldb + p], a block at a time so that neither side strides far.
template <class T>
void transpose_blocks(int64_t n, int64_t k, const T* b, int64_t ldb, T* out, int64_t to_ld) {
  constexpr int64_t B = 8;
  for (int64_t j0 = 0; j0 < n; j0 += B)
    for (int64_t p0 = 0; p0 < k; p0 += B) {
      int64_t jn = std::min(B, n - j0), pn = std::min(B, k - p0);
      const T* from = b + j0 * ldb + p0;
      T* to = out + p0 * to_ld + j0;
#if defined(__AVX2__)
      if constexpr (sizeof(T) == 4) {
        if (jn == B && pn == B) {
          transpose_8x8(from, ldb, to, to_ld);
          continue;
        }
      }
#endif
      for (int64_t p = 0; p < pn; ++p)
        for (int64_t j = 0; j < jn; ++j) to[p * to_ld + j] = from[j * ldb + p];
    }
}

/// Dot products along contiguous rows, for a transposed B too large to copy; eight partial sums, added in a fixed
/// order.
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
void small(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
           int64_t ldc, bool add) {
  int64_t a_row = ta ? 1 : lda, a_col = ta ? lda : 1;
  if (!tb) return plain(m, n, k, a, a_row, a_col, b, ldb, c, ldc, add);
  if (n * k <= kTinyB) {
    T copy[kTinyB];
    transpose_blocks(n, k, b, ldb, copy, n);
    return plain(m, n, k, a, a_row, a_col, copy, n, c, ldc, add);
  }
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T sum = dot(k, a + i * a_row, a_col, b + j * ldb);
      c[i * ldc + j] = add ? c[i * ldc + j] + sum : sum;
    }
}

/// Rows and columns of one piece of a large product: about 12 MFLOP, at most 512 x 512, halved along the longer side,
/// for every piece copies its share of both operands into the library's own layout.
void cut(int64_t m, int64_t n, int64_t k, int64_t& rows, int64_t& cols) {
  double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(flops / 12e6), 1, 16);
  rows = std::min<int64_t>(m, 512);
  cols = std::min<int64_t>(n, 512);
  while (((m + rows - 1) / rows) * ((n + cols - 1) / cols) < wanted && std::max(rows, cols) > 32) {
    int64_t& longer = rows > cols ? rows : cols;
    longer = (longer / 2 + 31) / 32 * 32;
  }
}

template <class T>
void clear(int64_t m, int64_t n, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) std::memset(c + i * ldc, 0, static_cast<size_t>(n) * sizeof(T));
}

template <class T, class Product>
void in_pieces(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
               T* c, int64_t ldc, const Product& product) {
  int64_t rows, cols;
  cut(m, n, k, rows, cols);
  int64_t across = (n + cols - 1) / cols, down = (m + rows - 1) / rows;
  parallel_for(down * across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t i = p / across * rows, j = p % across * cols;
      product(std::min(rows, m - i), std::min(cols, n - j), a + (ta ? i : i * lda), b + (tb ? j * ldb : j),
              c + i * ldc + j);
    }
  });
}

}  // namespace

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
          float* c, int64_t ldc, float beta) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (beta == 0) clear(m, n, c, ldc);
    return;
  }
  if (m * n * k < kTinyProduct) return small(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, beta != 0);
  in_pieces(ta, tb, m, n, k, a, lda, b, ldb, c, ldc,
            [&](int64_t pm, int64_t pn, const float* pa, const float* pb, float* pc) {
              if (!ta && tb && k <= kShortSum && pm >= 64)
                dnnl_matmul({pm, pn, k, lda, ldb, ldc, ta, tb, false, beta != 0, false}, pa, pb, nullptr, pc);
              else
                dnnl_gemm(ta, tb, pm, pn, k, pa, lda, pb, ldb, beta, pc, ldc);
            });
}

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb,
          double* c, int64_t ldc, double beta) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (beta == 0) clear(m, n, c, ldc);
    return;
  }
  if (m * n * k < kTinyProduct) return small(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, beta != 0);
  in_pieces(ta, tb, m, n, k, a, lda, b, ldb, c, ldc,
            [&](int64_t pm, int64_t pn, const double* pa, const double* pb, double* pc) {
              small(ta, tb, pm, pn, k, pa, lda, pb, ldb, pc, ldc, beta != 0);
            });
}

void gemm_bf16(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t* a, int64_t lda, const uint16_t* b,
               int64_t ldb, const uint16_t* bias, uint16_t* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (int64_t i = 0; i < m; ++i)
      bias ? static_cast<void>(std::copy_n(bias, n, c + i * ldc)) : static_cast<void>(std::fill_n(c + i * ldc, n, 0));
    return;
  }
  in_pieces(ta, tb, m, n, k, a, lda, b, ldb, c, ldc,
            [&](int64_t pm, int64_t pn, const uint16_t* pa, const uint16_t* pb, uint16_t* pc) {
              const uint16_t* row = bias ? bias + (pc - c) % ldc : nullptr;
              dnnl_matmul({pm, pn, k, lda, ldb, ldc, ta, tb, true, false, bias != nullptr}, pa, pb, row, pc);
            });
}

void transpose(int64_t rows, int64_t cols, const float* from, int64_t from_ld, float* to, int64_t to_ld) {
  transpose_blocks(rows, cols, from, from_ld, to, to_ld);
}
void transpose(int64_t rows, int64_t cols, const double* from, int64_t from_ld, double* to, int64_t to_ld) {
  transpose_blocks(rows, cols, from, from_ld, to, to_ld);
}

}  // namespace tenon::kernels
