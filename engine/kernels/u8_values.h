#pragma once
#include <cstdint>

#include "engine/kernels/pool.h"

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

/// The same numbers on another grid.
void requantize_u8(const U8Span& x, int64_t n, float scale, int32_t zero, uint8_t* q);
/// Averages of windows over NHWC, as u8 of another grid; `padding`: what lies outside counts as 0.
void average_u8(const PoolShape& s, const U8Span& x, bool padding, float scale, int32_t zero, uint8_t* q);

}  // namespace tenon::kernels
