#include "engine/formats/onnx/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "engine/ops/create.h"

namespace tenon::formats {
namespace {

CalibrationRange range_of_values(const char* method, const ValueHistogram& h) {
  return calibration_named(method).range(h, 256);
}
/// Half of a normal distribution of deviation 1/4, and one value far out.
ValueHistogram with_outlier(double at) {
  ValueHistogram h{0, at, std::vector<int64_t>(2048)};
  for (size_t b = 0; b < 2048; ++b) h.counts[b] = std::llround(1e6 * std::exp(-8 * h.middle(b) * h.middle(b)));
  h.counts.back() = 1;
  return h;
}
/// Half of a normal distribution, as behind a ReLU: as many zeros again.
ValueHistogram behind_relu() {
  ValueHistogram h{0, 6, std::vector<int64_t>(2048)};
  for (size_t b = 0; b < 2048; ++b) h.counts[b] = std::llround(1e6 * std::exp(-h.middle(b) * h.middle(b) / 2));
  h.counts[0] += 400000000;
  return h;
}

TEST(Calibration, minmax_keeps_everything) {
  const CalibrationRange r = range_of_values("minmax", with_outlier(8));
  EXPECT_EQ(r.lo, 0);
  EXPECT_EQ(r.hi, 8);
}

TEST(Calibration, percentile_leaves_a_share_out_at_each_end) {
  ValueHistogram h{-1, 1, std::vector<int64_t>(2048, 1000)};
  const CalibrationRange even = range_of_values("percentile", h);
  EXPECT_NEAR(even.lo, -1 + 2 * 0.5e-4, 1e-9);
  EXPECT_NEAR(even.hi, 1 - 2 * 0.5e-4, 1e-9);
  const CalibrationRange r = range_of_values("percentile", with_outlier(8));
  EXPECT_NEAR(r.hi, 4.06 / 4, 0.01) << "beyond that lies half a ten thousandth of a normal distribution";
  EXPECT_EQ(r.lo, 0);
}

TEST(Calibration, mse_and_entropy_cut_an_outlier_and_keep_what_is_spread_evenly) {
  for (const char* method : {"mse", "entropy"}) {
    const CalibrationRange cut = range_of_values(method, with_outlier(8));
    EXPECT_LT(cut.hi, 2) << method;
    EXPECT_GE(cut.hi, 0.75) << method;
    const CalibrationRange whole = range_of_values(method, {-1, 1, std::vector<int64_t>(2048, 1000)});
    EXPECT_LT(whole.lo, -0.95) << method;
    EXPECT_GT(whole.hi, 0.95) << method;
  }
}

TEST(Calibration, zeros_behind_a_relu_do_not_draw_the_range_together) {
  for (const CalibrationDef& d : calibrations()) {
    const CalibrationRange r = d.range(behind_relu(), 256);
    EXPECT_GE(r.hi, 2.5) << d.name;
    EXPECT_LE(r.hi, 6) << d.name;
    EXPECT_EQ(r.lo, 0) << d.name;
  }
}

TEST(Calibration, a_range_of_nothing_but_zero_is_kept) {
  for (const CalibrationDef& d : calibrations()) {
    const CalibrationRange r = d.range({0, 0, std::vector<int64_t>(2048, 3)}, 256);
    EXPECT_EQ(r.lo, 0) << d.name;
    EXPECT_EQ(r.hi, 0) << d.name;
  }
}

TEST(Calibration, a_word_that_is_none_names_those_that_there_are) {
  try {
    calibration_named("median");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.hint(), "entropy, minmax, mse, percentile");
  }
}

TEST(Calibration, values_within_a_model_are_counted_over_all_batches) {
  OnnxModel m;
  m.graph.inputs = {{"x", true, DType::f32, true, {{-1, "N"}, {2, ""}}}};
  m.graph.outputs = {{"y", true, DType::f32, true, {{-1, "N"}, {2, ""}}}};
  m.graph.nodes = {{"n", "Neg", "", {"x"}, {"h"}, {}}, {"a", "Relu", "", {"h"}, {"y"}, {}}};
  Tensor first = full({2, 2}, 1), second = full({1, 2}, -3);
  const auto seen = observe(m, {"h", "y"}, {first, second});
  EXPECT_EQ(seen.at("h").lo, -1);
  EXPECT_EQ(seen.at("h").hi, 3);
  EXPECT_EQ(seen.at("h").total(), 6);
  EXPECT_EQ(seen.at("h").counts.front(), 4);
  EXPECT_EQ(seen.at("h").counts.back(), 2);
  EXPECT_EQ(seen.at("y").lo, 0);
  EXPECT_EQ(seen.at("y").counts.front(), 4);
  second.data<float>()[1] = INFINITY;
  EXPECT_THROW(observe(m, {"h"}, {second}), Error);
  EXPECT_THROW(observe(m, {"h"}, {first}, [](int64_t, int64_t) { return false; }), Error);
}

}  // namespace
}  // namespace tenon::formats
