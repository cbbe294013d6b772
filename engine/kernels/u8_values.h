#pragma once
#include <cstdint>

namespace tenon::kernels {

// Values as u8 on a grid: x is about scale * (q - zero).

/// As QuantizeLinear has it: to the nearest, of two the even one, within 0 and 255. NaN becomes 0.
void quantize_u8(const float* x, int64_t n, float scale, int32_t zero, uint8_t* q);
void dequantize_u8(const uint8_t* q, int64_t n, float scale, int32_t zero, float* x);

}  // namespace tenon::kernels
