#pragma once
#include <cstdint>

namespace tenon::kernels {

// Note [Tiled products]
// Both sides are packed into the order in which they are read, once for all threads: a library that is called for each
// piece of a product packs its share of both every time. oneDNN 2.6 reads a right side that is not transposed where it
// lies; where the processor has no AVX-512, and rows lie a power of two apart or begin on a page as the pool's do, half
// of its time goes into cache lines that displace each other. Against it, alternating, on two cores with AVX-512: 1.0
// to 1.4 as fast for A B and A B^T with sides of 192 to 4096, 1.1 to 1.7 for A^T B, 1.3 to 2 for A^T B^T; but 0.7 to 1
// with a side of 128 or less, whose pieces stay in a thread's cache. With AVX2 alone 1.0 to 1.2, but 0.9 for A B^T,
// which is left to oneDNN there.

/// Products of a block of k are one chain of fused multiply-adds, from zero; the blocks' sums are added to C in order.
/// So an element's bits do not depend on the rows and columns computed beside it. A sum of k has as few blocks as it
/// takes, of equal length.
inline constexpr int64_t kProductBlock = 512;
constexpr int64_t product_block(int64_t k) {
  const int64_t blocks = (k + kProductBlock - 1) / kProductBlock;
  return blocks < 2 ? k : ((k + blocks - 1) / blocks + 7) / 8 * 8;
}

/// One piece of a product on this thread: C[m, n] = op(A) op(B), added to C or in its place; see gemm().
void tiled_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                int64_t ldb, float* c, int64_t ldc, bool add);
void tiled_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
                int64_t ldb, double* c, int64_t ldc, bool add);

/// A whole product on all threads: the bits of its pieces.
void tiled_product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                   int64_t ldb, float* c, int64_t ldc, bool add);
void tiled_product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
                   int64_t ldb, double* c, int64_t ldc, bool add);

/// op(B) [k, n] packed once, for several products of few rows. `b` is read as tiled_gemm() reads it; `to` has room for
/// tiled_side() elements; see Note [Tiles] for why their order depends on the processor.
template <class T>
int64_t tiled_side(int64_t n, int64_t k);
void tiled_pack(bool tb, int64_t n, int64_t k, const float* b, int64_t ldb, float* to);
void tiled_pack(bool tb, int64_t n, int64_t k, const double* b, int64_t ldb, double* to);
/// Columns that are computed of a packed side.
struct TiledColumns {
  int64_t first, count;  ///< the first one is a multiple of 32
};
/// C [m, columns.count] = A op(B) of those columns on this thread, or added to C: the bits of tiled_gemm(). n is that
/// of the packed side.
void tiled_gemm_packed(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed,
                       TiledColumns columns, float* c, int64_t ldc, bool add);
void tiled_gemm_packed(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* packed,
                       TiledColumns columns, double* c, int64_t ldc, bool add);

}  // namespace tenon::kernels
