#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

// oneDNN behind plain pointers; dnnl.cpp, int8_conv.cpp, packed_conv.cpp and packed_product.cpp alone know its headers.
// Note [oneDNN and threads] is in dnnl.cpp: everything here runs on the calling thread alone. Callers cut the work by a
// rule of its sizes and run the pieces under parallel_for.

/// One piece of a product on this thread; the arguments of gemm().
void dnnl_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
               int64_t ldb, float beta, float* c, int64_t ldc);

/// A 2-d convolution. Activations are NHWC, plain weights OIHW ([oc, ic / groups, kh, kw]).
struct ConvShape {
  int64_t n, ic, ih, iw, oc, oh, ow, kh, kw;
  int64_t sh, sw, ph, pw, dh, dw, groups;  ///< dilation 1 is dense
  bool bias;
  bool bf16 = false;  ///< activations, weights and bias; gradients of weights and bias are f32
  int64_t pb = -1;    ///< padding below the image; -1: as much as above it
  bool operator==(const ConvShape&) const = default;
};
/// What one call is given: sizes of the input and of the result, and the padding round the input.
struct ConvSizes {
  int64_t n, ih, iw, oh, ow;
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  auto operator<=>(const ConvSizes&) const = default;
};

enum class ConvPass : uint8_t { forward, backward_data, backward_weights };

/// Bytes of the weights in the layout this pass wants for this shape.
size_t dnnl_conv_weight_bytes(const ConvShape& s, ConvPass pass);
/// True where both shapes want the same layout.
bool dnnl_conv_same_weights(const ConvShape& a, const ConvShape& b, ConvPass pass);
/// Between OIHW and that layout. Values are f32, or bf16 where the shape says so.
void dnnl_conv_pack(const ConvShape& s, ConvPass pass, const void* plain, void* packed);
void dnnl_conv_unpack(const ConvShape& s, ConvPass pass, const float* packed, float* plain);

void dnnl_conv_forward(const ConvShape& s, const void* x, const void* packed, const void* bias, void* y);
void dnnl_conv_backward_data(const ConvShape& s, const void* gy, const void* packed, void* gx);
/// `gbias` is written where s.bias is set.
void dnnl_conv_backward_weights(const ConvShape& s, const void* x, const void* gy, float* packed_gw, float* gbias);

/// "oneDNN 2.6.3"
const char* dnnl_name();

}  // namespace tenon::kernels
