#pragma once
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/dtype.h"
#include "core/half.h"

// One element of any dtype, in memory and as a number. The same on every device.
namespace tenon::element {

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

/// Calls f with a value of the type that elements of a dtype have in memory.
template <class F>
TENON_HD inline auto with_type(DType t, F&& f) {
  switch (t) {
    case DType::boolean:
      return f(bool{});
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
    case DType::f16:
      return f(Half{});
    case DType::bf16:
      return f(Bfloat{});
    case DType::f32:
      return f(float{});
    case DType::f64:
      break;
  }
  return f(double{});
}

/// The element of type T at p, as a number.
template <class T>
TENON_HD inline auto load(const char* p) {
  T v;
  memcpy(&v, p, sizeof(T));
  if constexpr (std::is_same_v<T, Half>)
    return half_to_float(v.bits);
  else if constexpr (std::is_same_v<T, Bfloat>)
    return bfloat_to_float(v.bits);
  else
    return v;
}

// C++ leaves open what becomes of a number that an integer type does not hold. Here it is what the processor makes of
// it: the smallest 32-bit (for i64: 64-bit) integer, of which narrow types keep the low bits.
template <class T, class V>
TENON_HD inline T whole(V v) {
  using Wide = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  constexpr V low = static_cast<V>(std::numeric_limits<Wide>::min());
  const bool held = v >= low && v < -low;
  return static_cast<T>(held ? static_cast<Wide>(held ? v : V(0)) : std::numeric_limits<Wide>::min());
}

/// Writes a number to the element of type T at p, by C++'s conversion rules; to bool: not equal to 0.
template <class T, class V>
TENON_HD inline void store(char* p, V v) {
  T t;
  if constexpr (std::is_same_v<T, Half>)
    t = {float_to_half(static_cast<float>(v))};
  else if constexpr (std::is_same_v<T, Bfloat>)
    t = {float_to_bfloat(static_cast<float>(v))};
  else if constexpr (std::is_same_v<T, bool>)
    t = v != V(0);
  else if constexpr (std::is_floating_point_v<V> && std::is_integral_v<T>)
    t = whole<T>(v);
  else
    t = static_cast<T>(v);
  memcpy(p, &t, sizeof(T));
}

}  // namespace tenon::element
