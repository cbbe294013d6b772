// Why a step is slow, and why it is slower than another, on traces as PyTorch records them: noise on every duration,
// backward on its own thread, streams, stacks, buckets of communication, graphs.
#include "tests/tracing/findings.h"

#include <fmt/format.h>

#include "tests/tracing/made_training.h"
#include "tracing/analyses/critical_path.h"
#include "tracing/analyses/idle.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

using Planted = Training::Cause;

const Training kGpuBound{};
const Training kHostBound{.op = 30000, .kernel = 6000};

struct Slowed {
  Training loop;
  Planted cause;
  std::string with_stacks, without;  ///< the path of the item that must come first; %d is the block
};
const Slowed kSlowed[] = {
    {kGpuBound, Planted::forward_kernel, "Net_0/Block_%d > aten::linear > aten::addmm > ampere_sgemm_128x64_tn",
     "aten::linear > aten::addmm > ampere_sgemm_128x64_tn"},
    {kGpuBound, Planted::backward_kernel, "Net_0/Block_%d/backward > AddmmBackward0 > aten::mm > ampere_sgemm_64x64_nt",
     "backward > AddmmBackward0 > aten::mm > ampere_sgemm_64x64_nt"},
    {kGpuBound, Planted::twice, "Net_0/Block_%d > aten::linear > aten::addmm > ampere_sgemm_128x64_tn",
     "aten::linear > aten::addmm > ampere_sgemm_128x64_tn"},
    {kHostBound, Planted::op, "Net_0/Block_%d > aten::linear > aten::addmm", "aten::linear > aten::addmm"},
    {kHostBound, Planted::gap, "Net_0/Block_%d (CPU, after aten::linear)", "no op on the CPU, after aten::linear"},
    {kHostBound, Planted::gap_in_backward, "no op on the CPU, after autograd::engine::evaluate_function: GeluBackward0",
     "no op on the CPU, after autograd::engine::evaluate_function: GeluBackward0"},
    {kHostBound, Planted::gap_before_backward, "train.py: train_step (CPU)", "no op on the CPU, after aten::mse_loss"},
    {kGpuBound, Planted::optimizer_kernel,
     "Optimizer.step#AdamW.step > aten::_fused_adamw_ > void at::native::multi_tensor_apply_kernel",
     "Optimizer.step#AdamW.step > aten::_fused_adamw_ > void at::native::multi_tensor_apply_kernel"},
    {{.reduce = 200000, .buckets = 2, .overlap = false},
     Planted::reduce,
     "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
     "ncclDevKernel_AllReduce_Sum_f32_RING_LL"},
    {kGpuBound, Planted::data, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__ (CPU)",
     "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__ (CPU)"},
    {{.op = 8000, .kernel = 90000, .graph = true},
     Planted::graph_kernel,
     "Net_0/Block_%d > CUDAGraph.replay > graph_kernel_2",
     "CUDAGraph.replay > graph_kernel_2"},
    {kGpuBound, Planted::wait, "cudaMemcpyAsync (waiting)", "cudaStreamSynchronize (waiting)"},
};

TEST(TraceCauses, WhatMadeStepsSlowerComesFirst) {
  uint64_t seed = 100;
  for (const Slowed& s : kSlowed)
    for (int variant = 0; variant < 4; ++variant) {
      ++seed;
      Training a = s.loop;
      a.stacks = variant % 2 == 1;
      a.item = variant < 2 || s.cause == Planted::data;
      a.pageable = a.stacks;
      a.lengths = seed;
      a.seed = seed * 2;
      Training b = a;
      b.seed = seed * 2 + 1;
      b.cause = s.cause;
      b.block = static_cast<int>(seed * 7 % 8);
      b.extra = 80000 + static_cast<int64_t>(seed * 7919 % 300000);
      if (s.cause == Planted::optimizer_kernel) b.block %= 4;
      if (s.cause == Planted::twice) b.extra = a.kernel;
      SCOPED_TRACE(fmt::format("seed {}, cause {}, variant {}", seed, static_cast<int>(s.cause), variant));
      Finding f = run("diff", {train(a), train(b)});
      const double change = fact<double>(f, "change_ns"), items = fact<double>(f, "items_ns");
      EXPECT_GT(change, s.cause == Planted::wait ? 0.0 : 0.5 * static_cast<double>(b.extra)) << f.sentence;
      EXPECT_NEAR(items, change, 1e-6 * std::abs(change) + 1);
      double sum = 0;
      for (const auto& row : f.tables[0].rows) sum += std::get<double>(row[1]);
      EXPECT_NEAR(sum, change, 1e-6 * std::abs(change) + 1);
      ASSERT_FALSE(f.tables[0].rows.empty());
      std::string expected = a.stacks ? s.with_stacks : s.without;
      if (size_t at = expected.find("%d"); at != expected.npos) expected.replace(at, 2, std::to_string(b.block));
      const std::string first = std::get<std::string>(f.tables[0].rows[0].back());
      EXPECT_NE(first.find(expected), std::string::npos) << first << "\n  instead of " << expected << "\n"
                                                         << f.sentence;
    }
}

// Communication that takes longer behind computation lengthens nothing, however much it grows.
TEST(TraceCauses, WhatIsHiddenIsNoCause) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Training a{.seed = seed * 2, .lengths = seed, .reduce = 50000, .buckets = 4, .stacks = seed % 2 == 1};
    Training b = a;
    b.seed = seed * 2 + 1;
    b.reduce = 150000;
    b.cause = Planted::forward_kernel;
    b.extra = 250000;  // the four buckets grow by 400 us, but only the last of them is seen
    b.block = static_cast<int>(seed);
    Finding f = run("diff", {train(a), train(b)});
    EXPECT_NE(std::get<std::string>(f.tables[0].rows[0].back()).find("aten::addmm > ampere_sgemm_128x64_tn"),
              std::string::npos)
        << f.sentence;
  }
}

TEST(TraceCauses, TheSameLoopTwiceIsTheSame) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Training a{.seed = seed * 2, .stacks = seed % 2 == 1}, b{.seed = seed * 2 + 1, .stacks = seed % 2 == 1};
    Finding f = run("diff", {train(a), train(b)});
    EXPECT_LT(std::abs(fact<double>(f, "change_ns")), 0.02 * fact<double>(f, "a_ns")) << f.sentence;
  }
}

TEST(TraceCauses, WhatBoundsAStep) {
  struct Case {
    const char* cause;
    Training loop;
  };
  const Case cases[] = {
      {"data", {.data = 3000000}},
      {"data", {.kernel = 100000, .data = 9000000}},
      {"host", {.op = 40000, .kernel = 5000}},
      {"host", {.op = 90000, .kernel = 30000}},
      {"sync", {.op = 8000, .kernel = 6000, .data = 20000, .copy = 5000, .wait_after_ops = true}},
      {"sync", {.op = 6000, .kernel = 12000, .data = 10000, .copy = 10000, .wait_after_ops = true}},
      {"communication", {.reduce = 1500000, .buckets = 2, .overlap = false}},
      {"communication", {.kernel = 30000, .data = 50000, .reduce = 3000000, .buckets = 2, .overlap = true}},
      {"copy", {.op = 6000, .kernel = 30000, .data = 50000, .copy = 4000000}},
      {"copy", {.op = 6000, .kernel = 100000, .data = 50000, .copy = 9000000}},
      {"compute", {.kernel = 150000}},
      {"compute", {.kernel = 150000, .data = 50000, .reduce = 300000, .buckets = 4, .overlap = true}},
      {"compute", {.op = 8000, .kernel = 90000, .data = 50000, .graph = true}},
  };
  uint64_t seed = 1;
  for (const Case& c : cases)
    for (int variant = 0; variant < 4; ++variant) {
      Training l = c.loop;
      l.seed = l.lengths = ++seed;
      l.stacks = variant % 2 == 1;
      l.item = variant < 2;
      l.pageable = variant % 3 != 0;
      Finding f = run("why", {train(l)});
      EXPECT_EQ(fact<std::string>(f, "cause"), c.cause)
          << "case " << &c - cases << ", variant " << variant << ": " << f.sentence;
      EXPECT_LE(fact<double>(f, "share"), 1.0) << f.sentence;
    }
}

/// Steps of 10 ms whose second half passes while a kernel is launched and does not run.
std::string stalled(GapReason why) {
  MadeTrace t;
  for (int step = 0; step < 4; ++step) {
    t.begin_step(step);
    const int64_t begin = t.now();
    t.op("aten::mm", 10000, "gemm", 4000000, 7);
    if (why == GapReason::pause) {
      for (int i = 1; i <= 500; ++i) t.op("aten::add", 2000, "add", 1000, 7, "kernel", begin + 4000000 + i * 10000);
    } else {
      const int stream = why == GapReason::stream && step % 2 == 1 ? 8 : 7;
      if (why == GapReason::stream && step % 2 == 0) t.wait_event(7, 9);
      t.op("aten::mul", 10000, why == GapReason::communication ? "ncclDevKernel_AllReduce" : "mul", 1000000, stream,
           "kernel", begin + 9000000);
    }
    if (why == GapReason::profiler) t.overhead("Activity Buffer Request", begin + 4000000, 5000000);
    if (why == GapReason::allocation) t.call("cudaMalloc", 9000000);
    t.sync();
    t.end_step();
  }
  return t.text();
}

// Launched work that waits while the GPU stands still has a name, and the name its evidence.
TEST(TraceCauses, WorkThatWaitsInTheQueueHasAReason) {
  const std::pair<GapReason, const char*> cases[] = {
      {GapReason::pause, "pauses"},   {GapReason::profiler, "profiler"},
      {GapReason::stream, "streams"}, {GapReason::allocation, "allocation"},
      {GapReason::unknown, "queued"}, {GapReason::communication, "communication"}};
  for (const auto& [reason, cause] : cases) {
    const std::string text = stalled(reason);
    const Finding idle = run("idle", {text}), why = run("why", {text});
    EXPECT_NE(idle.sentence.find(because(reason)), std::string::npos) << cause << ": " << idle.sentence;
    const Table* reasons = table_of(idle, "reasons");
    ASSERT_NE(reasons, nullptr);
    EXPECT_EQ(std::get<std::string>(reasons->rows[0][0]), name(reason));
    EXPECT_GT(reasons->sights[0].to, reasons->sights[0].from);
    int64_t sum = 0;
    for (const auto& row : reasons->rows) sum += std::get<int64_t>(row[1]);
    EXPECT_EQ(sum, fact<int64_t>(idle, "idle_ns"));
    EXPECT_EQ(fact<std::string>(why, "cause"), cause) << why.sentence;
    EXPECT_GT(fact<double>(why, "share"), 0.4) << why.sentence;
    // The overview advises on it, with the place to look at.
    const Finding overview = run("overview", {text});
    const Table* advice = table_of(overview, "recommendations");
    ASSERT_TRUE(advice && !advice->rows.empty()) << cause;
    EXPECT_GT(advice->sights[0].to, advice->sights[0].from) << cause;
  }
}

/// The causes of a step add up to it: whatever takes the largest part of it has a name.
void expect_names_for_all(const std::shared_ptr<const traces::Trace>& t) {
  const Finding why = run("why", {t});
  if (!why.ok) return;
  const Table* causes = table_of(why, "causes");
  ASSERT_NE(causes, nullptr);
  int64_t sum = 0;
  for (const auto& row : causes->rows) sum += std::get<int64_t>(row[1]);
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(fact<int64_t>(why, "step_ns")),
              static_cast<double>(causes->rows.size()))
      << why.sentence;
}

TEST(TraceCauses, NoMomentOfAStepIsWithoutAName) {
  int seen = 0;
  for (const char* folder : {"torch", "loops"})
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(TENON_SOURCE_DIR) + "/tests/tracing/" + folder)) {
      if (!entry.path().string().ends_with(".json.gz")) continue;
      SCOPED_TRACE(entry.path().string());
      expect_names_for_all(traces::read_trace(entry.path().string(), {.read_cache = false, .write_cache = false}));
      ++seen;
    }
  EXPECT_GE(seen, 18);
  for (const GapReason reason : {GapReason::pause, GapReason::profiler, GapReason::stream, GapReason::allocation,
                                 GapReason::unknown, GapReason::communication})
    expect_names_for_all(traces::parse_trace(stalled(reason)));
}

TEST(TraceCauses, StepsFollowEachOtherHoweverFarAheadTheCpuIs) {
  for (bool item : {true, false}) {
    auto t = traces::parse_trace(train({.kernel = 150000, .stacks = true, .item = item}));
    const GpuTimeline gpu(*t);
    const CriticalPaths paths(*t, gpu);
    int64_t reached = INT64_MIN, on_gpu = 0, all = 0;
    for (const TraceStep& s : trace_steps(*t)) {
      const StepWork step = step_work(gpu, s);
      EXPECT_GE(step.begin, reached);
      reached = step.end;
      int64_t at = step.begin;
      for (const PathPiece& p : paths.of(step)) {
        ASSERT_EQ(p.from, at);
        ASSERT_LT(p.from, p.to);
        at = p.to;
        if (p.what == PathPiece::What::gpu) on_gpu += p.to - p.from;
      }
      EXPECT_EQ(at, step.end);
      all += step.length();
    }
    EXPECT_GT(static_cast<double>(on_gpu), (item ? 0.8 : 0.9) * static_cast<double>(all));
  }
}

TEST(TraceCauses, ThePathGoesThroughAutogradsThread) {
  for (bool stacks : {false, true}) {
    Finding f =
        run("critical-path", {train({.op = 30000, .kernel = 3000, .data = 1000, .copy = 1000, .stacks = stacks})});
    int64_t backward = 0, no_op = 0;
    for (const auto& row : f.tables[0].rows) {
      const std::string name = std::get<std::string>(row[0]);
      if (name == "aten::gelu_backward (CPU)" || name == "aten::mm (CPU)") backward += std::get<int64_t>(row[1]);
      if (name == "no op on the CPU" || name.find("_tensor.py") != name.npos) no_op += std::get<int64_t>(row[1]);
    }
    // Half of each op is its launch: 3 ops of a block's backward last 15 us beside it.
    EXPECT_NEAR(static_cast<double>(backward), 8 * 3 * 15000, 0.05 * 8 * 3 * 15000) << f.sentence;
    EXPECT_LT(no_op * 6, fact<int64_t>(f, "total_ns")) << f.sentence;
  }
}

// A kernel that was told to wait for another stream is held by that one, not by whichever happened to end just before.
TEST(TraceCauses, RecordedWaitsOfStreamsAreFollowed) {
  MadeTrace t;
  t.begin_step(0);
  t.op("aten::a", 10000, "kernel_a", 500000, 7);
  t.op("aten::b", 10000, "kernel_b", 500400, 9);
  t.wait_event(8, 7);
  t.op("aten::c", 10000, "kernel_c", 100000, 8, "kernel", t.gpu_end(9) + 1000);
  t.sync();
  t.end_step();
  Finding f = run("critical-path", {t.text()});
  bool a = false, b = false;
  for (const auto& row : f.tables[0].rows) {
    a |= std::get<std::string>(row[0]) == "kernel_a";
    b |= std::get<std::string>(row[0]) == "kernel_b";
  }
  EXPECT_TRUE(a);
  EXPECT_FALSE(b);
}

}  // namespace
}  // namespace tenon::tracing
