#include "engine/kernels/u8_values.h"

#include "core/parallel.h"

namespace tenon::kernels {
namespace {
constexpr int64_t kU8Grain = 32 * 1024;
}

void quantize_u8(const float* x, int64_t n, float scale, int32_t zero, uint8_t* q) {
  // A number below 2^22 is rounded to a whole one, halves to the even one, where it is added to and taken from this.
  constexpr float kWhole = 12582912.0f;
  const auto least = static_cast<float>(-zero), most = static_cast<float>(255 - zero);
  parallel_for(n, kU8Grain, [&](int64_t i, int64_t e) {
    for (; i < e; ++i) {
      float v = x[i] / scale;
      v = v > least ? v : least;
      v = v < most ? v : most;
      q[i] = static_cast<uint8_t>(static_cast<int32_t>((v + kWhole) - kWhole) + zero);
    }
  });
}

void dequantize_u8(const uint8_t* q, int64_t n, float scale, int32_t zero, float* x) {
  parallel_for(n, kU8Grain, [&](int64_t i, int64_t e) {
    for (; i < e; ++i) x[i] = static_cast<float>(q[i] - zero) * scale;
  });
}

}  // namespace tenon::kernels
