// Growth of memory: what goes on, and what comes to an end.
#include "engine/train/memory_growth.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace tenon {
namespace {

std::vector<int64_t> curve(int64_t steps, const std::function<int64_t(int64_t)>& live) {
  std::vector<int64_t> v;
  for (int64_t i = 1; i <= steps; ++i) v.push_back(live(i));
  return v;
}

TEST(MemoryGrowths, what_grows_to_the_end_goes_on) {
  const MemoryGrowth g = growth_of(curve(20, [](int64_t i) { return 100 * i; }));
  EXPECT_TRUE(g.goes_on);
  EXPECT_EQ(g.bytes_a_step, 100);
  EXPECT_EQ(g.kept, 2000);
  EXPECT_EQ(g.last_growth, 19);
  for (const int64_t every : {2, 3, 4, 5})
    EXPECT_TRUE(growth_of(curve(20, [&](int64_t i) { return 64 * (i / every); })).goes_on) << every;
  std::mt19937 random(3);
  EXPECT_TRUE(growth_of(curve(40, [&](int64_t i) { return 50 * i + static_cast<int64_t>(random() % 300); })).goes_on);
}

TEST(MemoryGrowths, what_ends_does_not) {
  const auto goes_on = [](int64_t steps, const std::function<int64_t(int64_t)>& live) {
    return growth_of(curve(steps, live)).goes_on;
  };
  EXPECT_FALSE(goes_on(20, [](int64_t) { return 4096; }));
  EXPECT_FALSE(goes_on(20, [](int64_t) { return 0; }));
  EXPECT_FALSE(goes_on(7, [](int64_t i) { return i; })) << "too few steps for a verdict";
  for (int64_t full = 1; full <= 14; ++full)
    EXPECT_FALSE(goes_on(20, [&](int64_t i) { return 10 * std::min(i, full); })) << full;
  for (int64_t period = 2; period <= 20; ++period)
    EXPECT_FALSE(goes_on(60, [&](int64_t i) { return 10 * (i % period); })) << period;
  EXPECT_FALSE(goes_on(20, [](int64_t i) { return i == 20 ? 900 : 100; })) << "the last step alone";
  EXPECT_FALSE(goes_on(24, [](int64_t i) { return i < 13 ? 100000 * i : 1300000 + i; })) << "next to nothing is left";
  EXPECT_EQ(growth_of(curve(20, [](int64_t i) { return 10 * std::min<int64_t>(i, 6); })).last_growth, 5);
  EXPECT_EQ(growth_of({}).last_growth, -1);
}

TEST(MemoryGrowths, a_run_is_watched_over_two_epochs) {
  const auto first = [](int64_t epoch, int64_t steps, const std::function<int64_t(int64_t)>& live) {
    GrowthWatch w(epoch);
    for (int64_t i = 1; i <= steps; ++i)
      if (w.take(live(i)) > 0) return i;
    return int64_t{0};
  };
  EXPECT_EQ(first(10, 500, [](int64_t) { return 1 << 20; }), 0);
  const int64_t at = first(10, 500, [](int64_t i) { return (1 << 20) + 256 * i; });
  EXPECT_GE(at, 64);
  EXPECT_LE(at, 100);
  EXPECT_EQ(first(100, 2000, [](int64_t i) { return 64 * std::min<int64_t>(i, 100); }), 0)
      << "a cache of what an epoch has";
  const int64_t later = first(100, 2000, [](int64_t i) { return i < 700 ? 5000 : 5000 + 64 * (i - 700); });
  EXPECT_GT(later, 700);
  EXPECT_LE(later, 1000);
  // Batches that are ready or not, and states that are written now and then.
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const auto up_and_down = [&](int64_t i) {
      return (1 << 20) + 1200 * static_cast<int64_t>(random() % 5) + (i % 50 < 3 ? 40000 : 0);
    };
    EXPECT_EQ(first(10, 500, up_and_down), 0) << seed;
  }
  std::mt19937 random(5);
  const int64_t little = first(10, 2000, [&](int64_t i) { return 64 * i + 1200 * static_cast<int64_t>(random() % 5); });
  EXPECT_GT(little, 64);
  EXPECT_LE(little, 800) << "growth by less than what goes up and down is seen over more steps";
  // Pieces of a queue that fills, with what is next to them.
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    int64_t pieces = 1;
    const auto queue = [&](int64_t) {
      if (random() % 24 == 0) pieces = std::clamp<int64_t>(pieces + static_cast<int64_t>(random() % 3) - 1, 0, 4);
      return (1 << 20) + 36000 * pieces + 1800 * static_cast<int64_t>(random() % 5);
    };
    EXPECT_EQ(first(16, 1000, queue), 0) << seed;
  }
  GrowthWatch w(10);
  for (int64_t i = 1; i <= 200; ++i) w.take(1000 * i);
  EXPECT_NEAR(w.bytes_a_step(), 1000, 1);
  for (int64_t i = 1; i <= 3000; ++i) w.take(200000);
  EXPECT_EQ(w.bytes_a_step(), 0) << "it has ended";
}

TEST(MemoryGrowths, states_that_wait_to_be_written_are_no_growth) {
  const int64_t before = live_bytes_of_training();
  {
    AwaitingWrite none, state(4096);
    EXPECT_EQ(live_bytes_of_training(), before - 4096);
    none = std::move(state);
    AwaitingWrite moved(std::move(none));
    EXPECT_EQ(live_bytes_of_training(), before - 4096);
    moved = AwaitingWrite(100);
    EXPECT_EQ(live_bytes_of_training(), before - 100);
  }
  EXPECT_EQ(live_bytes_of_training(), before);
}

}  // namespace
}  // namespace tenon
