#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "engine/model/templates.h"
#include "engine/train/session.h"
#include "tracing/chrome_trace.h"
#include "tracing/memory_snapshot.h"
#include "tracing/pickle.h"

namespace tenon::tracing {
namespace {

TrainingSession& session() {
  static TrainingSession s(find_template("spirals").model, find_template("spirals").recipe);
  return s;
}

TEST(Pickle, WhatIsWrittenIsRead) {
  PickleWriter w;
  w.begin_dict();
  w.text("numbers");
  w.begin_list();
  for (int64_t v : {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{-1}, int64_t{1} << 40, INT64_MIN}) w.integer(v);
  w.number(-0.5);
  w.none();
  w.boolean(true);
  w.end_list();
  w.text("long");
  w.text(std::string(1000, 'x'));
  w.end_dict();
  PyRef v = read_pickle(w.finish());
  const auto& list = *v->list("numbers");
  ASSERT_EQ(list.size(), 9u);
  EXPECT_EQ(std::get<int64_t>(list[2]->value), 256);
  EXPECT_EQ(std::get<int64_t>(list[4]->value), int64_t{1} << 40);
  EXPECT_EQ(std::get<int64_t>(list[5]->value), INT64_MIN);
  EXPECT_EQ(std::get<double>(list[6]->value), -0.5);
  EXPECT_EQ(std::get<bool>(list[8]->value), true);
  EXPECT_EQ(v->text("long").size(), 1000u);
}

// pickle.dumps({"a": [1, (2, "b")], "c": None}, p) of CPython for p = 2 and 5.
TEST(Pickle, ReadsWhatPythonWrites) {
  std::string two("\x80\x02}q\x00(X\x01\x00\x00\x00" "aq\x01]q\x02(K\x01K\x02X\x01\x00\x00\x00" "bq\x03\x86q\x04" "eX\x01\x00\x00\x00" "cq\x05Nu.", 48);
  PyRef v = read_pickle(two);
  EXPECT_EQ(v->list("a")->size(), 2u);
  EXPECT_TRUE(v->find("c"));
}

TEST(Pickle, ValuesNestedMillionsDeepAreTakenApartAgain) {
  EXPECT_NO_THROW(read_pickle(std::string("\x80\x04)", 3) + std::string(2000000, '\x85') + "."));
  EXPECT_NO_THROW(read_pickle(std::string("\x80\x04", 2) + std::string(2000000, ']') + std::string(1999999, 'a') + "."));
}

TEST(Pickle, NothingIsEverRun) {
  std::string evil("\x80\x02" "cos\nsystem\n(X\x02\x00\x00\x00" "lstR.", 25);
  try {
    read_pickle(evil);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("nothing in it was run"), std::string::npos);
  }
}

TEST(Pickle, AnyDamageIsAnErrorNotACrash) {
  std::string good = snapshot_pickle(record_memory(session(), 1));
  for (size_t n = 0; n < good.size(); n += 1 + good.size() / 500) EXPECT_THROW(read_pickle(good.substr(0, n)), Error);
  Philox random{5, 6};
  for (uint64_t i = 0; i < 2000; ++i) {
    std::string bad = good.substr(0, 4000);
    for (uint64_t k = 0; k < 4; ++k) bad[random.below(i * 8 + k * 2, bad.size())] = static_cast<char>(random.word(i * 100 + k));
    try {
      read_pickle(bad);
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

}  // namespace
}  // namespace tenon::tracing
