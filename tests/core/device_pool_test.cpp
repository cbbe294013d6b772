#include "core/device_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/error.h"

namespace tenon {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

/// Addresses of a machine that has `total` bytes, none of which is ever followed.
struct CountedMemory : DevicePool::Source {
  explicit CountedMemory(size_t bytes) : total(bytes) {}
  void* take(size_t bytes) override {
    if (used + bytes > total) return nullptr;
    used += bytes;
    next += 4096;
    const uintptr_t at = next;
    next += bytes;
    segments[at] = bytes;
    return reinterpret_cast<void*>(at);
  }
  void give(void* data) override {
    const auto it = segments.find(reinterpret_cast<uintptr_t>(data));
    ASSERT_NE(it, segments.end());
    used -= it->second;
    segments.erase(it);
  }
  size_t free_bytes() override { return total - used; }

  size_t total, used = 0;
  uintptr_t next = uintptr_t{1} << 40;
  std::map<uintptr_t, size_t> segments;
};

struct PoolOf {
  explicit PoolOf(size_t total)
      : source(new CountedMemory(total)), pool("gpu:0", std::unique_ptr<CountedMemory>(source)) {}
  CountedMemory* source;
  DevicePool pool;
};

TEST(DevicePool, WhatIsGivenBackIsTakenAgain) {
  PoolOf p(size_t{1} << 30);
  void* a = p.pool.take(1000, 0, Category::activation);
  EXPECT_EQ(p.pool.stats().live_bytes, 1024);
  EXPECT_EQ(p.pool.stats().held_bytes, static_cast<int64_t>(2 * kMiB));
  void* b = p.pool.take(1000, 0, Category::activation);
  EXPECT_EQ(static_cast<char*>(b) - static_cast<char*>(a), 1024);
  p.pool.give(a);
  EXPECT_EQ(p.pool.take(700, 0, Category::gradient), a);
  EXPECT_EQ(p.pool.stats().segments, 1);
  EXPECT_EQ(p.pool.stats().live_of[static_cast<size_t>(Category::gradient)], 1024);
  EXPECT_EQ(p.pool.stats().peak_bytes, 2048);
  void* large = p.pool.take(30 * kMiB, 0, Category::parameter);
  EXPECT_EQ(p.pool.stats().segments, 2);
  p.pool.give(large);
  p.pool.trim();
  EXPECT_EQ(p.pool.stats().segments, 1) << "the segment of small blocks is in use";
  EXPECT_EQ(p.source->used, 2 * kMiB);
}

TEST(DevicePool, OneThatKeepsNothingGivesEachBlockBack) {
  auto source = std::make_unique<CountedMemory>(size_t{1} << 30);
  CountedMemory& driver = *source;
  DevicePool pool("gpu:0", std::move(source), false);
  void* a = pool.take(1000, 0, Category::other);
  void* b = pool.take(0, 0, Category::other);
  EXPECT_EQ(driver.used, 1001u);
  EXPECT_EQ(driver.segments.size(), 2u);
  pool.give(a);
  EXPECT_EQ(driver.used, 1u);
  pool.give(b);
  EXPECT_EQ(driver.used, 0u);
  EXPECT_EQ(pool.stats().live_bytes, 0);
}

TEST(DevicePool, StreamsDoNotTakeEachOthersBlocks) {
  PoolOf p(size_t{1} << 30);
  void* a = p.pool.take(4096, 0, Category::other);
  p.pool.give(a);
  EXPECT_NE(p.pool.take(4096, 1, Category::other), a);
  EXPECT_EQ(p.pool.take(4096, 0, Category::other), a);
}

TEST(DevicePool, NeighboursThatAreFreeJoin) {
  PoolOf p(size_t{1} << 30);
  void* blocks[4];
  for (void*& b : blocks) b = p.pool.take(4 * kMiB, 0, Category::other);
  EXPECT_EQ(p.pool.stats().segments, 1);
  p.pool.give(blocks[1]);
  p.pool.give(blocks[2]);
  EXPECT_EQ(p.pool.take(8 * kMiB, 0, Category::other), blocks[1]);
  p.pool.give(blocks[1]);
  p.pool.give(blocks[0]);
  p.pool.give(blocks[3]);
  EXPECT_EQ(p.pool.take(9 * kMiB, 0, Category::other), blocks[0]);
  EXPECT_EQ(p.pool.stats().segments, 1);
}

TEST(DevicePool, ItGivesBackWhatIsFreeBeforeItRefuses) {
  PoolOf p(64 * kMiB);
  void* a = p.pool.take(40 * kMiB, 0, Category::activation);
  p.pool.give(a);
  void* b = p.pool.take(60 * kMiB, 0, Category::parameter);  // the segment of 40 goes back first
  EXPECT_EQ(p.source->used, 60 * kMiB);
  try {
    p.pool.take(10 * kMiB, 0, Category::gradient);
    FAIL() << "there is no room for it";
  } catch (const Error& e) {
    for (const char* part : {"gpu:0 has no room for 10.0 MiB (gradient)", "60.0 MiB in use",
                             "most of it parameter: 60.0 MiB", "4.0 MiB free on the device"})
      EXPECT_NE(e.message().find(part), std::string::npos) << part << " is not in: " << e.message();
    EXPECT_NE(e.hint().find("batch"), std::string::npos);
  }
  EXPECT_NE(p.pool.take(3 * kMiB, 0, Category::other), nullptr) << "what still fits is taken";
  p.pool.give(b);
}

TEST(DevicePool, ItTakesOfALargeBlockBeforeItRefuses) {
  PoolOf p(64 * kMiB);
  p.pool.give(p.pool.take(64 * kMiB, 0, Category::other));
  void* a = p.pool.take(11 * kMiB, 0, Category::other);  // leaves 53 MiB of one segment, and the driver nothing
  EXPECT_EQ(static_cast<char*>(p.pool.take(3 * kMiB, 0, Category::other)) - static_cast<char*>(a), 11 * kMiB);
  void* small = p.pool.take(100, 0, Category::other);
  EXPECT_EQ(p.pool.stats().segments, 1);
  p.pool.give(small);
}

TEST(DevicePool, BlocksNeverOverlapAndAllOfItComesBack) {
  PoolOf p(size_t{1} << 30);
  std::mt19937 random(3);
  std::map<uintptr_t, size_t> live;
  int64_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    if (live.size() > 60 || (!live.empty() && random() % 3 == 0)) {
      auto it = live.begin();
      std::advance(it, random() % live.size());
      p.pool.give(reinterpret_cast<void*>(it->first));
      live.erase(it);
      continue;
    }
    const size_t bytes = (size_t{1} << (random() % 26)) + random() % 5000;
    void* data = nullptr;
    try {
      data = p.pool.take(bytes, static_cast<uint16_t>(random() % 2), Category::activation);
    } catch (const Error&) {
      ++refused;
      continue;
    }
    const auto at = reinterpret_cast<uintptr_t>(data);
    EXPECT_EQ(at % 512, 0u);
    const auto after = live.lower_bound(at);
    if (after != live.end()) EXPECT_LE(at + bytes, after->first);
    if (after != live.begin()) EXPECT_LE(std::prev(after)->first + std::prev(after)->second, at);
    const auto segment = std::prev(p.source->segments.upper_bound(at));
    EXPECT_LE(at + bytes, segment->first + segment->second);
    live[at] = bytes;
  }
  EXPECT_LT(refused, 2000);
  for (const auto& [at, bytes] : live) p.pool.give(reinterpret_cast<void*>(at));
  EXPECT_EQ(p.pool.stats().live_bytes, 0);
  p.pool.trim();
  EXPECT_EQ(p.source->used, 0u);
  EXPECT_EQ(p.pool.stats().held_bytes, 0);
}

}  // namespace
}  // namespace tenon
