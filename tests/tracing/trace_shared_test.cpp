#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tracing/analyses/activity.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

std::shared_ptr<const traces::Trace> small_trace() {
  return traces::parse_trace(
      R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":10,"dur":5},)"
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":20,"dur":5}]})");
}

TEST(TraceShared, IsMadeOnceForAllWhoHoldItAndAnewOnceNobodyDoes) {
  const auto trace = small_trace();
  int made = 0;
  const auto make = [&] { return ++made; };
  {
    const auto a = trace->shared<int>(make), b = trace->shared<int>(make);
    EXPECT_EQ(a, b);
    EXPECT_EQ(made, 1);
    EXPECT_EQ(*trace->shared<double>([] { return 2.5; }), 2.5);  // of another type
  }
  EXPECT_EQ(*trace->shared<int>(make), 2);
  EXPECT_EQ(host_work(*trace)->ops.size(), 1u);
  EXPECT_EQ(GpuTimeline(*trace).size(), 1u);
}

TEST(TraceShared, ManyThreadsGetOneAndAFailureIsNotKept) {
  const auto trace = small_trace();
  EXPECT_THROW(trace->shared<int>([]() -> int { throw std::runtime_error("no"); }), std::runtime_error);
  std::atomic<int> made{0};
  const auto held = trace->shared<int>([&] { return ++made; });
  std::vector<std::thread> threads;
  std::atomic<int> same{0};
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { same += trace->shared<int>([&] { return ++made; }) == held; });
  for (auto& t : threads) t.join();
  EXPECT_EQ(same, 8);
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace tenon::tracing
