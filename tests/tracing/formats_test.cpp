#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "engine/model/templates.h"
#include "engine/train/session.h"
#include "tracing/chrome_trace.h"
#include "tracing/memory_snapshot.h"
#include "tracing/trace_info.h"

namespace tenon::tracing {
namespace {

TrainingSession& session() {
  static TrainingSession s(find_template("spirals").model, find_template("spirals").recipe);
  return s;
}

TEST(Snapshot, AnyDamageIsAnErrorNotACrash) {
  std::string good = snapshot_pickle(record_memory(session(), 1));
  for (size_t n = 0; n < good.size(); n += 1 + good.size() / 500) EXPECT_THROW(snapshot_info(good.substr(0, n)), Error);
  Philox random{5, 6};
  for (uint64_t i = 0; i < 2000; ++i) {
    std::string bad = good.substr(0, 4000);
    for (uint64_t k = 0; k < 4; ++k) bad[random.below(i * 8 + k * 2, bad.size())] = static_cast<char>(random.word(i * 100 + k));
    try {
      snapshot_info(bad);
    } catch (const Error&) {
    }
  }
}

TEST(Snapshot, FiguresAreTheRecordings) {
  MemoryRecording r = record_memory(session(), 2);
  SnapshotInfo info = snapshot_info(snapshot_pickle(r));
  int64_t allocs = 0, frees = 0, live = 0, peak = 0;
  for (const AllocEvent& e : r.events) {
    ++(e.bytes >= 0 ? allocs : frees);
    live += e.bytes;
    peak = std::max(peak, live);
  }
  EXPECT_EQ(info.allocs, allocs);
  EXPECT_EQ(info.frees, frees);
  EXPECT_EQ(info.active_bytes, live);
  EXPECT_EQ(info.peak_bytes, peak);
  int64_t sites = 0;
  for (const auto& s : info.at_peak) sites += s.bytes;
  EXPECT_EQ(sites, peak);
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

TEST(TraceInfo, CountsWhatTheTraceHolds) {
  Profile p = record_profile(session(), 2);
  const std::string text = chrome_trace(p, "run");
  const TraceInfo info = trace_info(text);
  const auto j = nlohmann::json::parse(text);
  EXPECT_EQ(info.events, static_cast<int64_t>(j.at("traceEvents").size()));
  EXPECT_EQ(info.keys.size(), j.size() - 1);
  int64_t ops = 0;
  for (const auto& e : j.at("traceEvents")) ops += e.value("cat", "") == "cpu_op";
  for (const auto& [category, n] : info.categories) {
    if (category == "cpu_op") {
      EXPECT_EQ(n, ops);
    }
  }
  // The form that is a list alone; categories of nested objects do not count.
  const TraceInfo list = trace_info(R"([{"ph":"X","cat":"a","args":{"cat":"b"}},{"ph":"M"}])");
  EXPECT_EQ(list.events, 2);
  EXPECT_EQ(list.categories, (std::vector<std::pair<std::string, int64_t>>{{"a", 1}}));
  for (const char* bad : {"", "{", "{}", "{\"traceEvents\":3}", "{\"traceEvents\":[{}", "3"}) EXPECT_THROW(trace_info(bad), Error) << bad;
  EXPECT_THROW(trace_info(std::string(1000000, '[')), Error);
}

}  // namespace
}  // namespace tenon::tracing
