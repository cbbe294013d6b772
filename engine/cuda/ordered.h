#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/host_device.h"
#include "engine/op/element.h"

// Elements as unsigned numbers that stand in the same order: zeros of both signs are alike, NaNs are alike and above
// all else.
namespace tenon::cuda::ordered {

/// Whether a key of 32 bits holds elements of this type.
inline bool narrow(DType t) { return t != DType::i64 && t != DType::f64; }

/// Element i as a number of 32 bits, where the type is narrow, or of 64.
template <class Key>
TENON_HD inline Key key(const void* x, DType t, int64_t i) {
  using Number = std::conditional_t<sizeof(Key) == 4, float, double>;
  constexpr Key kTop = Key{1} << (8 * sizeof(Key) - 1);
  if (!is_floating(t)) return static_cast<Key>(element::at<int64_t>(x, t, i)) ^ kTop;
  const auto v = element::at<Number>(x, t, i);
  if (v != v) return ~Key{0};
  const auto bits = std::bit_cast<Key>(v == 0 ? Number(0) : v);
  return bits & kTop ? ~bits : bits | kTop;
}

}  // namespace tenon::cuda::ordered
