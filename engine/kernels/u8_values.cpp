#include "engine/kernels/u8_values.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/parallel.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kU8Grain = 32 * 1024;

// The loops know their numbers by value: a u8 that is written could be any variable's byte.
void quantize_span(const float* __restrict x, int64_t n, float scale, int32_t zero, uint8_t* __restrict q) {
  // A number below 2^22 is rounded to a whole one, halves to the even one, where it is added to and taken from this.
  constexpr float kWhole = 12582912.0f;
  const auto least = static_cast<float>(-zero), most = static_cast<float>(255 - zero);
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i] / scale;
    v = v > least ? v : least;
    v = v < most ? v : most;
    q[i] = static_cast<uint8_t>(static_cast<int32_t>((v + kWhole) - kWhole) + zero);
  }
}
void add_span(const uint8_t* __restrict a, float sa, int32_t za, const uint8_t* __restrict b, float sb, int32_t zb,
              int64_t n, float floor, float scale, int32_t zero, uint8_t* __restrict q) {
  // Pieces that stay near are summed in f32 and rounded by the loop that rounds all others.
  constexpr int64_t kPiece = 512;
  float sum[kPiece];
  for (int64_t at = 0; at < n; at += kPiece) {
    const int64_t count = n - at < kPiece ? n - at : kPiece;
    for (int64_t i = 0; i < count; ++i) {
      const float v = static_cast<float>(a[at + i] - za) * sa + static_cast<float>(b[at + i] - zb) * sb;
      sum[i] = v > floor ? v : floor;
    }
    quantize_span(sum, count, scale, zero, q + at);
  }
}
void dequantize_span(const uint8_t* __restrict q, int64_t n, float scale, int32_t zero, float* __restrict x) {
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(q[i] - zero) * scale;
}

}  // namespace

void quantize_u8(const float* x, int64_t n, float scale, int32_t zero, uint8_t* q) {
  parallel_for(n, kU8Grain, [&](int64_t i, int64_t e) { quantize_span(x + i, e - i, scale, zero, q + i); });
}

void add_u8(const U8Span& a, const U8Span& b, int64_t n, bool relu, float scale, int32_t zero, uint8_t* q) {
  const float floor = relu ? 0.0f : -std::numeric_limits<float>::infinity();
  parallel_for(n, kU8Grain, [&](int64_t i, int64_t e) {
    add_span(a.q + i, a.scale, a.zero, b.q + i, b.scale, b.zero, e - i, floor, scale, zero, q + i);
  });
}

void dequantize_u8(const uint8_t* q, int64_t n, float scale, int32_t zero, float* x) {
  parallel_for(n, kU8Grain, [&](int64_t i, int64_t e) { dequantize_span(q + i, e - i, scale, zero, x + i); });
}

void requantize_u8(const U8Span& x, int64_t n, float scale, int32_t zero, uint8_t* q) {
  uint8_t every[256], table[256];
  float value[256];
  for (int i = 0; i < 256; ++i) every[i] = static_cast<uint8_t>(i);
  dequantize_span(every, 256, x.scale, x.zero, value);
  quantize_span(value, 256, scale, zero, table);
  parallel_for(n, kU8Grain, [&](int64_t i, int64_t e) {
    for (; i < e; ++i) q[i] = table[x.q[i]];
  });
}

void average_u8(const PoolShape& s, const U8Span& x, bool padding, float scale, int32_t zero, uint8_t* q) {
  parallel_for(s.n * s.oh * s.ow, 1, [&](int64_t at, int64_t end) {
    std::vector<int32_t> sums(static_cast<size_t>(s.c));
    std::vector<float> means(sums.size());
    for (; at < end; ++at) {
      const int64_t image = at / (s.oh * s.ow), oy = at / s.ow % s.oh, ox = at % s.ow;
      std::fill(sums.begin(), sums.end(), 0);
      int32_t touched = 0;
      for (int64_t ky = 0; ky < s.kh; ++ky)
        for (int64_t kx = 0; kx < s.kw; ++kx) {
          const int64_t iy = oy * s.sh - s.ph + ky * s.dh, ix = ox * s.sw - s.pw + kx * s.dw;
          if (iy < 0 || iy >= s.ih || ix < 0 || ix >= s.iw) continue;
          ++touched;
          const uint8_t* from = x.q + ((image * s.ih + iy) * s.iw + ix) * s.c;
          for (int64_t c = 0; c < s.c; ++c) sums[static_cast<size_t>(c)] += from[c];
        }
      const auto count = static_cast<float>(padding ? s.kh * s.kw : touched);
      for (size_t c = 0; c < sums.size(); ++c)
        means[c] = static_cast<float>(sums[c] - touched * x.zero) * x.scale / count;
      quantize_span(means.data(), s.c, scale, zero, q + at * s.c);
    }
  });
}

}  // namespace tenon::kernels
