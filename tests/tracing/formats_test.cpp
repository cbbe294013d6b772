#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "engine/model/templates.h"
#include "engine/train/session.h"
#include "tracing/chrome_trace.h"
#include "tracing/memory_snapshot.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/snapshot/snapshot.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

TrainingSession& session() {
  static TrainingSession s(find_template("spirals").model, find_template("spirals").recipe);
  return s;
}

TEST(Snapshot, OfOursOpensAndEveryPrefixToo) {
  std::string good = snapshot_pickle(record_memory(session(), 1));
  auto whole = snapshot::parse_snapshot(good);
  EXPECT_FALSE(whole->truncated);
  size_t opened = 0;
  for (size_t n = good.size() / 50; n < good.size(); n += 1 + good.size() / 1200) {
    try {
      auto part = snapshot::parse_snapshot(good.substr(0, n));
      EXPECT_TRUE(part->truncated);
      EXPECT_LE(part->events.size_(), whole->events.size_() + 1);
      ++opened;
    } catch (const Error&) {  // cut before the first row was whole
    }
  }
  EXPECT_GT(opened, 1000u);
  Philox random{5, 6};
  for (uint64_t i = 0; i < 2000; ++i) {
    std::string bad = good.substr(0, 4000);
    for (uint64_t k = 0; k < 4; ++k) bad[random.below(i * 8 + k * 2, bad.size())] = static_cast<char>(random.word(i * 100 + k));
    try {
      snapshot::parse_snapshot(bad);
    } catch (const Error&) {
    }
  }
}

TEST(Snapshot, FiguresAreTheRecordings) {
  MemoryRecording r = record_memory(session(), 2);
  auto s = snapshot::parse_snapshot(snapshot_pickle(r));
  int64_t allocs = 0, live = 0, peak = 0, reserved = 0;
  for (const AllocEvent& e : r.events) {
    allocs += e.bytes >= 0;
    live += e.bytes;
    peak = std::max(peak, live);
  }
  ASSERT_EQ(s->traces.size(), 1u);
  snapshot::Timeline t(*s, 0);
  EXPECT_EQ(std::count(s->events.action.begin(), s->events.action.end(), snapshot::Action::alloc), allocs);
  EXPECT_EQ(t.peak_bytes(), peak);
  EXPECT_EQ(t.bytes(t.events() - 1), live);
  for (const auto& g : s->segments) reserved += g.total;
  EXPECT_EQ(reserved, live);
  int64_t at_peak = 0;
  for (uint32_t id : t.live(t.peak())) at_peak += t.element(id).bytes;
  EXPECT_EQ(at_peak, peak);
}

TEST(ChromeTrace, IsJsonWithEveryEvent) {
  Profile p = record_profile(session(), 3);
  auto j = nlohmann::json::parse(chrome_trace(p, "a \"quoted\" run"));
  size_t ops = 0, steps = 0;
  for (const auto& e : j.at("traceEvents")) {
    if (e.at("ph") != "X") continue;
    EXPECT_GE(e.at("dur").get<double>(), 0);
    ops += e.at("cat") == "cpu_op";
    steps += e.at("name").get<std::string>().rfind("ProfilerStep#", 0) == 0;
  }
  size_t expected = 0;
  for (const OpEvent& e : p.events) expected += e.seq != 0;
  EXPECT_EQ(ops, expected);
  EXPECT_GT(ops, 30u);
  EXPECT_EQ(steps, 3u);
}

TEST(ChromeTrace, OfOursOpensAsTraces) {
  Profile p = record_profile(session(), 3);
  auto t = trace::parse_trace(chrome_trace(p, "run"));
  EXPECT_TRUE(t->repairs().empty());
  EXPECT_EQ(trace_steps(*t).size(), 3u);
  TraceRequest r;
  r.traces.push_back(t);
  for (const char* name : {"info", "ops", "steps", "modules", "critical-path", "why"}) {
    Finding f = find_trace_analysis(name)->run(r);
    EXPECT_TRUE(f.ok) << name << ": " << f.sentence;
  }
  EXPECT_FALSE(find_trace_analysis("kernels")->run(r).ok) << "there is no GPU in it";
}

}  // namespace
}  // namespace tenon::tracing
