// What guides warn of, planted in recordings of memory: each is found by its own check, and nothing where all is well.
#include "tracing/checks/snapshot_checks.h"

#include <gtest/gtest.h>

#include "tests/tracing/made_snapshot.h"

namespace tenon::tracing {
namespace {

using snapshot::MadeSnapshot;

constexpr int64_t kMiB = int64_t{1} << 20;

/// Steps that take memory and give it back.
MadeSnapshot steady(int steps = 40) {
  MadeSnapshot s;
  s.segment(uint64_t{1} << 40, 200 * kMiB, {{150 * kMiB, true, "model.py"}, {50 * kMiB, false, "model.py"}});
  for (int i = 0; i < steps; ++i) {
    const uint64_t a = s.alloc("forward.py", 8 * kMiB), b = s.alloc("loss.py", kMiB);
    s.free(b);
    s.free(a);
  }
  return s;
}

std::vector<std::string> named(const MadeSnapshot& s) {
  std::vector<std::string> names;
  for (const CheckResult& r : check_snapshot(s.done()))
    if (!r.complaints.empty()) names.push_back(r.name);
  return names;
}

TEST(SnapshotChecks, nothing_is_found_where_all_is_well) {
  EXPECT_EQ(named(steady()), std::vector<std::string>());
  for (const CheckResult& r : check_snapshot(steady().done())) EXPECT_TRUE(r.skipped.empty()) << r.skipped;
}

TEST(SnapshotChecks, memory_that_stays_is_found_with_its_place) {
  MadeSnapshot s = steady(0);
  for (int i = 0; i < 200; ++i) {
    const uint64_t a = s.alloc("forward.py", 8 * kMiB);
    s.alloc("outputs.py", kMiB);
    s.free(a);
  }
  const auto results = check_snapshot(s.done());
  const CheckResult* leak = nullptr;
  for (const CheckResult& r : results)
    if (r.name == "snapshot.leak") leak = &r;
  ASSERT_TRUE(leak && leak->complaints.size() == 1);
  EXPECT_NE(leak->complaints[0].about.find("outputs.py"), std::string::npos) << leak->complaints[0].about;
  EXPECT_EQ(leak->complaints[0].sight.place, leak->complaints[0].about);
}

TEST(SnapshotChecks, pieces_an_idle_cache_a_failure_and_a_bare_recording) {
  MadeSnapshot pieces = steady();
  pieces.segment(
      uint64_t{2} << 40, 300 * kMiB,
      {{10 * kMiB, true, "a.py"}, {100 * kMiB, false, "a.py"}, {10 * kMiB, true, "a.py"}, {180 * kMiB, false, "a.py"}});
  EXPECT_EQ(named(pieces), std::vector<std::string>{"snapshot.fragmentation"});

  MadeSnapshot idle = steady();
  idle.segment(uint64_t{2} << 40, 900 * kMiB, {{900 * kMiB, false, "a.py"}});
  EXPECT_EQ(named(idle), std::vector<std::string>{"snapshot.idle_cache"});

  MadeSnapshot failed = steady();
  failed.oom(700 * kMiB, 20 * kMiB);
  const auto results = check_snapshot(failed.done());
  for (const CheckResult& r : results)
    if (r.name == "snapshot.out_of_memory") {
      ASSERT_EQ(r.complaints.size(), 1u);
      EXPECT_NE(r.complaints[0].seen.find("700.0 MiB"), std::string::npos) << r.complaints[0].seen;
    }
  EXPECT_EQ(named(failed), std::vector<std::string>{"snapshot.out_of_memory"});

  EXPECT_EQ(named(steady(0)), std::vector<std::string>{"snapshot.stacks"}) << "no events: nobody knows who took it";
}

TEST(SnapshotChecks, segments_that_come_and_go_and_a_recording_that_was_cut) {
  MadeSnapshot s = steady();
  for (int i = 0; i < 30; ++i) {
    s.driver("segment_alloc", uint64_t{5} << 40, 20 * kMiB);
    s.driver("segment_free", uint64_t{5} << 40, 20 * kMiB);
  }
  EXPECT_EQ(named(s), std::vector<std::string>{"snapshot.segments"});

  std::string text = steady().text();
  text.resize(text.size() - 200);
  bool said = false;
  for (const CheckResult& r : check_snapshot(snapshot::parse_snapshot(text)))
    said |= r.name == "snapshot.file" && !r.complaints.empty();
  EXPECT_TRUE(said);
}

}  // namespace
}  // namespace tenon::tracing
