#pragma once
#include <bit>
#include <cstdint>

#include "core/host_device.h"

namespace tenon {

/// IEEE binary16 to binary32, exact.
TENON_HD inline float half_to_float(uint16_t h) {
#ifdef __CUDA_ARCH__
  float there;  // one instruction, the same value
  asm("cvt.f32.f16 %0, %1;" : "=f"(there) : "h"(h));
  return there;
#else
  uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
#endif
}

/// binary32 to binary16, round to nearest even; overflow becomes infinity, NaN stays NaN.
TENON_HD inline uint16_t float_to_half(float f) {
#ifdef __CUDA_ARCH__
  uint16_t there;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(there) : "f"(f));
  return there;
#else
  uint32_t x = std::bit_cast<uint32_t>(f), sign = x >> 16 & 0x8000u;
  x &= 0x7fffffffu;
  if (x >= 0x7f800000u) return static_cast<uint16_t>(sign | 0x7c00u | (x > 0x7f800000u ? 0x200u : 0));
  if (x >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (x < 0x38800000u) {
    // Adding 0.5 lines the subnormal's last bit up with the float's last bit, so the addition itself rounds to even.
    uint32_t r = std::bit_cast<uint32_t>(std::bit_cast<float>(x) + 0.5f) - 0x3f000000u;
    return static_cast<uint16_t>(sign | r);
  }
  uint32_t odd = x >> 13 & 1u;
  return static_cast<uint16_t>(sign | ((x - 0x38000000u + 0xfffu + odd) >> 13));
#endif
}

TENON_HD inline float bfloat_to_float(uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }

TENON_HD inline uint16_t float_to_bfloat(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f);
  if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(x >> 16 | 0x40u);
  return static_cast<uint16_t>((x + 0x7fffu + (x >> 16 & 1u)) >> 16);
}

}  // namespace tenon
