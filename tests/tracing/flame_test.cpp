// Flame graphs: what each path holds is compared with sums over the events, or over what is alive.
#include "tracing/analyses/flame.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "tests/tracing/made_snapshot.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

/// Two threads; "outer" holds two of "inner", one of which holds "leaf"; a stream with two kernels, side by side.
std::shared_ptr<const traces::Trace> nested() {
  return traces::parse_trace(R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "outer", "pid": 1, "tid": 1, "ts": 0, "dur": 100},
    {"ph": "X", "cat": "cpu_op", "name": "inner", "pid": 1, "tid": 1, "ts": 10, "dur": 30},
    {"ph": "X", "cat": "cpu_op", "name": "leaf", "pid": 1, "tid": 1, "ts": 15, "dur": 20},
    {"ph": "X", "cat": "cpu_op", "name": "inner", "pid": 1, "tid": 1, "ts": 50, "dur": 40},
    {"ph": "X", "cat": "cpu_op", "name": "alone", "pid": 1, "tid": 1, "ts": 200, "dur": 5},
    {"ph": "X", "cat": "cpu_op", "name": "other", "pid": 1, "tid": 2, "ts": 0, "dur": 60},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 50},
    {"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": 40, "dur": 50}
  ]})");
}

std::map<std::string, Flame::Node> by_path(const Flame& f) {
  std::map<std::string, Flame::Node> out;
  for (uint32_t i = 1; i < f.nodes().size(); ++i) out.emplace(f.path(i), f.nodes()[i]);
  return out;
}
const Flame::Node& ending(const std::map<std::string, Flame::Node>& all, const std::string& end) {
  for (const auto& [path, node] : all)
    if (path.ends_with(end)) return node;
  ADD_FAILURE() << "no path ends in " << end;
  return all.begin()->second;
}

TEST(FlameGraph, steps_are_one_call_made_again_and_again) {
  const auto trace = traces::parse_trace(R"({"traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 1, "tid": 1, "ts": 0, "dur": 100},
    {"ph": "X", "cat": "cpu_op", "name": "work", "pid": 1, "tid": 1, "ts": 10, "dur": 30},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#8", "pid": 1, "tid": 1, "ts": 100, "dur": 150},
    {"ph": "X", "cat": "cpu_op", "name": "work", "pid": 1, "tid": 1, "ts": 110, "dur": 40}
  ]})");
  const auto all = by_path(flame_of(*trace, {}));
  ASSERT_EQ(all.size(), 3u) << "the thread, the steps, their work";
  EXPECT_EQ(ending(all, "ProfilerStep*").total, 250'000);
  EXPECT_EQ(ending(all, "ProfilerStep*").self, 180'000);
  EXPECT_EQ(ending(all, "ProfilerStep*").count, 2);
  EXPECT_EQ(trace->event_name(ending(all, "ProfilerStep*").longest), "ProfilerStep#8") << "the longest of them";
  EXPECT_EQ(ending(all, "ProfilerStep* › work").self, 70'000);
}

TEST(FlameGraph, callers_hold_what_they_call) {
  const auto trace = nested();
  const Flame f = flame_of(*trace, {});
  const auto all = by_path(f);
  EXPECT_EQ(ending(all, "outer").total, 100'000);
  EXPECT_EQ(ending(all, "outer").self, 30'000);
  EXPECT_EQ(ending(all, "outer › inner").total, 70'000);
  EXPECT_EQ(ending(all, "outer › inner").self, 50'000);
  EXPECT_EQ(ending(all, "outer › inner").count, 2);
  EXPECT_EQ(ending(all, "inner › leaf").self, 20'000);
  EXPECT_EQ(trace->event_name(ending(all, "outer › inner").longest), "inner");
  EXPECT_EQ(trace->duration(ending(all, "outer › inner").longest), 40'000);
  // Kernels that run at the same time are beside each other, not one within the other.
  EXPECT_EQ(ending(all, "gemm").self, 50'000);
  EXPECT_EQ(ending(all, "add").self, 50'000);
  EXPECT_EQ(f.nodes()[0].total, (100 + 5 + 60 + 100) * 1000);
  for (uint32_t i = 0; i < f.nodes().size(); ++i) {
    int64_t below = f.nodes()[i].self, before = INT64_MAX;
    for (const uint32_t c : f.children(i)) {
      EXPECT_EQ(f.nodes()[c].parent, i);
      EXPECT_LE(f.nodes()[c].total, before);
      before = f.nodes()[c].total;
      below += f.nodes()[c].total;
    }
    EXPECT_EQ(below, f.nodes()[i].total) << f.path(i);
  }
}

TEST(FlameGraph, of_a_stretch_and_of_a_thread) {
  const auto trace = nested();
  // 30 to 60 µs: the first inner's last ten, of which five are its leaf's; the second inner's first ten.
  FlamePart part;
  part.from = trace->begin() + 30'000;
  part.to = trace->begin() + 60'000;
  const Flame f = flame_of(*trace, part);
  const auto all = by_path(f);
  EXPECT_EQ(ending(all, "outer").total, 30'000);
  EXPECT_EQ(ending(all, "outer › inner").total, 20'000);
  EXPECT_EQ(ending(all, "inner › leaf").total, 5'000);
  EXPECT_EQ(ending(all, "gemm").total, 30'000);
  EXPECT_EQ(ending(all, "add").total, 20'000);
  part = {};
  for (size_t r = 0; r < trace->rows().size(); ++r) {
    part.row = static_cast<int64_t>(r);
    const Flame of_row = flame_of(*trace, part);
    for (const uint32_t c : of_row.children(0))
      EXPECT_NE(of_row.text(c), trace->rows()[r].label()) << "one thread needs no name above it";
  }
  part = {.from = trace->begin() + 150'000, .to = trace->begin() + 160'000};
  EXPECT_TRUE(flame_of(*trace, part).empty());
  part = {.progress = [](uint64_t, uint64_t) { return false; }};
  EXPECT_THROW(flame_of(*trace, part), Error);
}

TEST(FlameGraph, of_a_snapshot_by_stack) {
  snapshot::MadeSnapshot m;
  m.alloc("a.py", 1000);
  m.alloc("a.py", 500);
  const uint64_t gone = m.alloc("b.py", 4000);
  m.alloc("c.py", 50);
  m.free(gone);
  const auto s = m.done();
  const snapshot::Timeline t(*s, 0);
  const Flame peak = flame_of(*s, t, t.peak());
  EXPECT_EQ(peak.nodes()[0].total, t.peak_bytes());
  EXPECT_EQ(ending(by_path(peak), "f (a.py:1)").self, 1500);
  EXPECT_EQ(ending(by_path(peak), "f (a.py:1)").count, 2);
  const Flame end = flame_of(*s, t, t.events() - 1);
  EXPECT_EQ(end.nodes()[0].total, t.bytes(t.events() - 1));
  EXPECT_EQ(by_path(end).count("f (b.py:1)"), 0u);
}

TEST(FlameGraph, as_rows_on_the_command_line) {
  const auto trace = nested();
  const Finding f = trace_analyses().at("stacks").run({.traces = {trace}});
  ASSERT_TRUE(f.ok);
  EXPECT_EQ(std::get<int64_t>(f.facts[0].value), 265'000);
  ASSERT_FALSE(f.tables[0].rows.empty());
  EXPECT_EQ(std::get<std::string>(f.tables[0].rows[0][0]), "other") << "60 µs, all its own";
  EXPECT_NE(f.sentence.find("other"), std::string::npos);
  EXPECT_FALSE(trace_analyses().at("stacks").run({.traces = {trace}, .step = 7}).ok);
  snapshot::MadeSnapshot m;
  m.alloc("a.py", 1000);
  const Finding g = snapshot_analyses().at("stacks").run({.snapshots = {m.done()}});
  ASSERT_TRUE(g.ok);
  EXPECT_EQ(std::get<std::string>(g.tables[0].rows[0][0]), "f (a.py:1)");
  EXPECT_EQ(g.tables[0].sights[0].place, "f (a.py:1)");
  EXPECT_FALSE(snapshot_analyses().at("stacks").run({.snapshots = {m.done()}, .at = 99}).ok);
}

}  // namespace
}  // namespace tenon::tracing
