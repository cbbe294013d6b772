#pragma once
#include <cstdint>

#include "engine/kernels/kept_weights.h"

namespace tenon::kernels {

/// C[m, n] = op(A)[m, k] * op(B)[k, n] + beta * C, all row-major with leading dimensions in elements; op transposes
/// where the flag is set. k == 0 scales C alone. beta is 0 or 1; with 0, C is not read. The bits depend on the
/// arguments alone, never on the number of threads: the product is cut along m and n by a rule of its sizes, and k is
/// never split between threads.
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
          float* c, int64_t ldc, float beta = 0);
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb,
          double* c, int64_t ldc, double beta = 0);

/// Packed columns are filled up to a block: a W with fewer rows than this needs no keeper, and to ask one would take
/// longer than its product.
inline constexpr int64_t kKeptColumns = 64;
/// C[m, n] = A[m, k] * W[n, k] transposed, with `bias` [n] (or null) added to each row: the bits do not depend on what
/// is kept of W. keep_gemm_weights() takes the memory for it.
void gemm_by_weights(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* w, int64_t ldw,
                     const float* bias, float* c, int64_t ldc, const WeightKeeper& keep);
void keep_gemm_weights(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldw, bool bias, int64_t ldc,
                       const WeightKeeper& keep);

/// The same of bf16, given and returned by their bits: sums in f32, to which `bias` [n] (or null) is added, rounded
/// once. Needs has_bf16_products() of dnnl_matmul.h.
void gemm_bf16(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t* a, int64_t lda, const uint16_t* b,
               int64_t ldb, const uint16_t* bias, uint16_t* c, int64_t ldc);

}  // namespace tenon::kernels
