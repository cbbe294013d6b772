#pragma once
#include <cstdint>

namespace tenon::kernels {

/// One piece of a product on the calling thread, by oneDNN's matmul, which keeps a compiled kernel per size: it does
/// not copy a transposed right side first as its gemm does. Sums are f32. Note [oneDNN and threads] is in dnnl.cpp.
struct MatmulShape {
  int64_t m, n, k, lda, ldb, ldc;  ///< leading dimensions in elements, row-major
  bool ta, tb;
  bool bf16;  ///< both sides and the result; else f32
  bool add;   ///< to what C holds; f32 alone
  bool bias;  ///< a row [n] that is added to every row of a result; bf16 alone
  bool operator==(const MatmulShape&) const = default;
};

/// Whether the processor multiplies bf16 by itself, as oneDNN sees it: ONEDNN_MAX_CPU_ISA counts.
bool has_bf16_products();

/// `a`, `b`, `bias` (null without) and `c` as the shape says. bf16 wants has_bf16_products().
void dnnl_matmul(const MatmulShape& s, const void* a, const void* b, const void* bias, void* c);

}  // namespace tenon::kernels
