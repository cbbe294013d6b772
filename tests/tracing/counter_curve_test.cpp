#include "tracing/trace/counter_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "tests/tracing/made_training.h"
#include "tracing/analyses/trace_story.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::traces {
namespace {

TEST(CounterCurve, TheLargestOfAStretchIsWhatAScanFinds) {
  const Philox random{5, 9};
  std::vector<int64_t> time;
  std::vector<double> value;
  int64_t at = 100;
  for (uint64_t i = 0; i < 3000; ++i) {
    at += static_cast<int64_t>(random.below(3 * i, 4));  // some at the same time
    time.push_back(at);
    value.push_back(static_cast<double>(random.below(3 * i + 1, 100000)) - 50000);
  }
  const CounterCurve curve("c", true, time, value);
  EXPECT_EQ(curve.peak(), *std::max_element(value.begin(), value.end()));
  EXPECT_TRUE(std::isnan(curve.most(0, 100)));
  for (uint64_t k = 0; k < 400; ++k) {
    const int64_t from = 90 + static_cast<int64_t>(random.below(100000 + 2 * k, 5000));
    const int64_t to = from + 1 + static_cast<int64_t>(random.below(100001 + 2 * k, 900));
    double most = std::nan("");
    for (size_t i = 0; i < time.size(); ++i) {
      const bool holds_at_from = time[i] <= from && (i + 1 == time.size() || time[i + 1] > from);
      const bool told_within = time[i] > from && time[i] < to;
      if ((holds_at_from || told_within) && !(value[i] <= most)) most = value[i];
    }
    const double found = curve.most(from, to);
    EXPECT_TRUE(found == most || (std::isnan(found) && std::isnan(most))) << from << " to " << to;
  }
}

TEST(CounterCurve, MemoryOfEachDeviceAndCountersOfTheFile) {
  const auto trace = parse_trace(R"({"traceEvents":[
    {"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":30,
     "args":{"Total Allocated":200,"Total Reserved":4096,"Bytes":-100,"Addr":1,"Device Id":0,"Device Type":1}},
    {"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":10,
     "args":{"Total Allocated":300,"Total Reserved":4096,"Bytes":300,"Addr":1,"Device Id":0,"Device Type":1}},
    {"ph":"C","name":"power","pid":0,"tid":0,"ts":20,"args":{"W":250.5}},
    {"ph":"X","cat":"cpu_op","name":"op","pid":1,"tid":1,"ts":1,"dur":50}]})");
  const auto curves = counter_curves(*trace);
  ASSERT_EQ(curves.size(), 3u);
  EXPECT_EQ(curves[0].name(), "GPU 0 memory");
  EXPECT_TRUE(curves[0].bytes());
  EXPECT_EQ(curves[0].peak(), 300);
  EXPECT_EQ(curves[0].at(trace->begin() + 28500), 300) << "events that a file has out of order are put in order";
  EXPECT_EQ(curves[0].at(trace->begin() + 29500), 200);
  EXPECT_EQ(curves[1].name(), "GPU 0 reserved");
  EXPECT_EQ(curves[2].peak(), 250.5);
  EXPECT_FALSE(curves[2].bytes());
}

TEST(TraceStory, ItsPathAndItsGapsAreThoseOfTheSteps) {
  using namespace tracing;
  for (bool ahead : {false, true}) {
    const auto trace = parse_trace(train({.op = ahead ? 5000 : 30000, .kernel = ahead ? 60000 : 8000}));
    const TraceStory story = trace_story(*trace);
    EXPECT_TRUE(story.gpu);
    ASSERT_FALSE(story.path.empty());
    for (size_t i = 1; i < story.path.size(); ++i) ASSERT_LE(story.path[i - 1].to, story.path[i].from);
    for (size_t i = 1; i < story.gaps.size(); ++i) ASSERT_LE(story.gaps[i - 1].to, story.gaps[i].from);
    const GpuTimeline gpu(*trace);
    const IdleTimes times(*trace);
    int64_t length = 0, on_path = 0, idle = 0, in_gaps = 0;
    for (const TraceStep& s : trace_steps(*trace)) {
      const StepWork step = step_work(gpu, s);
      length += step.length();
      idle += times.of(step).idle;
    }
    for (const PathPiece& p : story.path) on_path += p.to - p.from;
    for (const Gap& g : story.gaps) in_gaps += g.to - g.from;
    EXPECT_EQ(on_path, length);
    EXPECT_EQ(in_gaps, idle);
  }
  int64_t asked = 0;
  const auto trace = parse_trace(train({.steps = 6}));
  const TraceStory some = trace_story(*trace, [&](int64_t done, int64_t of) {
    EXPECT_EQ(of, 6);
    return (asked = done) < 2;
  });
  EXPECT_EQ(asked, 2);
  EXPECT_LT(some.path.size(), trace_story(*trace).path.size());
}

}  // namespace
}  // namespace tenon::traces
