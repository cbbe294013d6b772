#pragma once
#include <bit>
#include <cstdint>

#include "core/host_device.h"
#include "engine/op/element.h"

// Elements as unsigned numbers that stand in the same order: zeros of both signs are alike, NaNs are alike and above
// all else.
namespace tenon::cuda::ordered {

/// Whether key32() takes elements of this type.
inline bool narrow(DType t) { return t != DType::i64 && t != DType::f64; }

TENON_HD inline uint64_t key64(const void* x, DType t, int64_t i) {
  constexpr uint64_t kTop = uint64_t{1} << 63;
  if (!is_floating(t)) return static_cast<uint64_t>(element::at<int64_t>(x, t, i)) ^ kTop;
  const double v = element::at<double>(x, t, i);
  if (v != v) return ~uint64_t{0};
  const auto bits = std::bit_cast<uint64_t>(v == 0 ? 0.0 : v);
  return bits & kTop ? ~bits : bits | kTop;
}
TENON_HD inline uint32_t key32(const void* x, DType t, int64_t i) {
  constexpr uint32_t kTop = uint32_t{1} << 31;
  if (!is_floating(t)) return static_cast<uint32_t>(element::at<int64_t>(x, t, i)) ^ kTop;
  const float v = element::at<float>(x, t, i);
  if (v != v) return ~uint32_t{0};
  const auto bits = std::bit_cast<uint32_t>(v == 0 ? 0.0f : v);
  return bits & kTop ? ~bits : bits | kTop;
}

}  // namespace tenon::cuda::ordered
