#include "engine/kernels/gemm.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "core/vectors.h"
#include "engine/kernels/dnnl.h"
#include "engine/kernels/dnnl_matmul.h"
#include "engine/kernels/lanes.h"
#include "engine/kernels/scratch.h"
#include "engine/kernels/tiled_gemm.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kTinyProduct = 32 * 1024;  // multiply-adds below which a library call costs more than the product
constexpr int64_t kTinyB = 4096;             // elements of B that fit the stack copy
// Up to so many products oneDNN's gemm and its matmul both add up in one chain, to the same bits. Beyond, gemm is as
// fast for a transposed right side.
constexpr int64_t kShortSum = 384;
constexpr int64_t kPackedRows = 6;  // of fewer rows, to pack the right side takes longer than to read it once

#if defined(__AVX2__)
void transpose_8x8(const float* from, int64_t from_row, float* to, int64_t to_row) {
  __m256 turned[8];
  turn_8x8(from, from_row, turned);
  for (int i = 0; i < 8; ++i) _mm256_storeu_ps(to + i * to_row, turned[i]);
}
#endif

/// What the sums of C begin with: zeros, or the values at `at`, where each row's lie `row` behind those of the one
/// above.
template <class T>
struct Start {
  const T* at = nullptr;
  int64_t row = 0;
  Start from(int64_t i, int64_t j) const { return at ? Start{at + i * row + j, row} : *this; }
  T one(int64_t r) const { return at ? at[r * row] : T(0); }
};

/// R rows and W lanes of C, accumulated over k in order, in registers. B is row-major here.
template <class T, int W, int R>
inline void tile(int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c, int64_t ldc,
                 Start<T> start) {
  using L = Lanes<T>;
  L acc[R][W];
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < W; ++j) acc[r][j] = start.at ? L::load(start.at + r * start.row + j * L::count) : L::zero();
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
                   Start<T> start) {
  T acc[R];
  for (int r = 0; r < R; ++r) acc[r] = start.one(r);
  for (int64_t p = 0; p < k; ++p)
    for (int r = 0; r < R; ++r) acc[r] = fma_(a[r * a_row + p * a_col], b[p * ldb], acc[r]);
  for (int r = 0; r < R; ++r) c[r * ldc] = acc[r];
}

template <class T, int R>
inline void rows(int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c,
                 int64_t ldc, Start<T> start) {
  constexpr int L = Lanes<T>::count;
  int64_t j = 0;
  for (; j + 2 * L <= n; j += 2 * L) tile<T, 2, R>(k, a, a_row, a_col, b + j, ldb, c + j, ldc, start.from(0, j));
  if (j + L <= n) {
    tile<T, 1, R>(k, a, a_row, a_col, b + j, ldb, c + j, ldc, start.from(0, j));
    j += L;
  }
  for (; j < n; ++j) column<T, R>(k, a, a_row, a_col, b + j, ldb, c + j, ldc, start.from(0, j));
}

template <class T>
void plain(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c,
           int64_t ldc, Start<T> start) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) rows<T, 4>(n, k, a + i * a_row, a_row, a_col, b, ldb, c + i * ldc, ldc, start.from(i, 0));
  for (; i < m; ++i) rows<T, 1>(n, k, a + i * a_row, a_row, a_col, b, ldb, c + i * ldc, ldc, start.from(i, 0));
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

/// Dot products of a row with R rows of a transposed B, too large to copy. Each has two chains of lanes, added in a
/// fixed order.
template <class T, int R>
void dots(int64_t k, const T* a, const T* b, int64_t ldb, T* sums) {
  using L = Lanes<T>;
  L acc[R][2];
  for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = L::zero();
  int64_t p = 0;
  for (; p + 2 * L::count <= k; p += 2 * L::count)
    for (int half = 0; half < 2; ++half) {
      const int64_t at = p + half * L::count;
      const L x = L::load(a + at);
      for (int r = 0; r < R; ++r) acc[r][half].add_products(x, L::load(b + r * ldb + at));
    }
  for (int r = 0; r < R; ++r) {
    acc[r][0].add(acc[r][1]);
    sums[r] = acc[r][0].sum();
  }
  for (; p < k; ++p)
    for (int r = 0; r < R; ++r) sums[r] = fma_(a[p], b[r * ldb + p], sums[r]);
}

/// One row of C by a transposed B: each element is one chain over k in order, as in tile(), but B is turned in
/// registers alone.
template <class T>
void one_row(int64_t n, int64_t k, const T* a, int64_t a_col, const T* b, int64_t ldb, T* c, Start<T> start) {
  int64_t j = 0;
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (sizeof(T) == 4)
    for (; j + 8 <= n; j += 8) {
      __m256 acc = start.at ? _mm256_loadu_ps(start.at + j) : _mm256_setzero_ps();
      const float* rows = b + j * ldb;
      int64_t p = 0;
      for (; p + 8 <= k; p += 8) {
        __m256 columns[8];
        turn_8x8(rows + p, ldb, columns);
        for (int i = 0; i < 8; ++i) acc = _mm256_fmadd_ps(_mm256_set1_ps(a[(p + i) * a_col]), columns[i], acc);
      }
      for (; p < k; ++p) {
        const float* at = rows + p;
        const __m256 one = _mm256_setr_ps(at[0], at[ldb], at[2 * ldb], at[3 * ldb], at[4 * ldb], at[5 * ldb],
                                          at[6 * ldb], at[7 * ldb]);
        acc = _mm256_fmadd_ps(_mm256_set1_ps(a[p * a_col]), one, acc);
      }
      _mm256_storeu_ps(c + j, acc);
    }
#endif
  for (; j < n; ++j) {
    T sum = start.from(0, j).one(0);
    for (int64_t p = 0; p < k; ++p) sum = fma_(a[p * a_col], b[j * ldb + p], sum);
    c[j] = sum;
  }
}

template <class T>
void small(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
           int64_t ldc, Start<T> start) {
  int64_t a_row = ta ? 1 : lda, a_col = ta ? lda : 1;
  if (!tb) return plain(m, n, k, a, a_row, a_col, b, ldb, c, ldc, start);
  if (n * k <= kTinyB) {
    if (m == 1) return one_row(n, k, a, a_col, b, ldb, c, start);
    T copy[kTinyB];
    transpose_blocks(n, k, b, ldb, copy, n);
    return plain(m, n, k, a, a_row, a_col, copy, n, c, ldc, start);
  }
  constexpr int kRows = 4;
  for (int64_t i = 0; i < m; ++i) {
    const T* row = a + i * a_row;
    T* to = c + i * ldc;
    if (a_col != 1) {  // a column of a transposed A
      for (int64_t j = 0; j < n; ++j) {
        T sum = T(0);
        for (int64_t p = 0; p < k; ++p) sum = fma_(row[p * a_col], b[j * ldb + p], sum);
        to[j] = start.at ? start.from(i, j).one(0) + sum : sum;
      }
      continue;
    }
    T sums[kRows];
    for (int64_t j = 0; j < n; j += kRows) {
      const int64_t some = std::min<int64_t>(kRows, n - j);
      if (some == kRows)
        dots<T, kRows>(k, row, b + j * ldb, ldb, sums);
      else
        for (int64_t r = 0; r < some; ++r) dots<T, 1>(k, row, b + (j + r) * ldb, ldb, sums + r);
      for (int64_t r = 0; r < some; ++r) to[j + r] = start.at ? start.from(i, j + r).one(0) + sums[r] : sums[r];
    }
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
Start<T> onto(const T* c, int64_t ldc, T beta) {
  return beta == 0 ? Start<T>{} : Start<T>{c, ldc};
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

/// Whether both sides are packed for all threads. What has few rows, columns or products of each element is faster in
/// pieces, but for two transposed sides, which oneDNN reads far apart.
bool packs_once(bool ta, bool tb, int64_t m, int64_t n, int64_t k) {
  const int64_t least = ta && tb ? 32 : 192;
  return std::min({m, n, k}) >= least && k <= 16 * std::min(m, n);
}

}  // namespace

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
          float* c, int64_t ldc, float beta) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (beta == 0) clear(m, n, c, ldc);
    return;
  }
  if (m * n * k < kTinyProduct) return small(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, onto(c, ldc, beta));
  if (packs_once(ta, tb, m, n, k) && (has_wide_vectors() || !tb))
    return tiled_product(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, beta != 0);
  in_pieces(ta, tb, m, n, k, a, lda, b, ldb, c, ldc,
            [&](int64_t pm, int64_t pn, const float* pa, const float* pb, float* pc) {
              if (!tb && pm >= kPackedRows && !packs_products())
                tiled_gemm(ta, tb, pm, pn, k, pa, lda, pb, ldb, pc, ldc, beta != 0);
              else if (!ta && tb && k <= kShortSum && pm >= 64)
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
  if (m * n * k < kTinyProduct) return small(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, onto(c, ldc, beta));
  if (packs_once(ta, tb, m, n, k)) return tiled_product(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, beta != 0);
  in_pieces(ta, tb, m, n, k, a, lda, b, ldb, c, ldc,
            [&](int64_t pm, int64_t pn, const double* pa, const double* pb, double* pc) {
              if (pm < kPackedRows) return small(ta, tb, pm, pn, k, pa, lda, pb, ldb, pc, ldc, onto(pc, ldc, beta));
              tiled_gemm(ta, tb, pm, pn, k, pa, lda, pb, ldb, pc, ldc, beta != 0);
            });
}

namespace {

// Note [Products by weights]
// oneDNN's blocked products are faster than its gemm, which copies both sides first, and may find the right side
// packed. They want a result without gaps between its rows, so a piece has all columns where the weights fit the cache;
// else it is computed beside the result and copied into it. Weights that are packed give the bits of those that are
// not.
struct WeightProduct {
  int64_t m, n, k, lda, ldw, ldc;
  bool bias;
  int64_t rows, cols;  ///< of a piece
  bool blocked = false;

  WeightProduct(int64_t m_, int64_t n_, int64_t k_, int64_t lda_, int64_t ldw_, int64_t ldc_, bool bias_)
      : m(m_), n(n_), k(k_), lda(lda_), ldw(ldw_), ldc(ldc_), bias(bias_), rows(m_), cols(n_) {
    constexpr int64_t kFewRows = 4, kCached = 1 << 18;
    if (m < kFewRows || m * n * k < kTinyProduct || !packs_products()) return;
    const int64_t across = std::max<int64_t>(1, (n * k + kCached - 1) / kCached);
    if (across > 1) cols = std::min(n, std::max<int64_t>(64, (n / across + 63) / 64 * 64));
    const int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(2e-6 * static_cast<double>(m * n * k) / 12), 1, 16);
    rows = std::min<int64_t>(m, 256);
    while (((m + rows - 1) / rows) * ((n + cols - 1) / cols) < wanted && (rows > 32 || cols > 64)) {
      if (rows > 32)
        rows = (rows / 2 + 15) / 16 * 16;
      else
        cols = (cols / 2 + 63) / 64 * 64;
    }
    blocked = dnnl_matmul_packs(piece(rows, cols));
  }
  bool dense(int64_t wide) const { return wide == ldc; }
  MatmulShape piece(int64_t tall, int64_t wide) const {
    return {tall, wide, k, lda, ldw, wide, false, true, false, false, bias, true};
  }
};

}  // namespace

void keep_gemm_weights(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldw, bool bias, int64_t ldc,
                       const WeightKeeper& keep) {
  const WeightProduct p(m, n, k, lda, ldw, ldc, bias);
  if (!keep || !p.blocked) return;
  for (int64_t j = 0; j < n; j += p.cols) {
    const MatmulShape s = p.piece(p.rows, std::min(p.cols, n - j));
    if (dnnl_matmul_packs(s)) keep.take(s, {j, p.cols});
  }
}

void gemm_by_weights(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* w, int64_t ldw,
                     const float* bias, float* c, int64_t ldc, const WeightKeeper& keep) {
  if (m * n * k < kTinyProduct && k > 0)
    return small(false, true, m, n, k, a, lda, w, ldw, c, ldc, Start<float>{bias, 0});
  const WeightProduct p(m, n, k, lda, ldw, ldc, bias != nullptr);
  if (k == 0 || !p.blocked) {
    const int64_t some = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, n));
    if (bias)
      parallel_for(m, some, [&](int64_t i, int64_t e) {
        for (; i < e; ++i) std::copy_n(bias, n, c + i * ldc);
      });
    return gemm(false, true, m, n, k, a, lda, w, ldw, c, ldc, bias ? 1.0f : 0.0f);
  }
  const int64_t across = (n + p.cols - 1) / p.cols, down = (m + p.rows - 1) / p.rows;
  parallel_for(across * down, 1, [&](int64_t at, int64_t end) {
    for (; at < end; ++at) {
      const int64_t i = at / across * p.rows, j = at % across * p.cols;
      const int64_t tall = std::min(p.rows, m - i), wide = std::min(p.cols, n - j);
      const MatmulShape whole = p.piece(p.rows, wide);
      MatmulShape s = p.piece(tall, wide);
      const float *left = a + i * lda, *right = w + j * ldw, *row = bias ? bias + j : nullptr;
      Ref<Storage> packed;
      // The last rows may want another order: they read the weights as they are.
      if (keep && dnnl_matmul_packs(whole) && dnnl_matmul_same_packing(whole, s))
        packed = keep.packed(whole, {j, p.cols});
      else
        s.packed = false;
      const void* side = packed ? packed->data : right;
      if (p.dense(wide)) {
        dnnl_matmul(s, left, side, row, c + i * ldc);
        continue;
      }
      const Scratch<float> beside(tall * wide);
      dnnl_matmul(s, left, side, row, beside.data());
      for (int64_t r = 0; r < tall; ++r) std::copy_n(beside.data() + r * wide, wide, c + (i + r) * ldc + j);
    }
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

}  // namespace tenon::kernels
