#include "engine/kernels/neighbours.h"

namespace tenon::kernels {
namespace {

constexpr int kSumLanes = static_cast<int>(kPushLanes);

float sum_of(const float (&lanes)[kSumLanes]) {
  float sum = 0;
  for (const float v : lanes) sum += v;
  return sum;
}

}  // namespace

float squared_distance(const float* a, const float* b, int64_t width) {
  float lanes[kSumLanes] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= width; i += kSumLanes)
    for (int k = 0; k < kSumLanes; ++k) {
      const float d = a[i + k] - b[i + k];
      lanes[k] += d * d;
    }
  for (int k = 0; i < width; ++i, ++k) {
    const float d = a[i] - b[i];
    lanes[k] += d * d;
  }
  return sum_of(lanes);
}

Push push_apart(float x, float y, const float* xs, const float* ys, int64_t n) {
  float q[kSumLanes] = {}, to_x[kSumLanes] = {}, to_y[kSumLanes] = {};
  for (int64_t i = 0; i < n; i += kSumLanes)
    for (int k = 0; k < kSumLanes; ++k) {
      const float dx = x - xs[i + k], dy = y - ys[i + k];
      const float near = 1 / (1 + dx * dx + dy * dy);
      q[k] += near;
      to_x[k] += near * near * dx;
      to_y[k] += near * near * dy;
    }
  return {sum_of(q), sum_of(to_x), sum_of(to_y)};
}

}  // namespace tenon::kernels
