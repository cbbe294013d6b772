#include "tracing/analyses/time_match.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/tracing/made_training.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

std::shared_ptr<const traces::Trace> trained(int steps, int64_t kernel) {
  return traces::parse_trace(train({.lengths = 3, .steps = steps, .noise = 0, .op = 20000, .kernel = kernel}));
}

TEST(TimeMatch, PutsTheSamePlaceOfTheSameStepOverEachOther) {
  const auto a = trained(4, 20000), b = trained(6, 90000);
  const TimeMatch match(*a, a->begin(), *b, b->begin());
  const auto in_a = trace_steps(*a), in_b = trace_steps(*b);
  ASSERT_EQ(in_a.size(), 4u);
  ASSERT_EQ(in_b.size(), 6u);
  EXPECT_EQ(match.steps(), 4u);
  for (size_t i = 0; i < in_a.size(); ++i)
    for (double share : {0.0, 0.25, 0.5, 1.0}) {
      auto at = [share](const traces::Trace& t, const TraceStep& s) {
        return static_cast<double>(s.start - t.begin()) + share * static_cast<double>(s.end - s.start);
      };
      EXPECT_NEAR(match.to_b(at(*a, in_a[i])), at(*b, in_b[i]), 1) << i << " " << share;
      EXPECT_NEAR(match.to_a(at(*b, in_b[i])), at(*a, in_a[i]), 1) << i << " " << share;
    }
  // Forth and back is where one was, also outside of the steps, and time never goes back.
  double last = -1e18;
  for (double t = -1e6; t < 2e7; t += 12345.6) {
    EXPECT_NEAR(match.to_a(match.to_b(t)), t, 1e-3);
    EXPECT_GT(match.to_b(t), last);
    last = match.to_b(t);
  }
  // What lies before the first step lies as far before it.
  EXPECT_NEAR(match.to_b(static_cast<double>(in_a[0].start - a->begin()) - 500),
              static_cast<double>(in_b[0].start - b->begin()) - 500, 1e-6);
}

TEST(TimeMatch, WithoutStepsInBothItIsAsFarFromTheBeginning) {
  MadeTrace bare;
  bare.op("aten::op", 1000, "kernel", 2000);
  const auto a = trained(3, 20000), b = traces::parse_trace(bare.text());
  const TimeMatch match(*a, a->begin(), *b, b->begin());
  EXPECT_EQ(match.steps(), 0u);
  for (double t : {-5.0, 0.0, 1234.5, 1e12}) {
    EXPECT_DOUBLE_EQ(match.to_b(t), t);
    EXPECT_DOUBLE_EQ(match.to_a(t), t);
  }
  // From other origins, as of a rank on the axis of its session.
  const TimeMatch moved(*a, a->begin() - 700, *b, b->begin());
  EXPECT_DOUBLE_EQ(moved.to_b(700), 0);
}

TEST(TimeMatch, StepsOfOtherNumbersAreMatchedInTheirOrder) {
  auto steps = [](int from, int64_t length) {
    MadeTrace t;
    for (int s = from; s < from + 3; ++s) {
      t.begin_step(s);
      t.nothing(length);
      t.end_step();
    }
    return traces::parse_trace(t.text());
  };
  const auto a = steps(5, 10000), b = steps(100, 30000);
  const TimeMatch match(*a, a->begin(), *b, b->begin());
  EXPECT_EQ(match.steps(), 3u);
  EXPECT_NEAR(match.to_b(static_cast<double>(trace_steps(*a)[2].start - a->begin())),
              static_cast<double>(trace_steps(*b)[2].start - b->begin()), 1e-6);
}

}  // namespace
}  // namespace tenon::tracing
