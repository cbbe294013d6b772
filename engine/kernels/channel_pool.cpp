#include "engine/kernels/channel_pool.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/parallel.h"

namespace tenon::kernels {
namespace {

/// Calls f(output, first pixel of the window's row, pixels, which lie `step` apart) for what every window sees.
template <class Start, class Tap, class End>
void each_window(const ChannelPool& p, float* y, const float* x, const Start& start, const Tap& tap, const End& end) {
  const ConvSizes& s = p.size;
  const int64_t c = p.channels;
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, s.ow * c * p.kh * p.kw));
  parallel_for(s.n * s.oh, grain, [&](int64_t row, int64_t last) {
    for (; row < last; ++row) {
      const int64_t oy = row % s.oh;
      const float* image = x + row / s.oh * s.ih * s.iw * c;
      for (int64_t ox = 0; ox < s.ow; ++ox) {
        float* out = y + (row * s.ow + ox) * c;
        start(out);
        for (int64_t ky = 0; ky < p.kh; ++ky) {
          const int64_t iy = oy * p.sh - s.top + ky * p.dh;
          if (iy < 0 || iy >= s.ih) continue;
          for (int64_t kx = 0; kx < p.kw; ++kx) {
            const int64_t ix = ox * p.sw - s.left + kx * p.dw;
            if (ix >= 0 && ix < s.iw) tap(out, image + (iy * s.iw + ix) * c);
          }
        }
        end(out, oy, ox);
      }
    }
  });
}

/// How many taps of a window lie in [low, high).
int64_t taps_within(int64_t begin, int64_t taps, int64_t step, int64_t low, int64_t high) {
  int64_t count = 0;
  for (int64_t k = 0; k < taps; ++k) count += begin + k * step >= low && begin + k * step < high;
  return count;
}

/// C channels, side by side; the copies overlap nowhere.
template <int C>
void interleave(int64_t pixels, int64_t plane, const float* __restrict x, float* __restrict y) {
  for (int64_t p = 0; p < pixels; ++p)
    for (int c = 0; c < C; ++c) y[p * C + c] = x[c * plane + p];
}

}  // namespace

void max_of_channels(const ChannelPool& p, const float* x, float* y) {
  const int64_t c = p.channels;
  each_window(
      p, y, x, [c](float* out) { std::fill_n(out, c, -INFINITY); },
      [c](float* out, const float* in) {
        for (int64_t i = 0; i < c; ++i) {
          const float v = in[i], m = out[i];
          out[i] = (v > m) | (v != v) ? v : m;
        }
      },
      [](float*, int64_t, int64_t) {});
}

void mean_of_channels(const ChannelPool& p, bool padding_counts, const float* x, float* y) {
  const ConvSizes& s = p.size;
  const int64_t c = p.channels, low_y = padding_counts ? -s.top : 0, low_x = padding_counts ? -s.left : 0,
                high_y = s.ih + (padding_counts ? s.bottom : 0), high_x = s.iw + (padding_counts ? s.right : 0);
  each_window(
      p, y, x, [c](float* out) { std::fill_n(out, c, 0.0f); },
      [c](float* out, const float* in) {
        for (int64_t i = 0; i < c; ++i) out[i] += in[i];
      },
      [&](float* out, int64_t oy, int64_t ox) {
        const int64_t count = taps_within(oy * p.sh - s.top, p.kh, p.dh, low_y, high_y) *
                              taps_within(ox * p.sw - s.left, p.kw, p.dw, low_x, high_x);
        const auto by = static_cast<float>(count);
        for (int64_t i = 0; i < c; ++i) out[i] /= by;
      });
}

void image_means(int64_t n, int64_t pixels, int64_t channels, const float* x, float* y) {
  constexpr int64_t kChannels = 64, kPixels = 64;  // sums of so many pixels are added up: errors stay small
  const int64_t blocks = (channels + kChannels - 1) / kChannels;
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, pixels * kChannels));
  parallel_for(n * blocks, grain, [&](int64_t b, int64_t last) {
    for (; b < last; ++b) {
      const int64_t first = b % blocks * kChannels, count = std::min(kChannels, channels - first);
      const float* image = x + b / blocks * pixels * channels + first;
      float sum[kChannels] = {};
      for (int64_t i = 0; i < pixels; i += kPixels) {
        float part[kChannels] = {};
        for (int64_t k = i; k < std::min(pixels, i + kPixels); ++k)
          for (int64_t j = 0; j < count; ++j) part[j] += image[k * channels + j];
        for (int64_t j = 0; j < count; ++j) sum[j] += part[j];
      }
      for (int64_t j = 0; j < count; ++j) y[b / blocks * channels + first + j] = sum[j] / static_cast<float>(pixels);
    }
  });
}

void channels_innermost(int64_t n, int64_t pixels, int64_t channels, const float* x, float* y) {
  constexpr int64_t kPixels = 4096, kBlock = 16;
  const int64_t pieces = (pixels + kPixels - 1) / kPixels;
  parallel_for(n * pieces, 2, [&](int64_t piece, int64_t last) {
    for (; piece < last; ++piece) {
      const int64_t image = piece / pieces, first = piece % pieces * kPixels, count = std::min(kPixels, pixels - first);
      const float* from = x + image * pixels * channels + first;
      float* to = y + (image * pixels + first) * channels;
      if (channels == 1)
        interleave<1>(count, pixels, from, to);
      else if (channels == 3)
        interleave<3>(count, pixels, from, to);
      else if (channels == 4)
        interleave<4>(count, pixels, from, to);
      else
        for (int64_t p0 = 0; p0 < count; p0 += kBlock)
          for (int64_t c = 0; c < channels; ++c)
            for (int64_t p = p0; p < std::min(count, p0 + kBlock); ++p) to[p * channels + c] = from[c * pixels + p];
    }
  });
}

void copy_runs(int64_t runs, int64_t each, const float* x, int64_t from, float* y, int64_t to) {
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, each));
  parallel_for(runs, grain, [&](int64_t r, int64_t last) {
    for (; r < last; ++r) std::memcpy(y + r * to, x + r * from, static_cast<size_t>(each) * sizeof(float));
  });
}

void shuffle_channels(int64_t pixels, int64_t groups, int64_t each, const float* x, float* y) {
  const int64_t c = groups * each, grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, c));
  parallel_for(pixels, grain, [&](int64_t p, int64_t last) {
    for (; p < last; ++p)
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t i = 0; i < each; ++i) y[p * c + i * groups + g] = x[p * c + g * each + i];
  });
}

}  // namespace tenon::kernels
