#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/half.h"
#include "core/machine_memory.h"
#include "core/parallel.h"
#include "core/pool.h"
#include "core/random.h"
#include "core/state.h"
#include "core/tensor.h"

namespace tenon {
namespace {

TEST(Pool, CountsWhatIsLive) {
  int64_t before = pool_stats().live_bytes;
  Tensor big = empty({1 << 20}), small = empty({4});
  EXPECT_GE(pool_stats().live_bytes, before + (4 << 20) + 16);
  EXPECT_GE(pool_stats().peak_bytes, pool_stats().live_bytes);
  big.reset();
  small.reset();
  EXPECT_EQ(pool_stats().live_bytes, before);
}

TEST(Pool, BlocksAreAlignedAndDoNotOverlap) {
  std::vector<Tensor> all;
  for (int64_t n : {0, 1, 3, 15, 16, 17, 100, 1000, 8000, 8193, 100000}) {
    for (int k = 0; k < 3; ++k) {
      Tensor t = empty({n}, DType::u8);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw()) % 64, 0u);
      std::memset(t.raw(), static_cast<int>(all.size()), static_cast<size_t>(n));
      all.push_back(t);
    }
  }
  for (size_t i = 0; i < all.size(); ++i)
    for (int64_t k = 0; k < all[i].numel(); ++k) ASSERT_EQ(all[i].data<uint8_t>()[k], i);
}

/// Whether the mapping of this process that holds `at` asks for huge pages; "hg" among the flags of smaps says so.
bool asks_for_huge_pages(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2) {
      const auto place = reinterpret_cast<uintptr_t>(at);
      inside = first <= place && place < last;
    } else if (inside && line.starts_with("VmFlags:")) {
      return line.find(" hg") != std::string::npos;
    }
  }
  return false;
}

TEST(Pool, LargeBlocksAskForHugePages) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "this system has no transparent huge pages";
  const Tensor large = empty({48 << 20}, DType::u8);
  EXPECT_TRUE(asks_for_huge_pages(large.data<uint8_t>() + (24 << 20)));
  const int on_stack = 0;
  EXPECT_FALSE(asks_for_huge_pages(&on_stack));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.raw()) % 64, 0u);
}

TEST(Pool, BlocksFreedByAnotherThreadAreReused) {
  int64_t before = pool_stats().live_bytes;
  for (int round = 0; round < 20; ++round) {
    std::vector<Tensor> made;
    std::thread([&] {
      for (int i = 0; i < 200; ++i) made.push_back(empty({i + 1}));
    }).join();
    std::thread([&] { made.clear(); }).join();
  }
  EXPECT_EQ(pool_stats().live_bytes, before);
}

TEST(Pool, EveryObserverSeesEveryBlockOnce) {
  struct Count : MemoryObserver {
    std::atomic<int> taken_count{0}, returned{0};
    void taken(const Storage& s) override {
      EXPECT_NE(s.id, 0u);
      ++taken_count;
    }
    void given_back(const Storage&) override { ++returned; }
  } count, beside;
  add_memory_observer(count);
  {
    Tensor a = empty({10});
    add_memory_observer(beside);
    Tensor b = empty({100000}), view = view_of(b, Layout::contiguous({5}));
  }
  remove_memory_observer(beside);
  { Tensor c = empty({10}); }
  remove_memory_observer(count);
  { Tensor d = empty({10}); }
  EXPECT_EQ(count.taken_count, 3);
  EXPECT_EQ(count.returned, 3);
  EXPECT_EQ(beside.taken_count, 1);
  EXPECT_EQ(beside.returned, 2);
  EXPECT_FALSE(process_mode & mode::memory);
}

TEST(Tensor, ImpossibleSizesAreRefusedWithTheirNumbers) {
  EXPECT_THROW(empty({-1}), Error);
  EXPECT_THROW(empty({int64_t{1} << 40, int64_t{1} << 40}), Error);
  try {
    empty({int64_t{1} << 45}, DType::u8);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("out of memory"), std::string::npos);
  }
}

/// Linux would promise it, and end the program when it is written.
TEST(Tensor, MoreThanTheMachineHasLeftIsRefused) {
  const int64_t left = available_memory();
  if (left == INT64_MAX || left > int64_t{1} << 44) GTEST_SKIP() << "the system does not say what is left";
  EXPECT_GT(left, 0);
  try {
    empty({left}, DType::u8);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("the machine has"), std::string::npos) << e.what();
  }
  // What is there is given all the same.
  const Tensor there = empty({int64_t{1} << 26}, DType::u8);
  EXPECT_EQ(there.numel(), int64_t{1} << 26);
}

TEST(Tensor, ViewsMustStayInsideTheStorage) {
  Tensor t = empty({10});
  EXPECT_NO_THROW(view_of(t, {{5}, {2}, 1}));
  EXPECT_THROW(view_of(t, {{5}, {2}, 2}), Error);
  EXPECT_THROW(view_of(t, {{3}, {-1}, 1}), Error);
}

TEST(Parallel, CutsDoNotDependOnThreads) {
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    std::vector<std::atomic<int>> hits(1001);
    std::atomic<int> odd{0};
    parallel_for(1001, 10, [&](int64_t b, int64_t e) {
      if (b % 10 || (e != b + 10 && e != 1001)) ++odd;
      for (int64_t i = b; i < e; ++i) ++hits[static_cast<size_t>(i)];
    });
    for (auto& h : hits) ASSERT_EQ(h, 1);
    EXPECT_EQ(odd, 0);
  }
  set_num_threads(0);
}

TEST(Parallel, TheLowestPieceThatThrowsIsHeard) {
  set_num_threads(2);
  for (int round = 0; round < 50; ++round) {
    try {
      parallel_for(100, 1, [](int64_t b, int64_t) {
        if (b >= 40) throw Error(std::to_string(b));
      });
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.message(), "40");
    }
  }
  set_num_threads(0);
}

TEST(Parallel, NestedAndConcurrentCallsFinish) {
  std::atomic<int64_t> sum{0};
  auto work = [&] {
    for (int i = 0; i < 200; ++i)
      parallel_for(64, 4,
                   [&](int64_t b, int64_t e) { parallel_for(e - b, 1, [&](int64_t x, int64_t y) { sum += y - x; }); });
  };
  std::thread a(work), b(work);
  a.join();
  b.join();
  EXPECT_EQ(sum, 2 * 200 * 64);
}

// Known answers of the authors' reference (Random123, kat_vectors).
TEST(Random, PhiloxMatchesTheReferenceVectors) {
  auto zero = Philox{0, 0}.at(0);
  EXPECT_EQ(zero.v[0], 0x6627e8d5u);
  EXPECT_EQ(zero.v[1], 0xe169c58du);
  EXPECT_EQ(zero.v[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.v[3], 0x9b00dbd8u);
  auto ones = Philox{~0ull, ~0ull}.at(~0ull);
  EXPECT_EQ(ones.v[0], 0x408f276du);
  EXPECT_EQ(ones.v[1], 0x41c83b0eu);
  EXPECT_EQ(ones.v[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.v[3], 0x6d5451fdu);
}

TEST(Random, MomentsAreRight) {
  Philox r{42, 1};
  double sum = 0, squares = 0, uniform = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    double x = r.normal(static_cast<uint64_t>(i));
    sum += x;
    squares += x * x;
    float u = r.uniform(static_cast<uint64_t>(i));
    ASSERT_TRUE(u >= 0 && u < 1);
    uniform += u;
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(uniform / n, 0.5, 0.005);
}

TEST(Half, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t h = 0; h < 65536; ++h) {
    float f = half_to_float(static_cast<uint16_t>(h));
    if (f == f) {
      ASSERT_EQ(float_to_half(f), h);
    }
    float b = bfloat_to_float(static_cast<uint16_t>(h));
    if (b == b) {
      ASSERT_EQ(float_to_bfloat(b), h);
    }
  }
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_half(1.0f + 0x1p-11f), 0x3c00);  // ties go to even
}

}  // namespace
}  // namespace tenon
