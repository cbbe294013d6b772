#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon {

/// Element types, in the order of PyTorch's promotion within a category.
enum class DType : uint8_t { boolean, u8, i8, i16, i32, i64, f16, bf16, f32, f64 };
inline constexpr int kDTypes = 10;

constexpr size_t itemsize(DType t) {
  constexpr uint8_t bytes[kDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return bytes[static_cast<int>(t)];
}
constexpr bool is_floating(DType t) { return t >= DType::f16; }
constexpr bool is_integral(DType t) { return t > DType::boolean && t < DType::f16; }

/// "f32", "i64", "bool", ...
const char* name(DType t);
/// The inverse of name(); false where `text` names no type.
bool parse_dtype(const char* text, DType& out);

/// The common type of two operands by PyTorch's promotion rules (both with dimensions).
constexpr DType promote(DType a, DType b) {
  if (a == b) return a;
  DType lo = a < b ? a : b, hi = a < b ? b : a;
  if (hi == DType::bf16 && lo == DType::f16) return DType::f32;
  if (lo == DType::u8 && hi == DType::i8) return DType::i16;
  return hi;
}

template <class T>
struct dtype_of;
template <>
struct dtype_of<bool> {
  static constexpr DType value = DType::boolean;
};
template <>
struct dtype_of<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct dtype_of<int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct dtype_of<int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct dtype_of<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of<int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::f64;
};

}  // namespace tenon
