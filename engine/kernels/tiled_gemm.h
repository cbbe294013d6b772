#pragma once
#include <cstdint>

namespace tenon::kernels {

// Note [Tiled products]
// oneDNN 2.6 reads a right side that is not transposed where it lies. Where the processor has no AVX-512, and rows lie
// a power of two apart or begin on a page as the pool's do, half of its time goes into cache lines that displace each
// other: 45 of 94 GFLOP/s for 1024 x 1024 x 1024, 33 with a transposed left side. Here both sides are packed into the
// order in which they are read: 88 and 85. For a transposed right side, which it packs itself, oneDNN is the faster
// one, and so it is with AVX-512 for f32: against tiles of 512 bits byte-gpt infers 1.4 times as fast by it,
// resnet18 1.3 times. The steps of recurrent layers, whose weights are packed once for all, and f64 are tiles
// everywhere.

/// Products of a block of k are one chain of fused multiply-adds, from zero; the blocks' sums are added to C in order.
/// So an element's bits do not depend on the rows and columns computed beside it.
inline constexpr int64_t kProductBlock = 384;

/// One piece of a product on this thread: C[m, n] = op(A) op(B), added to C or in its place; see gemm().
void tiled_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                int64_t ldb, float* c, int64_t ldc, bool add);
void tiled_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
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
