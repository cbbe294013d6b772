#pragma once
#include "core/dtype.h"

namespace tenon {

/// The type two operands compute in by PyTorch's rules: one without dimensions does not widen one with, within a
/// category (bool, whole numbers, floating).
constexpr DType result_type(DType a, bool a_has_axes, DType b, bool b_has_axes) {
  if (a == b) return a;
  if (a_has_axes != b_has_axes) {
    const auto category = [](DType t) { return t == DType::boolean ? 0 : is_floating(t) ? 2 : 1; };
    const DType scalar = a_has_axes ? b : a, full = a_has_axes ? a : b;
    if (category(scalar) <= category(full)) return full;
  }
  return promote(a, b);
}

/// What a formula is evaluated in for a result of dtype t: f32 f64 i32 i64 are themselves.
constexpr DType compute_type(DType t) {
  if (t == DType::f16 || t == DType::bf16) return DType::f32;
  if (t < DType::i32) return DType::i32;
  return t;
}

}  // namespace tenon
