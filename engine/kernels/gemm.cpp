#include "engine/kernels/gemm.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "core/vectors.h"
#include "engine/kernels/bf16_product.h"
#include "engine/kernels/dnnl.h"
#include "engine/kernels/dnnl_matmul.h"
#include "engine/kernels/scratch.h"
#include "engine/kernels/small_product.h"
#include "engine/kernels/tiled_gemm.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kTinyProduct = 32 * 1024;  // multiply-adds below which a library call costs more than the product
// Up to so many products oneDNN's gemm and its matmul both add up in one chain, to the same bits. Beyond, gemm is as
// fast for a transposed right side.
constexpr int64_t kShortSum = 384;
constexpr int64_t kPackedRows = 6;  // of fewer rows, to pack the right side takes longer than to read it once
constexpr int64_t kDotRows = 4;     // of fewer rows, a transposed right side is read along its rows

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

// Note [Pieces of a product]
// A piece with a side below 192 (see packs_once()) stays in a thread's cache. With AVX-512, how many times as fast as
// oneDNN's gemm others are, alternating on one core:
//   oneDNN's matmul, which compiles a kernel for each size in half a millisecond: 1 to 1.7; but 0.5 to 0.9 for few
//     rows, for tiny pieces, and for a wide right side that is a thousand rows long
//   tiles: 0.8 to 1.8 for few rows, 1.3 to 2 for tiny pieces
//   row_product() for one row: 1; product_of_dots() for two and three rows by a transposed side: 0.5 to 0.7
// At its first call gemm compiles all the kernels that it has, for 90 milliseconds, which every process would wait for:
// with AVX-512 it is never called. Without, its first call takes 23 milliseconds and matmul is slow: gemm does what
// tiles do not.

/// Whether the tiles multiply a piece faster than oneDNN's matmul; see Note [Pieces of a product].
bool suits_tiles(bool tb, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kTinyPiece = 128 * 1024, kNarrow = 32, kFewRows = 10, kWide = 128, kLong = 1024;
  if (n >= kNarrow && m * n * k <= kTinyPiece) return true;
  return !tb && ((n >= kNarrow && m <= kFewRows) || (n >= kWide && k >= kLong));
}

void multiply_piece(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                    int64_t ldb, float* c, int64_t ldc, bool add) {
  if (m == 1 && !tb) return row_product(n, k, a, ta ? lda : 1, b, ldb, c, add);
  if (m < kDotRows && !ta && tb)
    return product_of_dots(m, n, k, a, lda, b, ldb, c, ldc, onto(c, ldc, add ? 1.0f : 0.0f));
  const bool tiles = packs_products() ? suits_tiles(tb, m, n, k) : !tb && m >= kPackedRows;
  if (tiles) return tiled_gemm(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, add);
  if (packs_products() || (!ta && tb && k <= kShortSum && m >= 64))
    return dnnl_matmul({m, n, k, lda, ldb, ldc, ta, tb, false, add, false}, a, b, nullptr, c);
  dnnl_gemm(ta, tb, m, n, k, a, lda, b, ldb, add ? 1.0f : 0.0f, c, ldc);
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
  if (m * n * k < kTinyProduct) return small_product(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, onto(c, ldc, beta));
  if (packs_once(ta, tb, m, n, k) && (has_wide_vectors() || !tb))
    return tiled_product(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, beta != 0);
  // A matrix by a vector is the vector by the transposed matrix: so all of it is read once, along its rows.
  const bool by_vector = n == 1 && (tb || ldb == 1);
  if (by_vector && m > 1 && ldc == 1) return gemm(false, !ta, 1, m, k, b, k, a, lda, c, m, beta);
  if (by_vector) tb = true, ldb = k;
  in_pieces(ta, tb, m, n, k, a, lda, b, ldb, c, ldc,
            [&](int64_t pm, int64_t pn, const float* pa, const float* pb, float* pc) {
              multiply_piece(ta, tb, pm, pn, k, pa, lda, pb, ldb, pc, ldc, beta != 0);
            });
}

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb,
          double* c, int64_t ldc, double beta) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (beta == 0) clear(m, n, c, ldc);
    return;
  }
  if (m * n * k < kTinyProduct) return small_product(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, onto(c, ldc, beta));
  if (packs_once(ta, tb, m, n, k)) return tiled_product(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, beta != 0);
  in_pieces(ta, tb, m, n, k, a, lda, b, ldb, c, ldc,
            [&](int64_t pm, int64_t pn, const double* pa, const double* pb, double* pc) {
              if (pm < kPackedRows)
                return small_product(ta, tb, pm, pn, k, pa, lda, pb, ldb, pc, ldc, onto(pc, ldc, beta));
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
    return small_product(false, true, m, n, k, a, lda, w, ldw, c, ldc, Start<float>{bias, 0});
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

namespace {

/// Whether tiles of our own multiply faster than oneDNN's; see Note [Tiles of bf16].
bool suits_bf16_tiles(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kFewRows = 64, kFewColumns = 128, kFewProducts = 32, kSmall = 4 * 1024 * 1024;
  return m >= kFewRows && n >= kFewColumns && k >= kFewProducts && k <= kTiledBf16Sum && m * n * k > kSmall &&
         has_bf16_tiles();
}

}  // namespace

void gemm_bf16(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t* a, int64_t lda, const uint16_t* b,
               int64_t ldb, const uint16_t* bias, uint16_t* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (int64_t i = 0; i < m; ++i)
      bias ? static_cast<void>(std::copy_n(bias, n, c + i * ldc)) : static_cast<void>(std::fill_n(c + i * ldc, n, 0));
    return;
  }
  if (suits_bf16_tiles(m, n, k)) return tiled_bf16(ta, tb, m, n, k, a, lda, b, ldb, bias, c, ldc);
  in_pieces(ta, tb, m, n, k, a, lda, b, ldb, c, ldc,
            [&](int64_t pm, int64_t pn, const uint16_t* pa, const uint16_t* pb, uint16_t* pc) {
              const uint16_t* row = bias ? bias + (pc - c) % ldc : nullptr;
              dnnl_matmul({pm, pn, k, lda, ldb, ldc, ta, tb, true, false, bias != nullptr}, pa, pb, row, pc);
            });
}

}  // namespace tenon::kernels
