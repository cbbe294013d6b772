#include "tests/tracing/findings.h"

#include <fmt/format.h>

#include <functional>

#include "core/random.h"
#include "tests/tracing/made_ranks.h"
#include "tests/tracing/made_traces.h"
#include "tracing/analyses/critical_path.h"
#include "tracing/analyses/ranks.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

struct Loop {
  int64_t data = 0, op_cpu = 10000, kernel = 20000, communication = 0, copy = 0;
  int ops = 50;
  bool sync_each = false, hidden_communication = false;
};
std::string loop(const Loop& l, int steps = 5) {
  MadeTrace t;
  for (int s = 0; s < steps; ++s) {
    t.begin_step(s);
    if (l.data) t.load_data(l.data);
    if (l.copy) t.op("aten::copy_", 10000, "Memcpy HtoD (Pageable -> Device)", l.copy, 7, "gpu_memcpy");
    for (int i = 0; i < l.ops; ++i) {
      t.op("aten::op" + std::to_string(i % 5), l.op_cpu, "kernel_" + std::to_string(i % 7), l.kernel);
      if (l.sync_each) t.sync(15000);
      if (l.hidden_communication && i == 5)
        t.op("c10d::allreduce_", 10000, "ncclDevKernel_AllReduce_Sum_f32", l.communication, 20);
    }
    if (l.communication && !l.hidden_communication)
      t.op("c10d::allreduce_", 10000, "ncclDevKernel_AllReduce_Sum_f32", l.communication, 20, "kernel", t.gpu_end());
    t.sync();
    t.end_step();
  }
  return t.text();
}

TEST(TraceWhy, TwelveLoopsAndWhatBoundsThem) {
  const std::pair<const char*, Loop> cases[] = {
      {"data", {.data = 5000000}},
      {"data", {.data = 40000000, .op_cpu = 5000, .kernel = 100000}},
      {"host", {.op_cpu = 40000, .kernel = 5000, .ops = 200}},
      {"host", {.op_cpu = 100000, .kernel = 30000, .ops = 80}},
      {"sync", {.op_cpu = 8000, .kernel = 15000, .ops = 100, .sync_each = true}},
      {"sync", {.op_cpu = 5000, .kernel = 30000, .ops = 40, .sync_each = true}},
      {"communication", {.op_cpu = 5000, .kernel = 40000, .communication = 6000000}},
      {"communication", {.op_cpu = 5000, .kernel = 40000, .communication = 1500000}},
      {"copy", {.op_cpu = 5000, .kernel = 20000, .copy = 4000000}},
      {"copy", {.op_cpu = 5000, .kernel = 100000, .copy = 9000000}},
      {"compute", {.op_cpu = 5000, .kernel = 200000}},
      {"compute", {.op_cpu = 5000, .kernel = 200000, .communication = 3000000, .hidden_communication = true}},
  };
  int i = 0;
  for (const auto& [cause, l] : cases) {
    Finding f = run("why", {loop(l)});
    EXPECT_EQ(fact<std::string>(f, "cause"), cause) << "case " << i << ": " << f.sentence;
    ++i;
  }
}

TEST(TraceIdle, ThePartsAddUpToTheWhole) {
  for (const Loop& l : {Loop{.data = 3000000, .sync_each = true}, Loop{.op_cpu = 40000, .kernel = 5000},
                        Loop{.communication = 700000}}) {
    Finding f = run("idle", {loop(l)});
    int64_t parts = 0;
    for (const char* part : {"host_ns", "data_ns", "sync_ns", "communication_ns", "queued_ns"})
      parts += fact<int64_t>(f, part);
    EXPECT_EQ(parts, fact<int64_t>(f, "idle_ns"));
  }
}

TEST(TraceOverlap, CountsWhatIsHidden) {
  Finding hidden = run(
      "overlap", {loop({.op_cpu = 5000, .kernel = 200000, .communication = 3000000, .hidden_communication = true})});
  Finding bare = run("overlap", {loop({.op_cpu = 5000, .kernel = 40000, .communication = 1500000})});
  EXPECT_GT(fact<double>(hidden, "overlap_share"), 0.99);
  EXPECT_LT(fact<double>(bare, "overlap_share"), 0.01);
  EXPECT_EQ(fact<int64_t>(bare, "communication_ns"), 4 * 1500000 + 1500000);
}

TEST(TraceCriticalPath, ItsPiecesAreTheStep) {
  for (const Loop& l : {Loop{.kernel = 90000}, Loop{.op_cpu = 50000, .kernel = 4000},
                        Loop{.data = 2000000, .sync_each = true}, Loop{.communication = 2000000, .copy = 500000}}) {
    auto t = traces::parse_trace(loop(l));
    const GpuTimeline gpu(*t);
    const CriticalPaths paths(*t, gpu);
    for (const TraceStep& s : trace_steps(*t)) {
      auto path = paths.of(step_work(gpu, s));
      ASSERT_FALSE(path.empty());
      EXPECT_EQ(path.front().from, s.start);
      EXPECT_EQ(path.back().to, s.end);
      for (size_t i = 1; i < path.size(); ++i) ASSERT_EQ(path[i].from, path[i - 1].to) << i;
    }
  }
}

// One kernel made slower, or time without an op added, at a random place of a loop that the one or the other bounds.
TEST(TraceDiff, FindsTheCauseOfTwentySlowSteps) {
  Philox random{11, 5};
  for (uint64_t c = 0; c < 20; ++c) {
    const bool kernel = c % 2 == 0;
    const int ops = 30 + static_cast<int>(random.below(c * 8, 40)),
              slowed = static_cast<int>(random.below(c * 8 + 2, static_cast<uint64_t>(ops)));
    const auto extra = static_cast<int64_t>(20000 + random.below(c * 8 + 4, 400000));
    auto make = [&](bool slow) {
      MadeTrace t;
      for (int s = 0; s < 4; ++s) {
        t.begin_step(s);
        for (int i = 0; i < ops; ++i) {
          if (slow && !kernel && i == slowed) t.nothing(extra);
          int64_t base = kernel ? 60000 + 1000 * (i % 11) : 3000 + 100 * (i % 7);
          t.op("aten::op" + std::to_string(i), kernel ? 8000 : 30000 + 500 * (i % 5), "kernel_" + std::to_string(i),
               base + (slow && kernel && i == slowed ? extra : 0));
        }
        t.sync();
        t.end_step();
      }
      return t.text();
    };
    Finding f = run("diff", {make(false), make(true)}, 1000);
    const double change = fact<double>(f, "change_ns"), items = fact<double>(f, "items_ns");
    EXPECT_NEAR(change, static_cast<double>(extra), 0.02 * static_cast<double>(extra) + 2000) << c;
    EXPECT_NEAR(items, change, 0.01 * change) << c;
    ASSERT_FALSE(f.tables[0].rows.empty());
    EXPECT_EQ(std::get<std::string>(f.tables[0].rows[0][0]),
              kernel   ? fmt::format("aten::op{0} > kernel_{0}", slowed)
              : slowed ? fmt::format("no op on the CPU, after aten::op{}", slowed - 1)
                       : "no op on the CPU, at the beginning")
        << "case " << c << ": " << f.sentence;
  }
}

TEST(TraceRanks, ClocksAreAlignedByWhatTheyShare) {
  std::vector<std::shared_ptr<const traces::Trace>> traces;
  const int64_t clocks[] = {0, 3500000, -120000};
  for (int rank = 0; rank < 3; ++rank) traces.push_back(traces::parse_trace(made_rank(rank, clocks[rank])));
  auto offsets = align_clocks(traces);
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_NEAR(static_cast<double>(offsets[static_cast<size_t>(rank)].ahead_ns), static_cast<double>(clocks[rank]),
                30000)
        << rank;
  TraceRequest r;
  r.traces = traces;
  Finding f = trace_analyses().at("ranks").run(r);
  EXPECT_NE(f.sentence.find("Rank 2 comes last"), std::string::npos) << f.sentence;
  ASSERT_EQ(f.tables.at(0).sights.size(), 3u);
  for (int64_t rank = 0; rank < 3; ++rank) {  // the collective to which it came latest
    const Sight& s = f.tables[0].sights[static_cast<size_t>(rank)];
    EXPECT_EQ(s.trace, rank);
    ASSERT_GE(s.event, 0);
    EXPECT_EQ(traces[static_cast<size_t>(rank)]->event_name(static_cast<traces::EventId>(s.event)),
              "ncclDevKernel_AllReduce_Sum_f32");
  }
}

TEST(TraceTables, SumsAreThoseOfTheFile) {
  Loop l{.op_cpu = 10000, .kernel = 20000, .ops = 35};
  Finding kernels = run("kernels", {loop(l)}), ops = run("ops", {loop(l)});
  EXPECT_EQ(fact<int64_t>(kernels, "kernel_count"), 5 * 35);
  EXPECT_EQ(fact<int64_t>(kernels, "total_ns"), 5 * 35 * 20000);
  EXPECT_EQ(fact<int64_t>(ops, "self_ns"), 5 * 35 * 5000);  // half of an op is its launch
  EXPECT_EQ(fact<int64_t>(ops, "gpu_ns"), 5 * 35 * 20000);
  Finding launch = run("launch", {loop(l)});
  EXPECT_EQ(fact<int64_t>(launch, "launches"), 5 * 35);
  EXPECT_EQ(fact<int64_t>(launch, "median_call_ns"), 5000);
}

}  // namespace
}  // namespace tenon::tracing
