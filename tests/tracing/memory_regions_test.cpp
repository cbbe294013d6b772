// Regions that a program marked in a recording, and a recording beside a trace.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tracing/analyses/memory_beside.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/snapshot/regions.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::snapshot {
namespace {

constexpr int64_t kNoon = 1'700'000'000'000'000;  // microseconds since 1970

/// Every `step` microseconds an allocation of a thousand bytes, which stays.
nlohmann::json growing(int events, int64_t begin, int64_t step) {
  nlohmann::json trace = nlohmann::json::array();
  for (int i = 0; i < events; ++i)
    trace.push_back({{"action", "alloc"},
                     {"addr", 1000000 + i * 4096},
                     {"size", 1000},
                     {"stream", 0},
                     {"time_us", begin + i * step}});
  return trace;
}
nlohmann::json mark(const char* stage, const char* name, int device, int64_t time) {
  return {{"stage", stage}, {"name", name}, {"device", device}, {"time_us", time}};
}
std::shared_ptr<const Snapshot> snapshot_of(const nlohmann::json& events, const nlohmann::json& marks) {
  return parse_snapshot(nlohmann::json{
      {"segments", nlohmann::json::array()}, {"device_traces", {events}}, {"external_annotations", marks}}
                            .dump());
}

TEST(Regions, AreFoundByTheirTimesAndLieInEachOther) {
  const auto s = snapshot_of(growing(100, kNoon, 10),
                             {mark("START", "step", 0, kNoon + 100), mark("START", "forward", 0, kNoon + 200),
                              mark("END", "forward", 0, kNoon + 405), mark("START", "step", 1, kNoon + 300),
                              mark("END", "step", 0, kNoon + 500), mark("END", "warm-up", 0, kNoon + 50),
                              mark("START", "last", -1, kNoon + 900)});
  const auto all = regions(*s, 0);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].name, "warm-up") << "it began before the recording";
  EXPECT_EQ(all[0].begin, 0u);
  EXPECT_EQ(all[0].end, 5u);
  EXPECT_EQ(all[1].name, "step");
  EXPECT_EQ(all[1].begin, 10u);
  EXPECT_EQ(all[1].end, 50u);
  EXPECT_EQ(all[1].depth, 0u);
  EXPECT_EQ(all[2].name, "forward");
  EXPECT_EQ(all[2].end, 41u);
  EXPECT_EQ(all[2].depth, 1u);
  EXPECT_EQ(all[3].name, "last");
  EXPECT_EQ(all[3].end, 100u);
  EXPECT_TRUE(all[3].open);
  EXPECT_TRUE(regions(*s, 7).empty());
  const auto f = tracing::snapshot_analyses().at("regions").run({.snapshots = {s}});
  ASSERT_TRUE(f.ok) << f.sentence;
  ASSERT_EQ(f.tables.at(0).rows.size(), 4u);
  EXPECT_EQ(std::get<int64_t>(f.tables[0].rows[1][2]), 10 * 1000) << "alive before it";
  EXPECT_EQ(std::get<int64_t>(f.tables[0].rows[1][3]), 50 * 1000);
  EXPECT_EQ(std::get<int64_t>(f.tables[0].rows[1][5]), 40 * 1000);
  EXPECT_EQ(f.tables[0].sights[1].event, 10);
}

TEST(Regions, OfOlderRecordingsAreEventsOfTheirOwn) {
  nlohmann::json events = growing(4, kNoon, 10);
  auto told = [](const char* stage) {
    return nlohmann::json{{"action", "user_defined"},
                          {"addr", 0},
                          {"size", 0},
                          {"stream", 0},
                          {"time_us", kNoon},
                          {"frames", {{{"name", stage}, {"filename", "epoch"}, {"line", 0}}}}};
  };
  events.insert(events.begin() + 1, told("START"));
  events.insert(events.begin() + 4, told("END"));
  const auto all = regions(*snapshot_of(events, nlohmann::json::array()), 0);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name, "epoch");
  EXPECT_EQ(all[0].begin, 1u);
  EXPECT_EQ(all[0].end, 4u);
}

TEST(Regions, WithoutTimesThereAreNone) {
  nlohmann::json events = growing(4, kNoon, 10);
  for (auto& e : events) e.erase("time_us");
  const auto s = snapshot_of(events, {mark("START", "step", 0, kNoon), mark("END", "step", 0, kNoon + 9)});
  EXPECT_TRUE(regions(*s, 0).empty());
  EXPECT_FALSE(tracing::snapshot_analyses().at("regions").run({.snapshots = {s}}).ok);
}

/// A trace of one op from `begin` on, in microseconds since 1970.
std::shared_ptr<const traces::Trace> trace_from(int64_t begin, int64_t length) {
  nlohmann::json t;
  t["traceEvents"].push_back(
      {{"ph", "X"}, {"cat", "cpu_op"}, {"name", "aten::mm"}, {"pid", 1}, {"tid", 1}, {"ts", begin}, {"dur", length}});
  return traces::parse_trace(t.dump());
}

TEST(MemoryBeside, LiesOnTheTracesAxisWhereTheClocksAgree) {
  const auto s = snapshot_of(growing(100, kNoon, 10), nlohmann::json::array());
  const Timeline timeline(*s, 0);
  const auto t = trace_from(kNoon + 205, 300);
  const auto curve = tracing::memory_beside(*t, *s, timeline, 0, "memory");
  ASSERT_TRUE(curve);
  EXPECT_TRUE(curve->bytes());
  EXPECT_EQ(curve->at(t->begin()), 21 * 1000) << "what the last event before it left";
  EXPECT_EQ(curve->at(t->begin() + 5000), 22 * 1000);
  EXPECT_EQ(curve->at(t->finish()), 51 * 1000);
  EXPECT_EQ(curve->peak(), 51 * 1000) << "what comes later is not of this trace";
}

TEST(MemoryBeside, IsNotThereWhereTheyDoNot) {
  const auto s = snapshot_of(growing(100, kNoon, 10), nlohmann::json::array());
  const Timeline timeline(*s, 0);
  EXPECT_FALSE(tracing::memory_beside(*trace_from(kNoon + 5000, 300), *s, timeline, 0, "m")) << "later";
  EXPECT_FALSE(tracing::memory_beside(*trace_from(kNoon - 5000, 300), *s, timeline, 0, "m")) << "earlier";
  EXPECT_FALSE(tracing::memory_beside(*trace_from(100, 300), *s, timeline, 0, "m"))
      << "a clock from the machine's start";
  nlohmann::json back = growing(100, kNoon, 10);
  back[50]["time_us"] = kNoon;
  const auto odd = snapshot_of(back, nlohmann::json::array());
  EXPECT_FALSE(tracing::memory_beside(*trace_from(kNoon + 205, 300), *odd, Timeline(*odd, 0), 0, "m"));
}

}  // namespace
}  // namespace tenon::snapshot
