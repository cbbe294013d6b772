#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

/// One piece of a product on the calling thread, by oneDNN's matmul, which keeps a compiled kernel per size: it does
/// not copy a transposed right side first as its gemm does. Sums are f32. Note [oneDNN and threads] is in dnnl.cpp.
struct MatmulShape {
  int64_t m, n, k, lda, ldb, ldc;  ///< leading dimensions in elements, row-major
  bool ta, tb;
  bool bf16;            ///< both sides and the result; else f32
  bool add;             ///< to what C holds; f32 alone
  bool bias;            ///< a row [n] that is added to every row of a result
  bool packed = false;  ///< b lies as dnnl_matmul_pack() puts it; f32 where packs_products() alone
  bool operator==(const MatmulShape&) const = default;
};

/// Whether the processor multiplies bf16 by itself, as oneDNN sees it: ONEDNN_MAX_CPU_ISA counts.
bool has_bf16_products();
/// Whether it does so tile by tile (AMX).
bool has_bf16_tile_products();

/// Whether the processor has products whose right side may be packed beforehand.
bool packs_products();
/// Whether a product of this packed shape is one of them, and gives the bits of the same by the plain right side. One
/// whose result has gaps between its rows is not.
bool dnnl_matmul_packs(const MatmulShape& s);
/// Of the right side of a packed shape.
size_t dnnl_matmul_packed_bytes(const MatmulShape& s);
/// True where both packed shapes want the same order.
bool dnnl_matmul_same_packing(const MatmulShape& a, const MatmulShape& b);
void dnnl_matmul_pack(const MatmulShape& s, const void* b, void* packed);

/// `a`, `b`, `bias` (null without) and `c` as the shape says. bf16 wants has_bf16_products().
void dnnl_matmul(const MatmulShape& s, const void* a, const void* b, const void* bias, void* c);

}  // namespace tenon::kernels
