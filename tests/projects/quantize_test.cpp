// A trained model in fewer bits: what it costs, and how many layers a budget leaves as they are.
#include "projects/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "engine/formats/onnx/model.h"
#include "projects/finish.h"
#include "projects/quantize_plan.h"
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

TEST_F(QuantizedSpirals, a_run_that_learnt_with_few_bits_loses_less_to_them) {
  // Ranges alone, taken while it trained in f32 to its end, against 700 of 1,000 steps on the grids.
  const std::string bits = "quantize weight_bits=3 activation_bits=4 momentum=0.9 after=";
  double lost = 0, recovered = 0;  // shares of right answers, of all seeds: one alone may be lucky
  for (const std::string seed : {"0", "1", "2", "3", "4", "5", "6", "7"}) {
    train("after" + seed, {{"seed", seed}, {"callbacks", bits + "1000"}}, 1000);
    train("while" + seed, {{"seed", seed}, {"callbacks", bits + "300"}}, 1000);
    const auto report = [&](const std::string& name) {
      run = project->run(name + seed);
      return exported(to(formats::Precision::int8_static));
    };
    const QuantizeReport after = report("after"), during = report("while");
    lost += after.before.value - after.after.value;
    recovered += during.after.value - after.after.value;
    EXPECT_NE(during.text().find("(grids of the training: weights in 3 bits, activations in 4)"), std::string::npos)
        << during.text();
    EXPECT_NE(formats::load_onnx(dir / "q.onnx").doc.find("grids of the training"), std::string::npos);
    EXPECT_EQ(during.layers.size(), 3u);
  }
  EXPECT_GE(lost, 0.04) << "or there is nothing to win back";
  EXPECT_GE(recovered, lost / 3);
  RecordProperty("lost", std::to_string(lost));
  RecordProperty("recovered", std::to_string(recovered));
}

TEST_F(QuantizedSpirals, the_plan_has_every_precision_and_marks_what_nothing_beats) {
  std::vector<size_t> told;
  const QuantizePlan plan = quantize_plan(*project, run, run.steps, {.samples = 32, .most_kept = 1},
                                          [&](const QuantizePlan& p) { told.push_back(p.points.size()); });
  EXPECT_TRUE(plan.complete);
  ASSERT_EQ(plan.points.size(), 1u + 4 * 2);
  EXPECT_EQ(told, (std::vector<size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(plan.metric, "test_accuracy");
  EXPECT_GT(plan.f32_ms, 0);
  for (const PlanPoint& a : plan.points) {
    EXPECT_GT(plan.ms(a), 0);
    const bool beaten = std::any_of(plan.points.begin(), plan.points.end(), [&](const PlanPoint& b) {
      return b.lost <= a.lost && b.bytes <= a.bytes && b.time <= a.time &&
             (b.lost < a.lost || b.bytes < a.bytes || b.time < a.time);
    });
    EXPECT_EQ(a.front, !beaten) << a.title();
  }
  // What a point says is what its command writes.
  QuantizeOptions o = to(formats::Precision::int4_weights);
  o.samples = 32;
  o.keep = 1;
  const QuantizeReport r = exported(o);
  const PlanPoint& p = plan.points.back();
  EXPECT_EQ(p.title(), "int4-weights, 1 layer in f32");
  EXPECT_EQ(p.bytes, r.bytes);
  EXPECT_EQ(p.metric.value, r.after.value);
  EXPECT_EQ(plan.command("a.tenon", p),
            "tenon export a.tenon r --checkpoint 400 --format onnx -o model.onnx --quantize int4-weights --samples 32 "
            "--keep 1");
}

TEST_F(QuantizedSpirals, a_plan_that_is_stopped_keeps_what_it_has) {
  const QuantizePlan plan =
      quantize_plan(*project, run, run.steps, {.samples = 32}, {}, [](int64_t done, int64_t) { return done < 3; });
  EXPECT_FALSE(plan.complete);
  EXPECT_EQ(plan.points.size(), 3u);
}

}  // namespace
}  // namespace tenon::projects
