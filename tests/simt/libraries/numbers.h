#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/dtype.h"
#include "core/half.h"

// Elements of any floating type, for the emulated libraries, which compute in f64.
namespace tenon::emulated {

inline double number_at(const void* data, DType type, int64_t at) {
  switch (type) {
    case DType::f64:
      return static_cast<const double*>(data)[at];
    case DType::f16:
      return half_to_float(static_cast<const uint16_t*>(data)[at]);
    case DType::bf16:
      return bfloat_to_float(static_cast<const uint16_t*>(data)[at]);
    default:
      return static_cast<const float*>(data)[at];
  }
}

/// A factor of f32 as tensor cores read it in TF32: 10 bits of mantissa.
inline double as_tf32(double x) {
  if (!std::isfinite(x)) return x;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  return std::bit_cast<float>((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
}

inline void put_number(void* data, DType type, int64_t at, double x) {
  switch (type) {
    case DType::f64:
      static_cast<double*>(data)[at] = x;
      break;
    case DType::f16:
      static_cast<uint16_t*>(data)[at] = float_to_half(static_cast<float>(x));
      break;
    case DType::bf16:
      static_cast<uint16_t*>(data)[at] = float_to_bfloat(static_cast<float>(x));
      break;
    default:
      static_cast<float*>(data)[at] = static_cast<float>(x);
  }
}

}  // namespace tenon::emulated
