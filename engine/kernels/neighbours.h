#pragma once
#include <cstdint>

namespace tenon::kernels {

// Sums run in eight lanes that are added up in order: their bits depend on the numbers alone.

/// |a - b|^2 of two rows of `width` numbers.
float squared_distance(const float* a, const float* b, int64_t width);

/// What pushes a point of t-SNE apart from others, with q = 1 / (1 + |a - b|^2): the sums of q and of q^2 (a - b).
struct Push {
  float q = 0, x = 0, y = 0;
};
inline constexpr int64_t kPushLanes = 8;
/// Of the point (x, y) from the `n` points (xs, ys), n a multiple of kPushLanes.
Push push_apart(float x, float y, const float* xs, const float* ys, int64_t n);

}  // namespace tenon::kernels
