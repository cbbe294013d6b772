#include "engine/formats/quant_grid.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/random.h"

namespace tenon::formats {
namespace {

Tensor matrix(const Shape& size, const std::vector<float>& values) {
  Tensor t = empty(size);
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}
Tensor normal(const Shape& size) {
  Tensor t = empty(size);
  Philox random{7, 8};
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<float>()[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)));
  return t;
}

TEST(QuantGrid, an_asymmetric_grid_covers_the_range_and_meets_zero) {
  const QuantGrid g = asymmetric_grid(-1, 4.1, 8);
  EXPECT_FLOAT_EQ(g.scale, 5.1f / 255);
  EXPECT_EQ(g.zero, 50);
  EXPECT_EQ(g.quantized(0), 50);
  EXPECT_EQ(g.value(50), 0);
  EXPECT_EQ(g.quantized(-1), 0);
  EXPECT_EQ(g.quantized(4.1f), 255);
  EXPECT_EQ(g.quantized(-9), 0) << "cut off";
  EXPECT_EQ(g.quantized(9), 255);
}

TEST(QuantGrid, ranges_on_one_side_reach_to_zero) {
  EXPECT_EQ(asymmetric_grid(2, 5.1, 8).zero, 0);
  EXPECT_FLOAT_EQ(asymmetric_grid(2, 5.1, 8).scale, 0.02f);
  EXPECT_EQ(asymmetric_grid(-5.1, -2, 8).zero, 255);
  EXPECT_EQ(asymmetric_grid(0, 0, 8).scale, 1);
  EXPECT_EQ(asymmetric_grid(0, 1e-44, 8).scale, 1) << "no float divides by that";
}

TEST(QuantGrid, halves_go_to_the_even_integer) {
  QuantGrid g;
  g.scale = 2;
  EXPECT_EQ(g.quantized(1), 0);
  EXPECT_EQ(g.quantized(3), 2);
  EXPECT_EQ(g.quantized(5), 2);
  EXPECT_EQ(g.quantized(-3), -2);
}

TEST(QuantGrid, a_symmetric_grid_leaves_the_lowest_integer_out) {
  const QuantGrid g = symmetric_grid(2.54, 8);
  EXPECT_FLOAT_EQ(g.scale, 0.02f);
  EXPECT_EQ(g.zero, 0);
  EXPECT_EQ(g.quantized(-100), -127);
  EXPECT_EQ(g.quantized(100), 127);
}

TEST(QuantGrid, every_channel_has_a_scale_of_its_own) {
  const Tensor w = matrix({2, 3}, {1.27f, -0.5f, 0, 127, -254, 12});
  const QuantizedWeight rows = quantize_channels(w, 0);
  ASSERT_EQ(rows.scale.size(), Shape{2});
  EXPECT_FLOAT_EQ(rows.scale.data<float>()[0], 0.01f);
  EXPECT_FLOAT_EQ(rows.scale.data<float>()[1], 2);
  const std::vector<int8_t> expected{127, -50, 0, 64, -127, 6};
  EXPECT_EQ(std::vector<int8_t>(rows.values.data<int8_t>(), rows.values.data<int8_t>() + 6), expected);
  const QuantizedWeight columns = quantize_channels(w, 1);
  ASSERT_EQ(columns.scale.size(), Shape{3});
  EXPECT_FLOAT_EQ(columns.scale.data<float>()[0], 1);
  EXPECT_EQ(columns.values.data<int8_t>()[0], 1);
  EXPECT_EQ(columns.values.data<int8_t>()[4], -127);
  const QuantizedWeight one = quantize_channels(w, -1);
  ASSERT_EQ(one.scale.ndim(), 0);
  EXPECT_FLOAT_EQ(one.scale.data<float>()[0], 2);
}

double group_error(const Tensor& w, const QuantizedWeight& q, int axis, int64_t group) {
  double most = 0;
  for (int64_t r = 0; r < w.size(0); ++r)
    for (int64_t c = 0; c < w.size(1); ++c) {
      const int64_t at = axis == 0 ? r / group * w.size(1) + c : r * q.scale.size(1) + c / group;
      const int64_t i = r * w.size(1) + c;
      const float back =
          static_cast<float>(q.values.data<uint8_t>()[i] - q.zero.data<uint8_t>()[at]) * q.scale.data<float>()[at];
      most = std::max<double>(most, std::abs(w.data<float>()[i] - back) / q.scale.data<float>()[at]);
    }
  return most;
}

TEST(QuantGrid, groups_lie_along_either_axis_and_the_last_may_be_short) {
  const Tensor w = normal({5, 40});
  const QuantizedWeight along = quantize_groups(w, 1, 16), across = quantize_groups(w, 0, 2);
  EXPECT_EQ(along.scale.size(), (Shape{5, 3}));
  EXPECT_EQ(across.scale.size(), (Shape{3, 40}));
  EXPECT_EQ(along.zero.size(), along.scale.size());
  for (const Tensor* t : {&along.values, &across.values, &along.zero, &across.zero})
    for (int64_t i = 0; i < t->numel(); ++i) EXPECT_LE(t->data<uint8_t>()[i], 15);
  // Half a step where nothing is cut off; an end that is worth cutting loses a little more.
  EXPECT_LT(group_error(w, along, 1, 16), 3);
  EXPECT_LE(group_error(w, across, 0, 2), 1);
}

TEST(QuantGrid, an_outlier_is_cut_for_the_sake_of_the_others) {
  std::vector<float> values(512);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 16) / 15;
  values.back() = 1.3f;
  const QuantizedWeight q = quantize_groups(matrix({1, 512}, values), 1, 512);
  EXPECT_LT(q.scale.data<float>()[0], 1.3f / 15 * 0.9f);
  EXPECT_NEAR(q.scale.data<float>()[0], 1.0f / 15, 0.008f);
}

TEST(QuantGrid, a_weight_that_is_not_finite_is_refused) {
  const Tensor w = matrix({1, 2}, {1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_THROW(quantize_channels(w, 0), Error);
  EXPECT_THROW(quantize_groups(w, 1, 16), Error);
}

}  // namespace
}  // namespace tenon::formats
