#pragma once
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
