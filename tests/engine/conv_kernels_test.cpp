// Convolutions against their definition: by whichever kernel is the fastest here, and tiled.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/kernels/conv.h"
#include "engine/kernels/tiled_conv.h"
#include "tests/engine/kernel_values.h"

namespace tenon::kernels {
namespace {

ConvShape conv_shape(int64_t n, int64_t ic, int64_t h, int64_t w, int64_t oc, int64_t kernel, int64_t stride,
                     int64_t pad, int64_t dilation = 1, int64_t groups = 1, bool bias = true) {
  auto out = [&](int64_t in) { return (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1; };
  return {n, ic, h, w, oc, out(h), out(w), kernel, kernel, stride, stride, pad, pad, dilation, dilation, groups, bias};
}

/// The definition of a convolution, with an accumulator for each of its three passes.
struct Reference {
  std::vector<double> y, gx, gw, gb;
  Reference(const ConvShape& s, const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& b,
            const std::vector<float>& gy)
      : y(gy.size()), gx(x.size()), gw(w.size()), gb(b.size()) {
    int64_t gi = s.ic / s.groups, go = s.oc / s.groups;
    for (int64_t n = 0; n < s.n; ++n)
      for (int64_t oy = 0; oy < s.oh; ++oy)
        for (int64_t ox = 0; ox < s.ow; ++ox)
          for (int64_t o = 0; o < s.oc; ++o) {
            auto out = static_cast<size_t>(((n * s.oh + oy) * s.ow + ox) * s.oc + o);
            if (s.bias) y[out] += b[static_cast<size_t>(o)], gb[static_cast<size_t>(o)] += gy[out];
            for (int64_t c = 0; c < gi; ++c)
              for (int64_t ky = 0; ky < s.kh; ++ky)
                for (int64_t kx = 0; kx < s.kw; ++kx) {
                  int64_t iy = oy * s.sh - s.ph + ky * s.dh, ix = ox * s.sw - s.pw + kx * s.dw;
                  if (iy < 0 || iy >= s.ih || ix < 0 || ix >= s.iw) continue;
                  auto in = static_cast<size_t>(((n * s.ih + iy) * s.iw + ix) * s.ic + o / go * gi + c),
                       at = static_cast<size_t>(((o * gi + c) * s.kh + ky) * s.kw + kx);
                  y[out] += double(x[in]) * w[at];
                  gx[in] += double(gy[out]) * w[at];
                  gw[at] += double(gy[out]) * x[in];
                }
          }
  }
};

/// Working memory of a pass, as large as it asks for and not a byte more.
template <class T>
std::vector<char> room(const ConvShape& s, ConvPass pass) {
  return std::vector<char>(conv2d_workspace<T>(s, pass));
}

class Conv : public testing::TestWithParam<ConvShape> {
 protected:
  ConvShape s = GetParam();
  std::vector<float> x = uniform_values(s.n * s.ih * s.iw * s.ic, 1),
                     w = uniform_values(s.oc * s.ic / s.groups * s.kh * s.kw, 2),
                     b = uniform_values(s.bias ? s.oc : 0, 3), gy = uniform_values(s.n * s.oh * s.ow * s.oc, 4);
};

TEST_P(Conv, FollowsTheDefinition) {
  Reference want(s, x, w, b, gy);
  auto check = [&](auto one, double tolerance) {
    using T = decltype(one);
    std::vector<T> tx(x.begin(), x.end()), tw(w.begin(), w.end()), tb(b.begin(), b.end()), tgy(gy.begin(), gy.end());
    std::vector<T> y(gy.size()), gx(x.size()), gw(w.size()), gb(b.size());
    conv2d_forward<T>(s, tx.data(), tw.data(), tb.data(), y.data(), room<T>(s, ConvPass::forward).data());
    expect_near(y, want.y, tolerance, "forward");
    conv2d_backward_data<T>(s, tgy.data(), tw.data(), gx.data(), room<T>(s, ConvPass::backward_data).data());
    expect_near(gx, want.gx, tolerance, "input gradient");
    conv2d_backward_weights<T>(s, tx.data(), tgy.data(), gw.data(), gb.data(),
                               room<T>(s, ConvPass::backward_weights).data());
    expect_near(gw, want.gw, tolerance, "weight gradient");
    expect_near(gb, want.gb, tolerance, "bias gradient");
  };
  check(float{}, 5e-5);
  check(double{}, 1e-12);
}

TEST_P(Conv, SameBitsAtAnyThreadCount) {
  expect_thread_invariant([&] {
    std::vector<float> all(gy.size() + x.size() + w.size() + b.size());
    float *y = all.data(), *gx = y + gy.size(), *gw = gx + x.size(), *gb = gw + w.size();
    conv2d_forward<float>(s, x.data(), w.data(), b.data(), y, room<float>(s, ConvPass::forward).data());
    conv2d_backward_data<float>(s, gy.data(), w.data(), gx, room<float>(s, ConvPass::backward_data).data());
    conv2d_backward_weights<float>(s, x.data(), gy.data(), gw, gb, room<float>(s, ConvPass::backward_weights).data());
    return all;
  });
}
INSTANTIATE_TEST_SUITE_P(Shapes, Conv,
                         testing::Values(conv_shape(1, 1, 5, 5, 3, 3, 1, 1), conv_shape(11, 1, 14, 14, 32, 3, 1, 1),
                                         conv_shape(10, 16, 7, 9, 24, 3, 1, 1), conv_shape(9, 3, 12, 10, 8, 3, 2, 1),
                                         conv_shape(4, 6, 8, 8, 4, 5, 1, 0, 1, 2),
                                         conv_shape(5, 4, 9, 9, 4, 3, 1, 2, 2, 1, false),
                                         conv_shape(17, 8, 6, 6, 16, 1, 1, 0), conv_shape(3, 5, 6, 5, 7, 2, 3, 1),
                                         conv_shape(13, 32, 14, 14, 64, 3, 1, 1),
                                         // few images, in rows
                                         conv_shape(1, 32, 33, 31, 48, 3, 1, 1), conv_shape(2, 24, 40, 40, 33, 5, 2, 2),
                                         conv_shape(1, 48, 30, 30, 48, 3, 1, 2, 2, 4, false)));

std::vector<float> tiled_weights(const ConvShape& s, ConvPass pass, const std::vector<float>& w) {
  std::vector<float> packed(tiled_conv_weight_bytes(s, pass) / sizeof(float));
  tiled_conv_pack(s, pass, w.data(), packed.data());
  return packed;
}
/// An image's bits are those that it has alone.
template <class Convolve>
void expect_the_bits_of_one_image(const ConvShape& s, const std::vector<float>& from, const std::vector<float>& all,
                                  const Convolve& convolve) {
  ConvShape one = s;
  one.n = 1;
  const size_t read = from.size() / static_cast<size_t>(s.n), made = all.size() / static_cast<size_t>(s.n);
  std::vector<float> alone(made);
  for (size_t n = 0; n < static_cast<size_t>(s.n); ++n) {
    convolve(one, from.data() + n * read, alone.data());
    EXPECT_EQ(0, std::memcmp(alone.data(), all.data() + n * made, made * sizeof(float))) << "image " << n;
  }
}

class TiledConv : public Conv {};
TEST_P(TiledConv, FollowsTheDefinition) {
  const Reference want(s, x, w, b, gy);
  std::vector<float> y(gy.size()), gx(x.size()), gw(w.size()), gb(b.size());
  ASSERT_TRUE(tiled_conv_fits(s, ConvPass::forward));
  auto packed = tiled_weights(s, ConvPass::forward, w);
  const auto forward = [&](const ConvShape& some, const float* from, float* to) {
    tiled_conv_forward(some, from, packed.data(), b.data(), to);
  };
  forward(s, x.data(), y.data());
  expect_near(y, want.y, 5e-5, "forward");
  expect_the_bits_of_one_image(s, x, y, forward);
  if (tiled_conv_fits(s, ConvPass::backward_data)) {
    packed = tiled_weights(s, ConvPass::backward_data, w);
    const auto backward = [&](const ConvShape& some, const float* from, float* to) {
      tiled_conv_backward_data(some, from, packed.data(), to);
    };
    backward(s, gy.data(), gx.data());
    expect_near(gx, want.gx, 5e-5, "input gradient");
    expect_the_bits_of_one_image(s, gy, gx, backward);
  }
  ASSERT_TRUE(tiled_conv_fits(s, ConvPass::backward_weights));
  expect_thread_invariant([&] {
    tiled_conv_backward_weights(s, x.data(), gy.data(), gw.data(), gb.data());
    return gw;
  });
  expect_near(gw, want.gw, 5e-5, "weight gradient");
  expect_near(gb, want.gb, 5e-5, "bias gradient");
}
INSTANTIATE_TEST_SUITE_P(Shapes, TiledConv,
                         testing::Values(conv_shape(10, 16, 7, 9, 24, 3, 1, 1), conv_shape(3, 20, 11, 8, 50, 3, 2, 1),
                                         conv_shape(2, 64, 5, 6, 33, 1, 1, 0), conv_shape(2, 48, 9, 4, 19, 5, 1, 2),
                                         conv_shape(2, 17, 40, 33, 16, 3, 1, 1), conv_shape(2, 16, 6, 6, 16, 3, 2, 0),
                                         conv_shape(3, 56, 7, 7, 40, 1, 2, 0, 1, 1, false),
                                         conv_shape(9, 24, 2, 3, 16, 5, 1, 3), conv_shape(2, 64, 16, 200, 16, 3, 1, 1),
                                         conv_shape(1, 48, 1, 1, 16, 1, 5, 2)));
TEST(TiledConv, OfNothingIsZero) {
  ConvShape none = conv_shape(0, 16, 8, 8, 16, 3, 1, 1), empty = conv_shape(2, 16, 2, 2, 16, 3, 1, 0);
  ASSERT_EQ(empty.oh, 0);
  for (const ConvShape& s : {none, empty}) {
    std::vector<float> x(2 * 16 * 4), gw(16 * 16 * 9, 7.0f), gb(16, 7.0f);
    tiled_conv_backward_weights(s, x.data(), x.data(), gw.data(), gb.data());
    EXPECT_EQ(std::count(gw.begin(), gw.end(), 0.0f), 16 * 16 * 9);
    EXPECT_EQ(std::count(gb.begin(), gb.end(), 0.0f), 16);
  }
  ConvShape padded = conv_shape(2, 16, 1, 9, 16, 3, 1, 1);
  padded.oh = 0;
  const std::vector<float> weights(tiled_conv_weight_bytes(padded, ConvPass::forward) / sizeof(float));
  tiled_conv_forward(padded, nullptr, weights.data(), nullptr, nullptr);  // and no pixel is one
  none.kh = 0;
  EXPECT_FALSE(tiled_conv_fits(none, ConvPass::forward)) << "nobody would write the result";
}

}  // namespace
}  // namespace tenon::kernels
