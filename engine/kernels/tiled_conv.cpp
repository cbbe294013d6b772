#include "engine/kernels/tiled_conv.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/parallel.h"
#include "engine/kernels/dnnl_matmul.h"
#include "engine/kernels/lanes.h"

namespace tenon::kernels {
namespace {

using Lane = Lanes<float>;
constexpr int kPixels = 6;                   // of the result in registers: 12 sums, two lanes of weights, one input
constexpr int64_t kStrip = 2 * Lane::count;  // channels of the result in registers
constexpr int64_t kChunk = 96;               // pixels that go through the weights together
constexpr int64_t kPadded = 512 * 1024 / 4;  // numbers of the image that are copied with their padding at a time

int64_t strips(int64_t channels) { return (channels + kStrip - 1) / kStrip * kStrip; }

/// What the gradient of the input is, for stride 1: a convolution of the output's gradient by the kernel turned round,
/// from the output's channels to the input's.
ConvShape turned_conv(const ConvShape& s) {
  ConvShape t = s;
  std::swap(t.ic, t.oc);
  std::swap(t.ih, t.oh);
  std::swap(t.iw, t.ow);
  t.ph = s.kh - 1 - s.ph;
  t.pw = s.kw - 1 - s.pw;
  t.pb = -1;
  t.bias = false;
  return t;
}

/// R pixels of the result, a strip wide: what they begin with (null: zero), plus `depth` products of each.
template <int R>
void pixels(int64_t depth, const float* const* inputs, const float* weights, const float* const* begin,
            float* const* results) {
  Lane acc[R][2];
  const float* x[R];
  for (int r = 0; r < R; ++r) {
    x[r] = inputs[r];
    acc[r][0] = acc[r][1] = Lane::zero();
  }
  for (int64_t p = 0; p < depth; ++p, weights += kStrip) {
    const Lane left = Lane::load(weights), right = Lane::load(weights + Lane::count);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      acc[r][0].add_product(x[r][p], left);
      acc[r][1].add_product(x[r][p], right);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int half = 0; half < 2; ++half) {
      if (begin) acc[r][half].add(Lane::load(begin[r] + half * Lane::count));
      acc[r][half].store(results[r] + half * Lane::count);
    }
}

/// Some images, or some rows of one, as they are read: with their padding where there is any.
struct Frame {
  const float* at;
  int64_t row, image;  ///< steps between rows and between images
};

/// Pixels [first, last) of the result of a frame whose pixels lie one behind the other in `y`.
void chunk(const ConvShape& s, const Frame& from, int64_t rows, int64_t first, int64_t last, const float* packed,
           const float* bias, float* y) {
  const float* inputs[kChunk];
  for (int64_t i = first; i < last; ++i) {
    const int64_t image = i / (rows * s.ow), line = i / s.ow % rows, column = i % s.ow;
    inputs[i - first] = from.at + image * from.image + line * s.sh * from.row + column * s.sw * s.ic;
  }
  const int64_t depth = s.kw * s.ic, wide = strips(s.oc);
  float padded_bias[kStrip];
  for (int64_t line = 0; line < s.kh; ++line)
    for (int64_t j = 0; j < s.oc; j += kStrip) {
      const float* weights = packed + (line * wide + j) * depth;
      const int64_t channels = std::min(kStrip, s.oc - j);
      if (line == 0 && bias)
        for (int64_t o = 0; o < kStrip; ++o) padded_bias[o] = o < channels ? bias[j + o] : 0;
      for (int64_t i = first; i < last; i += kPixels) {
        const int64_t count = std::min<int64_t>(kPixels, last - i);
        const float *x[kPixels], *begin[kPixels];
        float *to[kPixels], beside[kPixels][kStrip];
        for (int64_t r = 0; r < count; ++r) {
          x[r] = inputs[i - first + r] + line * s.dh * from.row;
          float* result = y + (i + r) * s.oc + j;
          to[r] = channels == kStrip ? result : beside[r];
          if (channels < kStrip && line > 0) std::copy_n(result, channels, beside[r]);
          begin[r] = line == 0 ? padded_bias : to[r];
        }
        with_count(count, [&](auto r) { pixels<r>(depth, x, weights, line > 0 || bias ? begin : nullptr, to); });
        if (channels < kStrip)
          for (int64_t r = 0; r < count; ++r) std::copy_n(beside[r], channels, y + (i + r) * s.oc + j);
      }
    }
}

/// Rows [first, first + rows) of what the kernel sees of `images` images, zeros where that is padding.
void copy_padded(const ConvShape& s, const float* x, int64_t images, int64_t first, int64_t rows, int64_t width,
                 float* to) {
  const int64_t left = std::min(s.pw, width), shown = std::min(width - left, s.iw), line = width * s.ic;
  for (int64_t n = 0; n < images; ++n)
    for (int64_t r = 0; r < rows; ++r, to += line) {
      const int64_t iy = first + r - s.ph;
      if (iy < 0 || iy >= s.ih) {
        std::fill_n(to, line, 0.0f);
        continue;
      }
      std::fill_n(to, left * s.ic, 0.0f);
      std::copy_n(x + (n * s.ih + iy) * s.iw * s.ic, shown * s.ic, to + left * s.ic);
      std::fill_n(to + (left + shown) * s.ic, (width - left - shown) * s.ic, 0.0f);
    }
}

void convolve(const ConvShape& s, const float* x, const float* packed, const float* bias, float* y) {
  if (s.n == 0 || s.oh == 0 || s.ow == 0) return;
  const int64_t width = (s.ow - 1) * s.sw + s.kw, reach = (s.kh - 1) * s.dh + 1, height = (s.oh - 1) * s.sh + reach;
  const auto all_pixels = [&](const Frame& from, int64_t images, int64_t rows, float* to) {
    for (int64_t i = 0; i < images * rows * s.ow; i += kChunk)
      chunk(s, from, rows, i, std::min(i + kChunk, images * rows * s.ow), packed, bias, to);
  };
  if (s.ph == 0 && s.pw == 0 && width <= s.iw && height <= s.ih)
    return all_pixels({x, s.iw * s.ic, s.ih * s.iw * s.ic}, s.n, s.oh, y);
  thread_local std::vector<float> padded;  // kept for the next one; see PackingRoom of tiled_gemm.cpp
  const int64_t line = width * s.ic, image_y = s.oh * s.ow * s.oc, image_x = s.ih * s.iw * s.ic;
  const int64_t rows = std::clamp<int64_t>((kPadded / line - reach) / s.sh + 1, 1, s.oh);
  const int64_t group = rows < s.oh ? 1 : std::clamp<int64_t>(kPadded / (height * line), 1, s.n);
  for (int64_t n = 0; n < s.n; n += group)
    for (int64_t first = 0; first < s.oh; first += rows) {
      const int64_t images = std::min(group, s.n - n), some = std::min(rows, s.oh - first),
                    seen = (some - 1) * s.sh + reach;
      padded.resize(std::max<size_t>(padded.size(), static_cast<size_t>(images * seen * line)));
      copy_padded(s, x + n * image_x, images, first * s.sh, seen, width, padded.data());
      all_pixels({padded.data(), line, seen * line}, images, some, y + n * image_y + first * s.ow * s.oc);
    }
  if (static_cast<int64_t>(padded.size()) > 4 * kPadded) std::vector<float>().swap(padded);
}

/// Column i of `count` of the rows of a strip's channels, `row` apart, goes to place(i), with zeros where the strip has
/// fewer channels than it has room for.
template <class Place>
void turn_channels(const float* rows, int64_t row, int64_t channels, int64_t count, const Place& place) {
  int64_t i = 0;
#if defined(__AVX2__)
  if (channels == kStrip)
    for (; i + 8 <= count; i += 8)
      for (int64_t half = 0; half < 2; ++half) {
        __m256 turned[8];
        turn_8x8(rows + half * 8 * row + i, row, turned);
        for (int64_t k = 0; k < 8; ++k) _mm256_storeu_ps(place(i + k) + half * 8, turned[k]);
      }
#endif
  for (; i < count; ++i) {
    float* to = place(i);
    for (int64_t o = 0; o < kStrip; ++o) to[o] = o < channels ? rows[o * row + i] : 0;
  }
}

constexpr int64_t kInputs = 18, kOutputs = 2 * kStrip;  // channels of a thread's share of the weights' gradient
constexpr int64_t kPlaces = 192;                        // pixels that it sums up before it adds them to the others

/// Pixels of a row that a tap sees: inputs and gradients, each a step behind the one before.
struct Run {
  const float *x, *gy;
  int64_t count;
};

/// R input channels by a strip of output channels: the sums over the runs, added to `sum` or in its place.
template <int R>
void correlate(const Run* runs, int64_t count, int64_t x_step, int64_t gy_step, int64_t input, int64_t output,
               float* sum, int64_t row, bool add) {
  Lane acc[R][2];
  for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = Lane::zero();
  for (int64_t i = 0; i < count; ++i) {
    const float *x = runs[i].x + input, *gy = runs[i].gy + output;
    for (int64_t p = runs[i].count; p > 0; --p, x += x_step, gy += gy_step) {
      const Lane left = Lane::load(gy), right = Lane::load(gy + Lane::count);
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        acc[r][0].add_product(x[r], left);
        acc[r][1].add_product(x[r], right);
      }
    }
  }
  for (int r = 0; r < R; ++r)
    for (int half = 0; half < 2; ++half) {
      float* to = sum + r * row + half * Lane::count;
      if (add) acc[r][half].add(Lane::load(to));
      acc[r][half].store(to);
    }
}

/// A thread's share of the weights' gradient: input channels [c, c + inputs) by output channels [o, o + outputs). What
/// is read of both images is copied first, a few rows at a time: their channels lie a power of two apart.
class WeightShare {
 public:
  WeightShare(const ConvShape& s, int64_t c, int64_t o)
      : s_(s), c_(c), o_(o), inputs_(std::min(kInputs, s.ic - c)), outputs_(std::min(kOutputs, s.oc - o)) {}

  /// sums[tap][c][o], where an output channel that does not exist takes part with zeros.
  void compute(const float* x, const float* gy, float* sums) {
    if (s_.n == 0 || s_.oh == 0 || s_.ow == 0) {
      std::fill_n(sums, s_.kh * s_.kw * inputs_ * kOutputs, 0.0f);
      return;
    }
    const int64_t rows = std::clamp<int64_t>(kPlaces / s_.ow, 1, s_.oh);
    const int64_t group = rows < s_.oh ? 1 : std::clamp<int64_t>(kPlaces / (s_.oh * s_.ow), 1, s_.n);
    bool add = false;
    for (int64_t n = 0; n < s_.n; n += group)
      for (int64_t y = 0; y < s_.oh; y += rows, add = true) {
        copy(x, gy, n, std::min(s_.n, n + group), y, std::min(s_.oh, y + rows));
        for (int64_t tap = 0; tap < s_.kh * s_.kw; ++tap) add_tap(tap, sums, add);
      }
  }
  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }

 private:
  void copy(const float* x, const float* gy, int64_t n0, int64_t n1, int64_t y0, int64_t y1) {
    n0_ = n0, n1_ = n1, y0_ = y0, y1_ = y1;
    i0_ = std::clamp<int64_t>(y0 * s_.sh - s_.ph, 0, s_.ih);
    i1_ = std::clamp<int64_t>((y1 - 1) * s_.sh - s_.ph + s_.kh, i0_, s_.ih);
    const int64_t seen = (i1_ - i0_) * s_.iw, made = (y1 - y0) * s_.ow;
    x_.resize(std::max<size_t>(x_.size(), static_cast<size_t>((n1 - n0) * seen * inputs_)));
    gy_.resize(std::max<size_t>(gy_.size(), static_cast<size_t>((n1 - n0) * made * kOutputs)));
    float *to = x_.data(), *gradient = gy_.data();
    for (int64_t n = n0; n < n1; ++n) {
      const float* from = x + (n * s_.ih + i0_) * s_.iw * s_.ic + c_;
      for (int64_t i = 0; i < seen; ++i, to += inputs_) std::copy_n(from + i * s_.ic, inputs_, to);
      from = gy + (n * s_.oh + y0) * s_.ow * s_.oc + o_;
      for (int64_t i = 0; i < made; ++i, gradient += kOutputs) {
        std::copy_n(from + i * s_.oc, outputs_, gradient);
        std::fill_n(gradient + outputs_, kOutputs - outputs_, 0.0f);
      }
    }
  }

  void add_tap(int64_t tap, float* sums, bool add) {
    const int64_t ky = tap / s_.kw, kx = tap % s_.kw;
    // Pixels whose tap lies within the image: 0 <= ox * sw + kx - pw < iw.
    const int64_t left = std::max<int64_t>(0, (s_.pw - kx + s_.sw - 1) / s_.sw),
                  right = std::min(s_.ow, (s_.iw - 1 - kx + s_.pw + s_.sw) / s_.sw);
    runs_.clear();
    for (int64_t n = n0_; n < n1_ && left < right; ++n)
      for (int64_t y = y0_; y < y1_; ++y) {
        const int64_t iy = y * s_.sh + ky - s_.ph;
        if (iy < 0 || iy >= s_.ih) continue;
        const int64_t row = (n - n0_) * (i1_ - i0_) + iy - i0_, made = (n - n0_) * (y1_ - y0_) + y - y0_;
        runs_.push_back({x_.data() + (row * s_.iw + left * s_.sw + kx - s_.pw) * inputs_,
                         gy_.data() + (made * s_.ow + left) * kOutputs, right - left});
      }
    for (int64_t c = 0; c < inputs_; c += kPixels)
      for (int64_t o = 0; o < outputs_; o += kStrip)
        with_count(std::min<int64_t>(kPixels, inputs_ - c), [&](auto r) {
          correlate<r>(runs_.data(), static_cast<int64_t>(runs_.size()), inputs_ * s_.sw, kOutputs, c, o,
                       sums + (tap * inputs_ + c) * kOutputs + o, kOutputs, add);
        });
  }

  const ConvShape& s_;
  int64_t c_, o_, inputs_, outputs_, n0_ = 0, n1_ = 0, y0_ = 0, y1_ = 0, i0_ = 0, i1_ = 0;
  std::vector<float> x_, gy_;
  std::vector<Run> runs_;
};

/// The gradient of the bias: sums over an image, and those of the images, in order.
void sum_channels(const ConvShape& s, const float* gy, float* gb) {
  parallel_for((s.oc + kStrip - 1) / kStrip, 1, [&](int64_t strip, int64_t last) {
    for (; strip < last; ++strip) {
      const int64_t o = strip * kStrip, channels = std::min(kStrip, s.oc - o);
      std::fill_n(gb + o, channels, 0.0f);
      for (int64_t n = 0; n < s.n; ++n) {
        float of_image[kStrip] = {};
        for (int64_t i = n * s.oh * s.ow; i < (n + 1) * s.oh * s.ow; ++i)
          for (int64_t j = 0; j < channels; ++j) of_image[j] += gy[i * s.oc + o + j];
        for (int64_t j = 0; j < channels; ++j) gb[o + j] += of_image[j];
      }
    }
  });
}

}  // namespace

bool tiles_conv(const ConvShape& s, ConvPass pass) { return !packs_products() && tiled_conv_fits(s, pass); }

bool tiled_conv_fits(const ConvShape& s, ConvPass pass) {
  constexpr int64_t kLeast = 48;  // numbers of a kernel's row, below which a pixel's start and end take the most
  if (s.bf16 || s.groups > 1 || s.dw > 1) return false;
  if (pass == ConvPass::forward) return s.kh > 0 && s.kw * s.ic >= kLeast;
  if (pass == ConvPass::backward_weights) return s.dh == 1 && s.ic >= 2 * kPixels && s.oc >= kStrip;
  return pass == ConvPass::backward_data && s.kw * s.oc >= kLeast && s.sh == 1 && s.sw == 1 && s.dh == 1 &&
         s.ph < s.kh && s.pw < s.kw;
}

size_t tiled_conv_weight_bytes(const ConvShape& s, ConvPass pass) {
  const bool forward = pass == ConvPass::forward;
  return static_cast<size_t>(s.kh * s.kw * (forward ? s.ic * strips(s.oc) : s.oc * strips(s.ic))) * sizeof(float);
}

void tiled_conv_pack(const ConvShape& s, ConvPass pass, const float* plain, float* packed) {
  const bool forward = pass == ConvPass::forward;
  const int64_t from = forward ? s.ic : s.oc, to = forward ? s.oc : s.ic, taps = s.kh * s.kw, wide = strips(to);
  parallel_for(wide / kStrip, 1, [&](int64_t strip, int64_t last) {
    for (; strip < last; ++strip) {
      const int64_t j = strip * kStrip, channels = std::min(kStrip, to - j);
      const auto place = [&](int64_t c, int64_t tap) {
        return packed + ((tap / s.kw * wide + j) * s.kw + tap % s.kw * kStrip) * from + c * kStrip;
      };
      if (forward)
        turn_channels(plain + j * s.ic * taps, s.ic * taps, channels, s.ic * taps,
                      [&](int64_t i) { return place(i / taps, i % taps); });
      else
        for (int64_t c = 0; c < from; ++c)
          turn_channels(plain + (c * s.ic + j) * taps, taps, channels, taps,
                        [&](int64_t i) { return place(c, taps - 1 - i); });
    }
  });
}

void tiled_conv_forward(const ConvShape& s, const float* x, const float* packed, const float* bias, float* y) {
  convolve(s, x, packed, s.bias ? bias : nullptr, y);
}

void tiled_conv_backward_data(const ConvShape& s, const float* gy, const float* packed, float* gx) {
  convolve(turned_conv(s), gy, packed, nullptr, gx);
}

void tiled_conv_backward_weights(const ConvShape& s, const float* x, const float* gy, float* gw, float* gb) {
  const int64_t taps = s.kh * s.kw, across = (s.ic + kInputs - 1) / kInputs, down = (s.oc + kOutputs - 1) / kOutputs;
  parallel_for(across * down, 1, [&](int64_t i, int64_t last) {
    std::vector<float> sums(static_cast<size_t>(taps * kInputs * kOutputs));
    for (; i < last; ++i) {
      const int64_t c = i % across * kInputs, o = i / across * kOutputs;
      WeightShare share(s, c, o);
      share.compute(x, gy, sums.data());
      for (int64_t r = 0; r < share.outputs(); ++r) {
        float* to = gw + ((o + r) * s.ic + c) * taps;
        for (int64_t k = 0; k < share.inputs(); ++k)
          for (int64_t tap = 0; tap < taps; ++tap, ++to)
            *to = sums[static_cast<size_t>((tap * share.inputs() + k) * kOutputs + r)];
      }
    }
  });
  if (s.bias) sum_channels(s, gy, gb);
}

}  // namespace tenon::kernels
