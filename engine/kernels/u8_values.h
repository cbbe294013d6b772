#pragma once
#include <cstdint>

namespace tenon::kernels {

// Values as u8 on a grid: x is about scale * (q - zero).

/// As QuantizeLinear has it: to the nearest, of two the even one, within 0 and 255. NaN becomes 0.
void quantize_u8(const float* x, int64_t n, float scale, int32_t zero, uint8_t* q);
void dequantize_u8(const uint8_t* q, int64_t n, float scale, int32_t zero, float* x);

/// What one side of a sum is.
struct U8Span {
  const uint8_t* q;
  float scale;
  int32_t zero;
};
/// a + b, as dequantize_u8(), f32 and quantize_u8() compute it; with `relu`, what is below 0 is 0.
void add_u8(const U8Span& a, const U8Span& b, int64_t n, bool relu, float scale, int32_t zero, uint8_t* q);

}  // namespace tenon::kernels
