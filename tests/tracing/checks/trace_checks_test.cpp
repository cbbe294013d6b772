// What guides warn of, planted in traces of a simulated training: each is found by its own check, and nothing in a
// trace in which all is well.
#include "tracing/checks/trace_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/tracing/made_traces.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

using Planted = std::function<void(MadeTrace&)>;

/// Steps of long kernels that the CPU launches well ahead, each with something planted behind its launches.
std::vector<CheckResult> checked_training(const Planted& planted, bool marked = true) {
  MadeTrace t;
  for (int step = 1; step <= 6; ++step) {
    if (marked) t.begin_step(step);
    for (int i = 0; i < 20; ++i) t.op("aten::mm", 40'000, "ampere_fp16_s16816gemm_64x64_tn", 200'000);
    if (planted) planted(t);
    t.nothing(200'000);
    if (marked) t.end_step();
    t.nothing(2'900'000);
  }
  return check_trace(traces::parse_trace(t.text()));
}

std::vector<std::string> found_in(const std::vector<CheckResult>& results) {
  std::vector<std::string> names;
  for (const CheckResult& r : results)
    if (!r.complaints.empty()) names.push_back(r.name);
  return names;
}
const Complaint* complaint_of(const std::vector<CheckResult>& results, const std::string& name) {
  for (const CheckResult& r : results)
    if (r.name == name && !r.complaints.empty()) return &r.complaints.front();
  return nullptr;
}

TEST(TraceChecks, nothing_is_found_where_all_is_well) {
  const auto results = checked_training(nullptr);
  EXPECT_EQ(found_in(results), std::vector<std::string>());
  EXPECT_GE(results.size(), 9u);
  for (const CheckResult& r : results) EXPECT_TRUE(r.skipped.empty()) << r.name << ": " << r.skipped;
}

TEST(TraceChecks, what_is_planted_is_found_where_it_is) {
  const struct {
    const char* name;
    const char* about;
    Planted plant;
  } cases[] = {
      {"trace.pageable_copies", "Memcpy HtoD (Pageable -> Device)",
       [](MadeTrace& t) { t.op("aten::copy_", 60'000, "Memcpy HtoD (Pageable -> Device)", 300'000, 7, "gpu_memcpy"); }},
      {"trace.synchronizing_calls", "aten::item",
       [](MadeTrace& t) { t.in("cpu_op", "aten::item", [&] { t.sync(); }); }},
      {"trace.synchronizing_calls", "cudaStreamSynchronize", [](MadeTrace& t) { t.sync(); }},
      {"trace.allocations", "cudaMalloc", [](MadeTrace& t) { t.call("cudaMalloc", 30'000); }},
      {"trace.layout", "",
       [](MadeTrace& t) { t.op("aten::cudnn_convolution", 40'000, "void nchwToNhwcKernel<float>", 900'000); }},
      {"trace.loader", "", [](MadeTrace& t) { t.load_data(900'000); }},
      {"trace.advice", "data loading", [](MadeTrace& t) { t.load_data(6'000'000, "_MultiProcessingDataLoaderIter"); }},
      {"trace.optimizer", "Optimizer.step#Adam.step", [](MadeTrace& t) {
         t.in("user_annotation", "Optimizer.step#Adam.step", [&] {
           for (int i = 0; i < 150; ++i) t.op("aten::mul_", 10'000, "elementwise_kernel", 12'000);
         });
       }}};
  for (const auto& c : cases) {
    const auto results = checked_training(c.plant);
    const Complaint* found = complaint_of(results, c.name);
    ASSERT_NE(found, nullptr) << c.name;
    EXPECT_EQ(found->about, c.about) << c.name;
    EXPECT_FALSE(found->seen.empty());
    EXPECT_FALSE(found->remedy.empty());
    EXPECT_TRUE(found->sight.event >= 0 || found->sight.to > found->sight.from) << c.name << " is somewhere";
  }
}

/// What an optimizer and autograd leave in a step: gradients, the update, and what clears them.
void training_parts(MadeTrace& t, bool added, bool cleared, bool scaled) {
  for (int i = 0; i < 4; ++i)
    t.in("cpu_op", "torch::autograd::AccumulateGrad", [&] {
      if (added) t.op("aten::add_", 10'000, "elementwise_kernel", 8'000);
    });
  if (scaled) t.op("aten::_amp_foreach_non_finite_check_and_unscale_", 10'000, "multi_tensor_apply_kernel", 8'000);
  t.in("user_annotation", "Optimizer.step#SGD.step", [&] { t.op("aten::mul_", 10'000, "elementwise_kernel", 8'000); });
  if (cleared) t.in("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", [&] { t.nothing(5'000); });
}

TEST(TraceChecks, gradients_that_are_never_cleared) {
  const auto kept = checked_training([](MadeTrace& t) { training_parts(t, true, false, true); });
  const Complaint* found = complaint_of(kept, "trace.gradients");
  ASSERT_NE(found, nullptr);
  EXPECT_NE(found->seen.find("24 of 24 gradients"), std::string::npos) << found->seen;
  EXPECT_EQ(found_in(kept), std::vector<std::string>{"trace.gradients"});
  // Cleared by zero_grad, or set to None by hand.
  EXPECT_EQ(found_in(checked_training([](MadeTrace& t) { training_parts(t, true, true, true); })),
            std::vector<std::string>());
  EXPECT_EQ(found_in(checked_training([](MadeTrace& t) { training_parts(t, false, false, true); })),
            std::vector<std::string>());
}

TEST(TraceChecks, float16_that_no_scaler_looks_after) {
  EXPECT_EQ(found_in(checked_training([](MadeTrace& t) { training_parts(t, false, true, false); })),
            std::vector<std::string>{"trace.half"});
  EXPECT_EQ(found_in(checked_training([](MadeTrace& t) { training_parts(t, false, true, true); })),
            std::vector<std::string>());
}

TEST(TraceChecks, a_clock_that_does_not_wait_for_the_gpu) {
  MadeTrace t;
  for (int step = 1; step <= 4; ++step) {
    t.begin_step(step);
    for (int i = 0; i < 20; ++i) t.op("aten::mm", 40'000, "gemm", 200'000);
    t.end_step();
  }
  const auto results = check_trace(traces::parse_trace(t.text()));
  const Complaint* found = complaint_of(results, "trace.clock");
  ASSERT_NE(found, nullptr);
  EXPECT_NE(found->remedy.find("synchronize"), std::string::npos);
  EXPECT_GT(found->sight.to, found->sight.from);
}

TEST(TraceChecks, ops_that_add_in_any_order) {
  const auto results =
      checked_training([](MadeTrace& t) { t.op("aten::scatter_add_", 10'000, "scatter_kernel", 8'000); });
  const Complaint* found = complaint_of(results, "trace.order");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->about, "aten::scatter_add_");
  EXPECT_EQ(found_in(results), std::vector<std::string>{"trace.order"});
}

TEST(TraceChecks, a_trace_without_steps_and_one_that_is_cut_say_so) {
  EXPECT_NE(complaint_of(checked_training(nullptr, false), "trace.steps"), nullptr);
  MadeTrace t;
  t.begin_step(1);
  for (int i = 0; i < 50; ++i) t.op("aten::mm", 40'000, "gemm", 200'000);
  t.end_step();
  std::string text = t.text();
  text.resize(text.size() - 700);
  EXPECT_NE(complaint_of(check_trace(traces::parse_trace(text)), "trace.file"), nullptr);
}

TEST(TraceChecks, an_empty_trace_is_checked) {
  const auto results = check_trace(traces::parse_trace("{\"traceEvents\": []}"));
  EXPECT_EQ(found_in(results), std::vector<std::string>());
}

}  // namespace
}  // namespace tenon::tracing
