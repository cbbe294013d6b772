// The overview of a trace: parts that add up, figures of the kernels, and what is said to be tried.
#include "tracing/analyses/overview.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tracing/findings.h"
#include "tests/tracing/made_training.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

using traces::EventId;
using traces::EventKind;
using traces::Trace;

Overview overview_of_trace(std::shared_ptr<const Trace> t, int64_t step = -1) {
  auto o = overview_of({.traces = {std::move(t)}, .top = 1000, .step = step});
  EXPECT_TRUE(o.has_value());
  return o ? *o : Overview();
}
Overview overview_of_text(std::string text) { return overview_of_trace(traces::parse_trace(std::move(text))); }

/// By looking at every event for every stretch in which nothing begins or ends: Note [What a moment counts as] word by
/// word.
PartTimes slow_parts(const Trace& t, const StepWork& step, const HostWork& host, bool gpu) {
  using enum StepPart;
  std::vector<int64_t> edges{step.begin, step.end};
  auto edge = [&](int64_t v) {
    if (v > step.begin && v < step.end) edges.push_back(v);
  };
  for (const GpuWork& w : step.work) edge(w.start), edge(w.end);
  for (const Intervals* list :
       {&host.data, &host.optimizer, &host.backward, &host.ops, &host.runtime, &host.communication})
    for (const Interval& i : *list) edge(i.first), edge(i.second);
  std::sort(edges.begin(), edges.end());
  PartTimes times;
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    const int64_t at = edges[i], length = edges[i + 1] - at;
    if (length == 0) continue;
    auto goes_on = [&](const Intervals& list) {
      return std::any_of(list.begin(), list.end(), [&](const Interval& v) { return v.first <= at && at < v.second; });
    };
    bool is[kStepParts] = {};
    for (const GpuWork& w : step.work) {
      if (w.start > at || w.end <= at) continue;
      const EventKind k = t.kind(w.event);
      is[static_cast<size_t>(w.communication          ? communication
                             : k == EventKind::memcpy ? memcpy
                             : k == EventKind::memset ? memset
                                                      : kernel)] = true;
    }
    StepPart found = other;
    if (is[static_cast<size_t>(kernel)])
      found = kernel;
    else if (is[static_cast<size_t>(memcpy)])
      found = memcpy;
    else if (is[static_cast<size_t>(memset)])
      found = memset;
    else if (is[static_cast<size_t>(communication)])
      found = communication;
    else if (goes_on(host.data))
      found = data;
    else if (gpu && goes_on(host.runtime))
      found = runtime;
    else if (!gpu && goes_on(host.optimizer))
      found = optimizer;
    else if (!gpu && goes_on(host.backward))
      found = backward;
    else if (goes_on(host.ops))
      found = gpu ? ops : forward;
    else if (goes_on(host.communication))
      found = communication;
    times[found] += length;
  }
  return times;
}

void adds_up(const std::shared_ptr<const Trace>& t) {
  const Overview o = overview_of_trace(t);
  ASSERT_FALSE(o.steps.empty());
  const GpuTimeline gpu(*t);
  const auto shared = host_work(*t);
  const HostWork& host = *shared;
  int64_t total = 0;
  for (size_t i = 0; i < o.steps.size(); ++i) {
    const StepTimes& s = o.steps[i];
    EXPECT_EQ(s.parts.length(), s.end - s.begin) << "step " << s.step.number;
    if (i && t->rows()[s.step.row].pid == t->rows()[o.steps[i - 1].step.row].pid && s.step.number >= 0) {
      EXPECT_GE(s.begin, o.steps[i - 1].begin);
    }
    for (const int64_t ns : s.parts.ns) EXPECT_GE(ns, 0);
    EXPECT_EQ(s.parts.ns, slow_parts(*t, step_work(gpu, s.step), host, o.gpu).ns) << "step " << s.step.number;
    total += s.end - s.begin;
  }
  EXPECT_EQ(o.sum.length(), total);
  // Only parts that are told hold time.
  int64_t told = 0;
  for (const StepPart p : step_parts(o.gpu)) told += o.sum[p];
  EXPECT_EQ(told, total);
  // The other analyses tell the same length.
  const Finding steps = run("steps", {t}), all = run("overview", {t});
  EXPECT_EQ(fact<int64_t>(steps, "mean_ns"), fact<int64_t>(all, "mean_ns"));
  EXPECT_EQ(run("why", {t}).sentence, all.sentence);
  ASSERT_EQ(table_of(steps, "steps")->rows.size(), table_of(all, "steps")->rows.size());
  for (size_t r = 0; r < table_of(all, "steps")->rows.size(); ++r) {
    const auto& row = table_of(all, "steps")->rows[r];
    int64_t sum = 0;
    for (size_t c = 2; c < row.size(); ++c) sum += std::get<int64_t>(row[c]);
    EXPECT_EQ(sum, std::get<int64_t>(row[1]));
    EXPECT_EQ(row[1], table_of(steps, "steps")->rows[r][1]);
  }
}

TEST(TraceOverview, PartsAddUpInEveryRecordedTrace) {
  int seen = 0;
  for (const char* folder : {"torch", "loops"})
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(TENON_SOURCE_DIR) + "/tests/tracing/" + folder)) {
      if (!entry.path().string().ends_with(".json.gz")) continue;
      SCOPED_TRACE(entry.path().string());
      adds_up(traces::read_trace(entry.path().string(), {.read_cache = false, .write_cache = false}));
      ++seen;
    }
  EXPECT_GE(seen, 18);
}

TEST(TraceOverview, PartsAddUpInMadeTraces) {
  uint64_t seed = 1;
  for (const Training& loop :
       {Training{}, Training{.op = 30000, .kernel = 6000}, Training{.reduce = 200000, .buckets = 2, .overlap = false},
        Training{.reduce = 300000, .buckets = 4}, Training{.op = 8000, .kernel = 90000, .graph = true},
        Training{.item = false, .pageable = false}, Training{.wait_after_ops = true}})
    for (const bool stacks : {false, true}) {
      Training l = loop;
      l.seed = ++seed;
      l.stacks = stacks;
      l.steps = 5;
      SCOPED_TRACE(fmt::format("seed {}, stacks {}", seed, stacks));
      adds_up(traces::parse_trace(train(l)));
    }
}

/// What is advised, by what it is about.
std::string advised(const Overview& o) {
  std::string all;
  for (const Advice& a : o.advice) all += (all.empty() ? "" : ", ") + a.about;
  return all;
}
/// Every advice has a figure beyond its threshold and something to see it by.
void has_evidence(const Overview& o) {
  for (const Advice& a : o.advice) {
    EXPECT_GE(a.figure, a.threshold) << a.about;
    EXPECT_TRUE(a.sight.event >= 0 || a.sight.to > a.sight.from) << a.about;
    EXPECT_FALSE(a.seen.empty()) << a.about;
    EXPECT_FALSE(a.try_this.empty()) << a.about;
  }
}
/// A loop that keeps its GPU busy on tensor cores.
const Training kClean{.op = 12000, .kernel = 90000, .data = 5000, .copy = 3000, .item = false, .pageable = false};
std::string on_tensor_cores(std::string text) {
  for (size_t at = text.find("ampere_sgemm"); at != text.npos; at = text.find("ampere_sgemm", at))
    text.replace(at, 12, "ampere_bf16_s16816gemm_bf16");
  return text;
}

TEST(TraceOverview, NothingIsSaidOfAStepThatIsAsItShouldBe) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Training l = kClean;
    l.seed = l.lengths = seed;
    const Overview o = overview_of_text(on_tensor_cores(train(l)));
    EXPECT_EQ(advised(o), "");
    EXPECT_NE(o.sentence.find("compute-bound"), std::string::npos) << o.sentence;
    EXPECT_GT(o.share_of(StepPart::kernel), 0.8);
  }
}

TEST(TraceOverview, EveryFaultIsNamed) {
  struct Fault {
    Training loop;
    bool tensor_cores;
    std::string about, say;
  };
  Training data = kClean, item = kClean, host = kClean, talk = kClean, copy = kClean, fp32 = kClean;
  data.data = 2000000;
  item.wait_after_ops = item.pageable = true;
  item.op = 20000;
  host.kernel = 1500, host.op = 40000;
  talk.buckets = 4, talk.reduce = 900000, talk.overlap = false;
  copy.copy = 1500000, copy.pageable = true;
  const Fault faults[] = {{data, true, "data loading", "workers"},  {item, true, "waits for the GPU", ".item()"},
                          {host, true, "the CPU is late", "batch"}, {host, true, "short kernels", "CUDA graph"},
                          {talk, true, "communication", "overlap"}, {copy, true, "memory copies", "pin"},
                          {fp32, false, "tensor cores", "bfloat16"}};
  for (const Fault& f : faults) {
    SCOPED_TRACE(f.about);
    const std::string text = train(f.loop);
    const Overview o = overview_of_text(f.tensor_cores ? on_tensor_cores(text) : text);
    has_evidence(o);
    const auto named =
        std::find_if(o.advice.begin(), o.advice.end(), [&](const Advice& a) { return a.about == f.about; });
    ASSERT_NE(named, o.advice.end()) << advised(o);
    EXPECT_NE(named->try_this.find(f.say), std::string::npos) << named->try_this;
    if (f.loop.buckets == 0) {
      EXPECT_EQ(advised(o).find("communication"), std::string::npos) << advised(o);
    }
  }
}

TEST(TraceOverview, TheThreadThatPinsBatchesLoadsNoDataForTheStep) {
  Training l = kClean;
  l.op = 30000, l.kernel = 6000, l.stacks = true;
  const std::string text = train(l), head = "\"traceEvents\": [\n";
  std::string pinned = text;
  pinned.insert(pinned.find(head) + head.size(),
                R"({"ph":"X","cat":"python_function","name":"torch/utils/data/_utils/pin_memory.py(52): )"
                R"(_pin_memory_loop","pid":1,"tid":9,"ts":1000,"dur":30000},)");
  const Overview with = overview_of_text(pinned), without = overview_of_text(text);
  EXPECT_EQ(with.sum.ns, without.sum.ns);
  EXPECT_EQ(advised(with), advised(without));
}

TEST(TraceOverview, AStepThatTakesLongIsNamedWithWhatItHasMoreOf) {
  MadeTrace t;
  for (int s = 0; s < 9; ++s) {
    t.begin_step(s);
    t.load_data(s == 6 ? 900000 : 10000);
    for (int k = 0; k < 4; ++k) t.op("aten::mm", 10000, "ampere_bf16_s16816gemm", 80000);
    t.sync();
    t.end_step();
  }
  const Overview o = overview_of_text(t.text());
  has_evidence(o);
  const auto named =
      std::find_if(o.advice.begin(), o.advice.end(), [](const Advice& a) { return a.about == "a long step"; });
  ASSERT_NE(named, o.advice.end()) << advised(o);
  EXPECT_NE(named->seen.find("step 6 takes"), std::string::npos) << named->seen;
  EXPECT_NE(named->seen.find("data loading"), std::string::npos) << named->seen;
  EXPECT_EQ(named->sight.from, o.steps[6].begin);
  EXPECT_EQ(named->sight.to, o.steps[6].end);
}

/// Two kernels of a step, told by the profiler how full the GPU is.
std::string filled_trace(const std::string& metadata) {
  auto kernel = [](double at, double length, const char* occupancy, const char* blocks, int id) {
    return fmt::format(
        R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":2,
"args":{{"correlation":{}}}}},
{{"ph":"X","cat":"kernel","name":"k{}","pid":0,"tid":7,"ts":{},"dur":{},
"args":{{"correlation":{},"est. achieved occupancy %":{},"blocks per SM":{}}}}},
)",
        at, id, id, at + 5, length, id, occupancy, blocks);
  };
  return "{" + metadata + "\"traceEvents\":[\n" + kernel(10, 30, "80", "4.5", 1) + kernel(50, 10, "40", "0.5", 2) +
         R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":1,"tid":1,"ts":0,"dur":100}]})";
}

TEST(TraceOverview, OccupancyIsMeantOverTheTimeOfKernels) {
  const Overview o = overview_of_text(filled_trace(""));
  ASSERT_TRUE(o.fill.occupancy_told && o.fill.blocks_told);
  EXPECT_DOUBLE_EQ(o.fill.occupancy, (0.8 * 30 + 0.4 * 10) / 40);
  EXPECT_DOUBLE_EQ(o.fill.full, (1.0 * 30 + 0.5 * 10) / 40);
  EXPECT_DOUBLE_EQ(o.fill.under_full, 0.25);
  EXPECT_EQ(o.fill.kernels, 2);
  const Finding f = run("overview", {filled_trace("")});
  EXPECT_DOUBLE_EQ(fact<double>(f, "occupancy"), o.fill.occupancy);
  EXPECT_DOUBLE_EQ(fact<double>(f, "sm_efficiency"), o.fill.full * 40 / 100);
  EXPECT_EQ(std::count_if(f.facts.begin(), f.facts.end(), [](const Fact& x) { return x.name == "warm_up_step"; }), 0);
  // Where the kernels say nothing, nothing is said of them.
  const Finding none = run("overview", {train(kClean)});
  for (const Fact& x : none.facts) EXPECT_TRUE(x.name != "occupancy" && x.name != "sm_efficiency") << x.name;
}

TEST(TraceOverview, TheMachineIsToldAsTheFileHasIt) {
  const Overview o = overview_of_text(filled_trace(
      R"("deviceProperties":[{"id":0,"name":"NVIDIA A100-SXM4-80GB","totalGlobalMem":85094825984,
"computeMajor":8,"computeMinor":0,"numSms":108}],
"distributedInfo":{"backend":"nccl","rank":2,"world_size":8},"cuda_driver_version":12080,
"record_shapes":1,"note":"a \"b\"",)"));
  auto told = [&](const char* what) {
    for (const auto& [k, v] : o.configuration)
      if (k == what) return v;
    return std::string("-");
  };
  EXPECT_EQ(told("GPU 0"), "NVIDIA A100-SXM4-80GB, 79.3 GiB, compute capability 8.0, 108 SMs");
  EXPECT_EQ(told("rank"), "2 of 8");
  EXPECT_EQ(told("collectives"), "nccl");
  EXPECT_EQ(told("CUDA driver"), "12.8");
  EXPECT_EQ(told("record shapes"), "1");
  EXPECT_EQ(told("note"), "a \"b\"");
  EXPECT_EQ(told("GPUs at work"), "1");
}

TEST(TraceOverview, WhatIsNotThereIsSaid) {
  const auto t = traces::parse_trace(train(kClean));
  EXPECT_FALSE(overview_of({.traces = {t}, .step = 400}).has_value());
  EXPECT_EQ(trace_analyses().at("overview").run({.traces = {t}, .step = 400}).sentence,
            "The trace has no ProfilerStep#400.");
  const Overview one = overview_of_trace(t, 3);
  ASSERT_EQ(one.steps.size(), 1u);
  EXPECT_EQ(one.steps[0].step.number, 3);
  const Finding none = run("overview", {std::string(R"({"traceEvents":[]})")});
  EXPECT_FALSE(none.ok);
  EXPECT_EQ(none.sentence, "The trace holds no events.");
}

TEST(TraceOverview, AFirstStepThatWarmsUpIsLeftOutAndNamed) {
  MadeTrace t;
  for (int s = 0; s < 5; ++s) {
    t.begin_step(s);
    t.op("aten::mm", s == 0 ? 4000000 : 20000, "k", 50000);
    t.sync();
    t.end_step();
  }
  const auto trace = traces::parse_trace(t.text());
  const Overview o = overview_of_trace(trace);
  EXPECT_EQ(o.steps.size(), 4u);
  EXPECT_EQ(o.warm_up, 0);
  EXPECT_EQ(fact<int64_t>(run("overview", {trace}), "warm_up_step"), 0);
}

}  // namespace
}  // namespace tenon::tracing
