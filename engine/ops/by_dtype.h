#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "core/error.h"

// Kernels that are templates over the element type, called for a dtype.
namespace tenon::ops {

/// Calls f with an unsigned integer as wide as an element: for kernels that only move values.
template <class F>
void by_width(DType t, const F& f) {
  switch (itemsize(t)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

/// Calls f with a value of the C++ type; f16 and bf16 have none: see widened().
template <class F>
void by_arithmetic(DType t, const F& f) {
  switch (t) {
    case DType::boolean:
      return f(false);
    case DType::u8:
      return f(uint8_t{});
    case DType::i8:
      return f(int8_t{});
    case DType::i16:
      return f(int16_t{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    default:
      throw Error("half precision reached a kernel that has no form for it");
  }
}

/// What a kernel with arithmetic works in for a tensor of dtype t: half precision is widened, all else is itself.
constexpr DType widened(DType t) { return t == DType::f16 || t == DType::bf16 ? DType::f32 : t; }

}  // namespace tenon::ops
