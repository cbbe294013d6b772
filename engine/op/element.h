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

/// An element as a number: halves as f32, which holds all of them.
template <class T>
TENON_HD inline T number(T v) {
  return v;
}
TENON_HD inline float number(Half v) { return half_to_float(v.bits); }
TENON_HD inline float number(Bfloat v) { return bfloat_to_float(v.bits); }

/// A number as an element, by C++'s conversion rules; to bool: not equal to 0. C++ leaves open what becomes of a number
/// that an integer type does not hold. Here it is what the processor makes of it: the smallest 32-bit (for i64: 64-bit)
/// integer, of which narrow types keep the low bits.
template <class T, class V>
TENON_HD inline T made(V v) {
  if constexpr (std::is_same_v<T, Half>) {
    return {float_to_half(static_cast<float>(v))};
  } else if constexpr (std::is_same_v<T, Bfloat>) {
    return {float_to_bfloat(static_cast<float>(v))};
  } else if constexpr (std::is_same_v<T, bool>) {
    return v != V(0);
  } else if constexpr (std::is_floating_point_v<V> && std::is_integral_v<T>) {
    using Wide = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    constexpr Wide least = std::numeric_limits<Wide>::min();
    constexpr V low = static_cast<V>(least);
    const bool held = v >= low && v < -low;
    return static_cast<T>(held ? static_cast<Wide>(held ? v : V(0)) : least);
  } else {
    return static_cast<T>(v);
  }
}

/// The element of type T at any address p, as a number.
template <class T>
TENON_HD inline auto load(const char* p) {
  T v;
  memcpy(&v, p, sizeof(T));
  return number(v);
}
template <class T, class V>
TENON_HD inline void store(char* p, V v) {
  const T t = made<T>(v);
  memcpy(p, &t, sizeof(T));
}

/// Element i of those of dtype t at p, as a T.
template <class T>
TENON_HD inline T at(const void* p, DType t, int64_t i) {
  return with_type(t, [p, i](auto type) { return made<T>(number(static_cast<const decltype(type)*>(p)[i])); });
}
template <class V>
TENON_HD inline void put(void* p, DType t, int64_t i, V v) {
  with_type(t, [p, i, v](auto type) { static_cast<decltype(type)*>(p)[i] = made<decltype(type)>(v); });
}

}  // namespace tenon::element
