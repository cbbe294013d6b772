#pragma once
#include <cstdint>

namespace tenon::kernels {

// Note [Tiles of bf16]
// A processor with AMX multiplies 16 rows of 32 by 32 rows of 16 in one instruction. oneDNN 2.6 uses it for results
// without gaps alone, so for no piece of a product, and copies the right side for each piece. Here both sides are
// copied once into the order in which the processor reads them, the right one for all threads. An element is one chain
// in the order of k, from zero, in f32; the bias is added, then it is rounded once: the same bits however the product
// is cut, and oneDNN's where it does not cut the sum. Against oneDNN's pieces, alternating on one core, for A B: sides
// of 256 to 2048 1.2 to 1.7 as fast, few products of each element 1.2 to 1.9, 64 rows 1.1; but 0.5 to 0.8 with fewer
// rows or fewer than 128 columns, and 0.7 to 0.9 for a side of 128, where the copies take longer than the product:
// suits_bf16_tiles() in gemm.cpp.

/// Whether this processor has such tiles, and the system lets this process use them. ONEDNN_MAX_CPU_ISA may say no.
bool has_bf16_tiles();

/// The longest sum that tiled_bf16() takes: rows and columns of such length stay in a cache.
inline constexpr int64_t kTiledBf16Sum = 8192;

/// gemm_bf16() by tiles, on all threads. m, n and k are at least 1, k at most kTiledBf16Sum.
void tiled_bf16(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t* a, int64_t lda, const uint16_t* b,
                int64_t ldb, const uint16_t* bias, uint16_t* c, int64_t ldc);

}  // namespace tenon::kernels
