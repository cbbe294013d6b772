// One training loop recorded by PyTorch's profiler on a CPU, once plain and each time with one thing made slower
// (tests/peers/record_loops.py).
#include "tests/tracing/findings.h"

#include "tracing/analyses/critical_path.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

std::shared_ptr<const traces::Trace> recorded_loop(const std::string& name) {
  traces::ReadOptions o;
  o.read_cache = o.write_cache = false;
  return traces::read_trace(std::string(TENON_SOURCE_DIR) + "/tests/tracing/loops/" + name + ".json.gz", o);
}
struct Variant {
  const char *name, *path, *path_with_stacks,
      *cause;  ///< part of what comes first in the comparison with the plain loop; what bounds a step
  double calls_more;
};
const Variant kVariants[] = {
    {"sleep", "augment (CPU)", "Network_0/augment > <built-in function sleep> (CPU)", "host", 0},
    {"twice", "onvolution", "Network_0/Conv2d_1", nullptr, 8},  // forward or backward of it
    {"data", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ (CPU)",
     "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ > <built-in function sleep> (CPU)", "data", 0},
    {"python", "no op on the CPU, after aten::relu", "Network_0 > <built-in function sorted> (CPU)", "host", 0},
};

TEST(TraceLoops, WhatWasMadeSlowerComesFirst) {
  for (const Variant& v : kVariants)
    for (const std::string stacks : {"", "-stacks"}) {
      SCOPED_TRACE(v.name + stacks);
      auto plain = recorded_loop("plain" + stacks), slow = recorded_loop(v.name + stacks);
      Finding f = run("diff", {plain, slow});
      ASSERT_FALSE(f.tables[0].rows.empty());
      const auto& first = f.tables[0].rows[0];
      EXPECT_NE(std::get<std::string>(first.back()).find(stacks.empty() ? v.path : v.path_with_stacks),
                std::string::npos)
          << std::get<std::string>(first.back()) << "\n"
          << f.sentence;
      EXPECT_TRUE(v.calls_more == 0 || std::get<double>(first[6]) - std::get<double>(first[5]) == v.calls_more)
          << f.sentence;
      double sum = 0;
      for (const auto& row : f.tables[0].rows) sum += std::get<double>(row[1]);
      EXPECT_NEAR(sum, fact<double>(f, "change_ns"), 1);
      if (v.cause) {
        EXPECT_EQ(fact<std::string>(run("why", {slow}), "cause"), v.cause);
      }
    }
}

TEST(TraceLoops, PathsAndPhasesAddUp) {
  for (const std::string name : {"plain", "plain-stacks", "twice-stacks", "data"}) {
    SCOPED_TRACE(name);
    auto t = recorded_loop(name);
    const GpuTimeline gpu(*t);
    const CriticalPaths paths(*t, gpu);
    ASSERT_EQ(trace_steps(*t).size(), 3u);
    for (const TraceStep& s : trace_steps(*t)) {
      int64_t at = s.start, frames = 0;
      for (const PathPiece& p : paths.of(step_work(gpu, s))) {
        ASSERT_EQ(p.from, at);
        at = p.to;
        if (p.event == traces::kNone) frames += p.to - p.from;  // everything of a step lies within its annotation
      }
      EXPECT_EQ(at, s.end);
      EXPECT_EQ(frames, 0);
    }
    Finding f = run("steps", {t});
    for (const auto& row : f.tables[0].rows) {
      int64_t parts = 0;
      for (size_t c = 3; c <= 8; ++c) parts += std::get<int64_t>(row[c]);
      EXPECT_EQ(parts, std::get<int64_t>(row[2]));
      EXPECT_EQ(std::get<int64_t>(row[1]), std::get<int64_t>(row[2]));
    }
  }
}

// profiler.step() begins in one step and ends in the next; steps must not come to lie ever deeper for that.
TEST(TraceLoops, StepsLieBesideEachOther) {
  auto t = recorded_loop("plain-stacks");
  std::vector<uint32_t> depths;
  for (uint32_t l = 0; l < t->lanes().size(); ++l)
    for (traces::EventId e = t->lanes()[l].begin; e < t->lanes()[l].end; ++e)
      if (t->event_name(e).starts_with("ProfilerStep#")) depths.push_back(t->lanes()[l].depth);
  ASSERT_EQ(depths.size(), 3u);
  EXPECT_EQ(depths[1], depths[2]);
}

TEST(TraceLoops, ModulesKnowTheirBackward) {
  Finding f = run("modules", {recorded_loop("twice-stacks")});
  ASSERT_FALSE(f.tables[0].rows.empty());
  const auto& first = f.tables[0].rows[0];
  EXPECT_EQ(std::get<std::string>(first[0]), "Network_0/Conv2d_1");
  EXPECT_EQ(std::get<int64_t>(first[1]), 3 * 9);
  EXPECT_GT(std::get<int64_t>(first[4]), 0);
}

}  // namespace
}  // namespace tenon::tracing
