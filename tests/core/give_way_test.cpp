#include "core/give_way.h"

#include <gtest/gtest.h>
#ifdef __linux__
#include <sys/resource.h>
#endif

#include <atomic>
#include <set>
#include <stdexcept>
#include <string>

#include "core/parallel.h"

namespace tenon {
namespace {

#ifdef __linux__
int nice_of_this_thread() { return getpriority(PRIO_PROCESS, 0); }
#else
int nice_of_this_thread() { return 0; }
#endif

TEST(GiveWay, ReturnsAndThrowsWhatTheWorkDoes) {
  EXPECT_EQ(giving_way([] { return std::string("done"); }), "done");
  int seen = 0;
  giving_way([&] { seen = 1; });
  EXPECT_EQ(seen, 1);
  EXPECT_THROW(giving_way([]() -> int { throw std::runtime_error("no"); }), std::runtime_error);
}

#ifdef __linux__
TEST(GiveWay, LowersItsThreadAndThoseItStartsButNeitherTheCallerNorTheWorkersOfParallelFor) {
  const int mine = nice_of_this_thread();
  if (mine >= 19) GTEST_SKIP() << "nothing has a lower priority than this process already";
  int its = mine, started = mine;
  std::atomic<int> highest{mine};
  giving_way([&] {
    its = nice_of_this_thread();
    std::thread([&] { started = nice_of_this_thread(); }).join();
  });
  EXPECT_GT(its, mine);
  EXPECT_EQ(started, its);
  EXPECT_EQ(nice_of_this_thread(), mine);
  parallel_for(1000, 1, [&](int64_t, int64_t) {
    int now = nice_of_this_thread(), before = highest;
    while (now > before && !highest.compare_exchange_weak(before, now)) {
    }
  });
  EXPECT_EQ(highest, mine);
}
#endif

}  // namespace
}  // namespace tenon
