// A trained model in fewer bits: what it costs, and how many layers a budget leaves as they are.
#include "projects/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "engine/formats/onnx/model.h"
#include "projects/finish.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

struct QuantizedSpirals : testing_files::SpiralsTest {
  RunInfo run;
  void SetUp() override {
    SpiralsTest::SetUp();
    train("r", {}, 400);
    run = project->run("r");
  }
  QuantizeReport exported(const QuantizeOptions& o) {
    return export_quantized(*project, run, run.steps, o, dir / "q.onnx", true);
  }
  static QuantizeOptions to(formats::Precision p) { return {.how = {.precision = p}}; }
};

TEST_F(QuantizedSpirals, every_precision_costs_little_and_says_so) {
  export_run(*project, run, run.steps, ExportFormat::onnx, dir / "m.onnx", false);
  const double most[] = {2, 2, 0.5, 10};
  for (int i = 1; i < formats::kPrecisions; ++i) {
    const auto p = static_cast<formats::Precision>(i);
    const QuantizeReport r = exported(to(p));
    EXPECT_TRUE(r.verified);
    EXPECT_TRUE(r.in_points);
    EXPECT_GT(r.before.value, 0.8) << "it has learnt something";
    EXPECT_LE(r.lost, most[i - 1]) << formats::name(p);
    EXPECT_EQ(r.bytes, std::filesystem::file_size(dir / "q.onnx"));
    EXPECT_EQ(r.bytes_f32, std::filesystem::file_size(dir / "m.onnx"));
    EXPECT_LT(r.bytes, r.bytes_f32) << formats::name(p);
    ASSERT_EQ(r.layers.size(), 3u);
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_TRUE(r.layers[k].module.starts_with("layers.")) << r.layers[k].module;
      EXPECT_GT(r.layers[k].snr, 8);
      EXPECT_GE(r.layers[k].alone, r.layers[k ? k - 1 : 0].alone) << "the most sensitive first";
    }
    EXPECT_NE(r.text().find(formats::name(p)), std::string::npos) << r.text();
  }
}

TEST_F(QuantizedSpirals, the_report_is_the_same_every_time) {
  const QuantizeReport one = exported(to(formats::Precision::int8_static)),
                       other = exported(to(formats::Precision::int8_static));
  EXPECT_EQ(one.text(), other.text());
  for (size_t k = 0; k < one.layers.size(); ++k) EXPECT_EQ(one.layers[k].alone, other.layers[k].alone);
}

TEST_F(QuantizedSpirals, the_most_sensitive_stay_in_f32_as_asked) {
  QuantizeOptions o = to(formats::Precision::int4_weights);
  o.keep = 1;
  const QuantizeReport r = exported(o);
  EXPECT_EQ(r.kept(), 1);
  EXPECT_EQ(r.layers[0].precision, formats::Precision::f32);
  EXPECT_EQ(r.layers[1].precision, formats::Precision::int4_weights);
  EXPECT_NE(r.text().find("1 of 3 layers stay in f32"), std::string::npos) << r.text();
  o.keep = 7;
  const QuantizeReport all = exported(o);
  EXPECT_EQ(all.kept(), 3);
  EXPECT_EQ(all.lost, 0);
  EXPECT_TRUE(std::isinf(all.layers[2].snr));
}

TEST_F(QuantizedSpirals, a_budget_leaves_as_many_as_it_takes) {
  QuantizeOptions o = to(formats::Precision::int4_weights);
  const QuantizeReport free = exported(o);
  o.budget = 100;
  EXPECT_EQ(exported(o).kept(), 0);
  o.budget = std::max(0.0, free.lost / 2);
  const QuantizeReport held = exported(o);
  EXPECT_LE(held.lost, *o.budget);
  if (free.lost > *o.budget) {
    EXPECT_GT(held.kept(), 0);
    EXPECT_GT(held.bytes, free.bytes);
    o.budget.reset();
    o.keep = held.kept() - 1;
    EXPECT_GT(exported(o).lost, free.lost / 2) << "one fewer would not have done";
  }
}

TEST_F(QuantizedSpirals, what_is_asked_wrongly_is_told_and_nothing_is_written) {
  EXPECT_THROW(exported(to(formats::Precision::f32)), Error);
  QuantizeOptions o = to(formats::Precision::int8_static);
  o.how.calibration = "median";
  EXPECT_THROW(exported(o), Error);
  o = to(formats::Precision::int8_static);
  o.samples = 0;
  EXPECT_THROW(exported(o), Error);
  o = to(formats::Precision::int8_static);
  EXPECT_THROW(
      export_quantized(*project, run, run.steps, o, dir / "q.onnx", true, [](int64_t, int64_t) { return false; }),
      Error);
  EXPECT_FALSE(std::filesystem::exists(dir / "q.onnx"));
}

}  // namespace
}  // namespace tenon::projects
