#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "tracing/trace/scanner.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::traces {
namespace {

std::string slice(const std::string& name, int64_t ts_us, int64_t dur_us, const std::string& more = "",
                  const std::string& cat = "cpu_op") {
  return "{\"ph\": \"X\", \"cat\": \"" + cat + "\", \"name\": \"" + name +
         "\", \"pid\": 1, \"tid\": 2, \"ts\": " + std::to_string(ts_us) + ", \"dur\": " + std::to_string(dur_us) +
         (more.empty() ? "" : ", " + more) + "}";
}
std::string trace_of(const std::vector<std::string>& events, const std::string& tail = "") {
  std::string text = "{\"schemaVersion\": 1, \"traceEvents\": [\n";
  for (size_t i = 0; i < events.size(); ++i) text += (i ? ",\n" : "") + events[i];
  return text + "\n]" + tail + "}";
}
uint64_t repairs(const Trace& t, const std::string& kind) {
  for (const Repair& r : t.repairs())
    if (r.kind == kind) return r.count;
  return 0;
}

TEST(TraceTimes, AreDecimalTextToTheLastDigit) {
  int64_t ns = 0;
  EXPECT_TRUE(parse_microseconds("1712195495519689.047", ns));
  EXPECT_EQ(ns, 1712195495519689047);
  EXPECT_TRUE(parse_microseconds("0.0005", ns));
  EXPECT_EQ(ns, 1);
  EXPECT_TRUE(parse_microseconds("-3.25", ns));
  EXPECT_EQ(ns, -3250);
  EXPECT_TRUE(parse_microseconds("1.5e3", ns));
  EXPECT_EQ(ns, 1500000);
  EXPECT_FALSE(parse_microseconds("nan", ns));
  EXPECT_FALSE(parse_microseconds("", ns));
  EXPECT_FALSE(parse_microseconds("99999999999999999999", ns));
}

TEST(TraceReader, ReadsSlicesNamesRowsAndMetadata) {
  auto t =
      parse_trace(trace_of({slice("outer", 10, 100), slice("inner", 20, 30), slice("later", 60, 10),
                            R"({"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}})",
                            R"({"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}})"},
                           R"(, "baseTimeNanoseconds": 5000, "distributedInfo": {"backend": "nccl", "rank": 3})"));
  ASSERT_EQ(t->size(), 3u);
  EXPECT_EQ(t->event_name(0), "outer");
  EXPECT_EQ(t->duration(0), 100000);
  ASSERT_EQ(t->lanes().size(), 2u);
  EXPECT_EQ(t->event_name(t->range(1, 25000, 26000).first), "inner");
  EXPECT_EQ(t->parent(1), 0u);
  EXPECT_EQ(t->rows()[t->row_of(0)].label(), "python / main");
  EXPECT_EQ(t->rank(), 3);
  EXPECT_EQ(t->base(), 5000);
  EXPECT_FALSE(t->truncated());
  EXPECT_TRUE(t->repairs().empty());
}

TEST(TraceReader, LinksKernelsWithTheirLaunch) {
  auto t = parse_trace(trace_of(
      {slice("op", 0, 50), slice("cudaLaunchKernel", 10, 5, R"("args": {"correlation": 7})", "cuda_runtime"),
       R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 30, "dur": 9, "args": {"stream": 7, "correlation": 7}})"}));
  ASSERT_EQ(t->launches().size(), 1u);
  EXPECT_EQ(t->event_name(t->launches()[0].from), "cudaLaunchKernel");
  EXPECT_EQ(t->event_name(t->launches()[0].to), "k");
  EXPECT_EQ(argument(*t, t->launches()[0].to, "stream"), "7");
}

TEST(TraceReader, OverlappingKernelsHaveALaneEach) {
  std::vector<std::string> events;
  for (int i = 0; i < 3; ++i)
    events.push_back("{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 7, \"ts\": " +
                     std::to_string(i * 10) + ", \"dur\": 25}");
  auto t = parse_trace(trace_of(events));
  ASSERT_EQ(t->size(), 3u);
  EXPECT_EQ(t->rows()[0].lanes, 3u);
  EXPECT_TRUE(t->rows()[0].gpu);
}

TEST(TraceReader, MendsWhatExportersBreak) {
  auto t = parse_trace(trace_of({
      R"({"ph": "X", "cat": "python_function", "name": "{"device": "cpu"}(12): run", "pid": 1, "tid": 2, "ts": 1, "dur": 2})",
      R"({"ph": "X", "cat": "python_function", "name": "torch\cuda\__init__.py", "pid": 1, "tid": 2, "ts": 4, "dur": 2})",
      R"x({"ph": "X", "cat": "gpu_memcpy", "name": "copy", "pid": 0, "tid": 7, "ts": 5, "dur": 1, "args": {"memory bandwidth (GB/s)": inf}})x",
      "{\"ph\": \"X\", \"cat\": \"c\", \"name\": \"a\nb\x01\", \"pid\": 1, \"tid\": 2, \"ts\": 8, \"dur\": 2}",
      "{\"ph\": \"X\", \"cat\": \"c\", \"name\": \"\xff\xfe\", \"pid\": 1, \"tid\": 2, \"ts\": 11, \"dur\": 2}",
      R"({"ph": "X", "cat": "c", "name": "key", "pid": 1, tid": 2, "ts": 14, "dur": 2})",
      R"({"ph": "X", "cat": "c", "name": "text time", "pid": 1, "tid": 2, "ts": "17.5", "dur": "2"})",
      R"({"ph": "X", "cat": "c", "name": "negative", "pid": 1, "tid": 2, "ts": 20, "dur": -5})",
      R"({"ph": "X", "cat": "c", "name": "comma", "pid": 1, "tid": 2, "ts": 23, "dur": 1,},)",
      R"({"ph": "X", "cat": "c" "name": "no comma", "pid": 1, "tid": 2, "ts": 25, "dur": 1})",
      R"({"ph": "X", "cat": "c", "name": "arguments", "pid": 1, "tid": 2, "ts": 27, "dur": 1, "args": {"a": [1, 2}})",
      slice("last", 30, 1),
  }));
  EXPECT_EQ(t->size(), 12u);
  EXPECT_NE(t->find_name("{\"device\": \"cpu\"}(12): run"), kNone);
  EXPECT_NE(t->find_name("torch\\cuda\\__init__.py"), kNone);
  EXPECT_NE(t->find_name("\xEF\xBF\xBD\xEF\xBF\xBD"), kNone);
  EXPECT_NE(t->find_name("last"), kNone);
  EXPECT_EQ(repairs(*t, "unescaped quotes"), 1u);
  EXPECT_EQ(repairs(*t, "invalid escapes"), 1u);  // events, not escapes
  EXPECT_EQ(repairs(*t, "control characters"), 2u);
  EXPECT_EQ(repairs(*t, "invalid UTF-8"), 1u);
  EXPECT_EQ(repairs(*t, "keys without a quote"), 1u);
  EXPECT_EQ(repairs(*t, "negative durations"), 1u);
  EXPECT_EQ(repairs(*t, "missing commas"), 1u);
  EXPECT_EQ(repairs(*t, "arguments skipped"), 1u);
}

TEST(TraceReader, SkipsAnEventItCannotReadAndGoesOn) {
  auto t = parse_trace(trace_of({slice("a", 1, 1), "{\"ph\": !!! }", slice("b", 3, 1)}));
  EXPECT_EQ(t->size(), 2u);
  EXPECT_EQ(repairs(*t, "events skipped"), 1u);
  EXPECT_GT(t->repairs()[0].first_byte, 0u);
}

TEST(TraceReader, OtherToolsPhases) {
  auto t = parse_trace(
      R"([{"ph": "B", "name": "f", "pid": "a", "tid": "b", "ts": 1}, {"ph": "B", "name": "g", "pid": "a", "tid": "b", "ts": 2},
    {"ph": "E", "pid": "a", "tid": "b", "ts": 4}, {"ph": "E", "pid": "a", "tid": "b", "ts": 9}, {"ph": "B", "name": "open", "pid": "a", "tid": "b", "ts": 10},
    {"ph": "E", "pid": "a", "tid": "c", "ts": 3},
    {"ph": "C", "name": "memory", "pid": "a", "ts": 5, "args": {"used": 7, "free": 3.5}},
    {"ph": "b", "cat": "net", "id": 1, "name": "get", "pid": "a", "ts": 1}, {"ph": "e", "cat": "net", "id": 1, "name": "get", "pid": "a", "ts": 12},
    {"ph": "i", "name": "mark", "pid": "a", "tid": "b", "ts": 6, "s": "t"}, {"ph": "s", "cat": "q", "name": "q", "id": 9, "pid": "a", "tid": "b", "ts": 3}])");
  EXPECT_EQ(t->size(), 5u);
  EXPECT_EQ(t->counters().size(), 2u);
  uint32_t g = t->find_name("g"), f = t->find_name("f"), get = t->find_name("get");
  for (EventId e = 0; e < t->size(); ++e) {
    if (t->columns().name[e] == g) {
      EXPECT_EQ(t->duration(e), 2000);
    }
    if (t->columns().name[e] == f) {
      EXPECT_EQ(t->duration(e), 8000);
    }
    if (t->columns().name[e] == get) {
      EXPECT_EQ(t->duration(e), 11000);
    }
  }
  EXPECT_EQ(repairs(*t, "begins without an end"), 1u);
  EXPECT_EQ(repairs(*t, "ends without a begin"), 1u);
  EXPECT_EQ(repairs(*t, "flows without their other half"), 1u);
}

TEST(TraceReader, WhatIsNoTraceSaysSo) {
  for (const char* text : {"", "hello", "{\"a\": 1}", "{", "null"}) EXPECT_THROW(parse_trace(text), Error) << text;
  EXPECT_EQ(parse_trace("[]")->size(), 0u);
  EXPECT_TRUE(parse_trace("{\"traceEvents\": [")->truncated());
}

// Chrome's array of events may go without its `]`; PyTorch's object may not.
TEST(TraceReader, AnArrayMayLackItsEnd) {
  const std::string a = slice("a", 1, 1), b = slice("b", 3, 1);
  for (const std::string& whole :
       {std::string("["), "[" + a, "[" + a + ",\n", "[" + a + ",\n" + b + "\n", "[" + a + "]"})
    EXPECT_FALSE(parse_trace(whole)->truncated()) << whole;
  const std::string text = "[" + a + ",\n" + slice("with", 3, 1, R"("args": {"x": {"y": "}"}})");
  for (size_t cut = a.size() + 4; cut < text.size(); ++cut)
    EXPECT_TRUE(parse_trace(text.substr(0, cut))->truncated()) << text.substr(0, cut);
  EXPECT_TRUE(parse_trace("{\"traceEvents\": [" + a + "\n")->truncated());
}

std::string kernel(const std::string& name, int64_t ts_us, int64_t dur_us, const std::string& args) {
  return "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" + name +
         "\", \"pid\": 0, \"tid\": 7, \"ts\": " + std::to_string(ts_us) + ", \"dur\": " + std::to_string(dur_us) +
         ", \"args\": {" + args + "}}";
}
std::string call(int64_t ts_us, int64_t correlation, int64_t external) {
  return slice("cudaLaunchKernel", ts_us, 2,
               "\"args\": {\"External id\": " + std::to_string(external) +
                   ", \"correlation\": " + std::to_string(correlation) + "}",
               "cuda_runtime");
}
std::string op(const std::string& name, int64_t ts_us, int64_t dur_us, int64_t external) {
  return slice(name, ts_us, dur_us,
               "\"args\": {\"External id\": " + std::to_string(external) + ", \"x\": \"\\\"External id\\\": 9\"}");
}

// Where the call is missing, the op that "External id" names stands for it; see Note [Work without its call].
TEST(TraceReader, WorkWithoutItsCallIsLinkedWithItsOp) {
  const std::string outer = op("outer", 0, 90, 1), inner = op("inner", 20, 20, 2), later = op("later", 100, 20, 3);
  auto launched_by = [](const std::vector<std::string>& events) {
    auto t = parse_trace(trace_of(events));
    std::vector<std::string> names;
    for (EventId e = 0; e < t->size(); ++e)
      if (on_gpu(t->kind(e)))
        names.push_back(t->launch_of(e) == kNone ? "" : std::string(t->event_name(t->launch_of(e))));
    return names;
  };
  using Names = std::vector<std::string>;
  const std::string k1 = kernel("k", 50, 5, "\"External id\": 2, \"correlation\": 70"),
                    k2 = kernel("k", 60, 5, "\"External id\": \"3\", \"correlation\": 71");
  EXPECT_EQ(launched_by({outer, inner, later, call(25, 70, 2), k1}), Names{"cudaLaunchKernel"});
  // No call of the second one. An op that has not begun yet launched nothing.
  EXPECT_EQ(launched_by({outer, inner, later, call(25, 70, 2), k1, k2}), (Names{"cudaLaunchKernel", ""}));
  EXPECT_EQ(launched_by({outer, inner, later, call(25, 70, 2), k1,
                         kernel("k", 130, 5, "\"External id\": 3, \"correlation\": 71")}),
            (Names{"cudaLaunchKernel", "later"}));
  // No calls at all.
  EXPECT_EQ(launched_by({outer, inner, k1, kernel("k", 60, 5, "\"External id\": 1, \"correlation\": 71")}),
            (Names{"inner", "outer"}));
  // Older recordings write the correlation there: where calls are known it names ops that are elsewhere, where none are
  // it is the same number.
  EXPECT_EQ(
      launched_by({outer, inner, later, call(105, 2, 2), kernel("k", 110, 5, "\"External id\": 2, \"correlation\": 2"),
                   kernel("k", 120, 5, "\"External id\": 1, \"correlation\": 1")}),
      (Names{"cudaLaunchKernel", ""}));
  EXPECT_EQ(launched_by({outer, inner, kernel("k", 50, 5, "\"External id\": 2, \"correlation\": 2"),
                         kernel("k", 60, 5, "\"External id\": 1, \"correlation\": 1")}),
            (Names{"", ""}));
  EXPECT_EQ(launched_by({outer, kernel("k", 50, 5, "\"correlation\": 2")}), Names{""});
}

TEST(TraceReader, FlowsThatLaunchNothingAreNoRepairs) {
  const char* end = R"({"ph": "f", "id": 8, "pid": 1, "tid": 2, "ts": 3, "cat": "ac2g", "name": "ac2g", "bp": "e"})";
  auto t = parse_trace(trace_of({slice("cudaEventQuery", 1, 5, "", "cuda_runtime"), end}));
  EXPECT_TRUE(t->repairs().empty());
  EXPECT_EQ(
      repairs(
          *parse_trace(trace_of(
              {slice("a", 1, 5), R"({"ph": "f", "id": 8, "pid": 1, "tid": 2, "ts": 3, "cat": "other", "name": "x"})"})),
          "flows without their other half"),
      1u);
}

TEST(TraceReader, AsynchronousSlicesOfEveryIdTakeTheFirstFreeLane) {
  auto async = [](const char* phase, const std::string& id, int pid, int ts) {
    return "{\"ph\": \"" + std::string(phase) + "\", \"cat\": \"net\", \"name\": \"get\", " + id +
           ", \"pid\": " + std::to_string(pid) + ", \"tid\": 1, \"ts\": " + std::to_string(ts) + "}";
  };
  const std::string local = R"("id2": {"local": "0x1"})", other = R"("id2": {"local": "0x2"})",
                    global = R"("id2": {"global": "0x1"})";
  // Two processes with the same local id, one slice over both of them.
  auto t = parse_trace(trace_of({async("b", local, 1, 0), async("b", local, 2, 1), async("b", other, 1, 2),
                                 async("b", global, 1, 3), async("e", local, 1, 10), async("e", local, 2, 21),
                                 async("e", other, 1, 32), async("e", global, 2, 43)}));
  ASSERT_EQ(t->size(), 4u);
  EXPECT_TRUE(t->repairs().empty());
  std::vector<int64_t> durations;
  for (EventId e = 0; e < t->size(); ++e) durations.push_back(t->duration(e));
  std::sort(durations.begin(), durations.end());
  EXPECT_EQ(durations, (std::vector<int64_t>{10000, 20000, 30000, 40000}));
  // Each of many reaches into the next one: two lanes, no stairs.
  std::vector<std::string> chain;
  for (int i = 0; i < 100; ++i)
    chain.push_back(async("b", "\"id\": " + std::to_string(i), 1, i * 10)),
        chain.push_back(async("e", "\"id\": " + std::to_string(i), 1, i * 10 + 15));
  auto row = parse_trace(trace_of(chain));
  ASSERT_EQ(row->size(), 100u);
  EXPECT_EQ(row->lanes().size(), 2u);
}

TEST(TraceReader, FlowsOfALocalIdAreTheirProcesssOwn) {
  std::vector<std::string> events;
  for (int pid : {1, 2}) {
    const std::string of = ", \"cat\": \"fwdbwd\", \"id2\": {\"local\": \"0x7\"}, \"pid\": " + std::to_string(pid) +
                           ", \"tid\": 1, \"ts\": ";
    for (int ts : {10, 50})
      events.push_back(R"({"ph": "X", "cat": "cpu_op", "name": ")" + std::string(ts == 10 ? "forward" : "backward") +
                       R"(", "pid": )" + std::to_string(pid) + R"(, "tid": 1, "ts": )" + std::to_string(ts) +
                       R"(, "dur": 5})");
    events.push_back(R"({"ph": "s", "name": "fwdbwd")" + of + "10}");
    events.push_back(R"({"ph": "f", "name": "fwdbwd")" + of + "50, \"bp\": \"e\"}");
  }
  auto t = parse_trace(trace_of(events));
  ASSERT_EQ(t->forward_backward().size(), 2u);
  for (const Link& l : t->forward_backward()) {
    EXPECT_EQ(t->event_name(l.from), "forward");
    EXPECT_EQ(t->event_name(l.to), "backward");
    EXPECT_EQ(t->row_of(l.from), t->row_of(l.to));
  }
}

TEST(TraceReader, RankIsThatOfDistributedInfo) {
  auto rank = [](const std::string& info) {
    return parse_trace(trace_of({slice("a", 1, 1)}, ", \"distributedInfo\": " + info))->rank();
  };
  EXPECT_EQ(rank(R"({"backend": "nccl", "rank": 3, "world_size": 8})"), 3);
  EXPECT_EQ(rank(R"({"pg_config": [{"pg_name": "\"rank\": 7", "ranks": [4, 5], "rank": 6}], "rank": "12"})"), 12);
  EXPECT_EQ(rank(R"({"backend": "gloo", "ranks": 5})"), -1);
  EXPECT_EQ(rank(R"({"rank": null, "world_size": 8})"), -1);
  EXPECT_EQ(rank(R"({"rank": -1})"), -1);
  EXPECT_EQ(rank("[]"), -1);
}

// Sums of durations and of bytes must be numbers whatever a file says.
TEST(TraceReader, NoSumIsTooLargeForANumber) {
  const std::string century = "2000000000000000";  // microseconds, 63 years: each one alone could be
  std::vector<std::string> events;
  for (int i = 0; i < 20; ++i)
    events.push_back(R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": )" + std::to_string(i) +
                     R"(, "ts": 1, "dur": )" + century + "}");
  for (int i = 0; i < 20; ++i)
    events.push_back(R"({"ph": "B", "cat": "cpu_op", "name": "b", "pid": 2, "tid": 1, "ts": -)" + century + "}");
  events.push_back(slice("ok", 5, 7));
  for (int i = 0; i < 4; ++i)
    events.push_back(
        R"({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 2, "ts": 9, "args": {"Bytes": -9223372036854775808, "Device Type": 0}})");
  auto t = parse_trace(trace_of(events));
  ASSERT_EQ(t->size(), events.size());
  __int128 sum = 0, bytes = 0;
  for (EventId e = 0; e < t->size(); ++e) sum += t->duration(e);
  for (const MemoryEvent& m : t->memory()) bytes += m.bytes;
  EXPECT_LE(sum, INT64_MAX);
  EXPECT_EQ(bytes, 0);
  EXPECT_EQ(repairs(*t, "times that are no numbers"), 24u);
  EventId ok = 0;
  while (t->event_name(ok) != "ok") ++ok;
  EXPECT_EQ(t->duration(ok), 7000);
}

TEST(TraceReader, AnEventsTextIsReadAsTheScannerReadsIt) {
  const std::string quoted =
      R"x({"ph": "X", "cat": "python_function", "name": "{"device": "cpu"}(12): run", "pid": 1, "tid": 2, "ts": 1, "dur": 2, "args": {"Python id": 4, "s": "\"}"}})x";
  auto t = parse_trace(trace_of({quoted, slice("next", 4, 1)}));
  ASSERT_EQ(t->size(), 2u);
  EXPECT_EQ(t->event_text(0), quoted);
  EXPECT_EQ(argument(*t, 0, "Python id"), "4");
  EXPECT_EQ(argument(*t, 0, "s"), "\"}");
  // Broken off: as far as it goes.
  auto cut = parse_trace("{\"traceEvents\": [" + quoted.substr(0, quoted.size() - 10));
  ASSERT_EQ(cut->size(), 1u);
  EXPECT_EQ(cut->event_text(0), quoted.substr(0, quoted.size() - 10));
}

TEST(TraceReader, AChangedFileHasNoTextsOfEvents) {
  const std::string path = ::testing::TempDir() + "tenon-changed-" + std::to_string(getpid()) + ".json";
  auto write = [&](const std::string& text) { std::ofstream(path, std::ios::binary) << text; };
  const std::string first = trace_of({slice("a", 1, 1), slice("b", 3, 1)}),
                    second = trace_of({slice("a", 1, 1), slice("c", 3, 1)});
  write(first);
  ReadOptions o;
  o.read_cache = o.write_cache = false;
  auto t = read_trace(path, o);
  EXPECT_EQ(t->event_text(1), slice("b", 3, 1));
  ASSERT_EQ(first.size(), second.size());
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::seconds(5));
  EXPECT_EQ(t->event_text(1), "");
  write(second);
  EXPECT_EQ(t->event_text(1), "");
  std::filesystem::remove(path);
  EXPECT_EQ(t->event_text(1), "");
}

/// A trace of some hundred kilobytes with every kind of trouble in it.
std::string troubled(int events) {
  std::vector<std::string> all;
  for (int i = 0; i < events; ++i) {
    switch (i % 7) {
      case 3:
        all.push_back(R"({"ph": "X", "cat": "c", "name": "say "hi" {x}", "pid": 1, "tid": 2, "ts": )" +
                      std::to_string(i) + R"(, "dur": 0.5})");
        break;
      case 4:
        all.push_back("{\"ph\": \"X\", \"broken\": [}");
        break;
      case 5:
        all.push_back(slice("with args", i, 1,
                            R"("args": {"correlation": 5, "shape": [[1, 2], []], "text": "},\n  {\"ph\": \"X\""})"));
        break;
      default:
        all.push_back(slice("plain " + std::to_string(i % 50), i, 1));
    }
  }
  return trace_of(all);
}

TEST(TraceReader, TheCutsIntoPartsDoNotMatter) {
  // Parts are megabytes; padding makes each part hold a few events, so that guesses at its start go wrong inside of
  // strings.
  std::vector<std::string> events;
  std::string bait;
  while (bait.size() < 300000) bait += "},\\n {\\\"ph\\\": \\\"X\\\", \\\"name\\\": \\\"bait\\\"}, {\\\"ph\\\": ";
  for (int i = 0; i < 100; ++i)
    events.push_back(slice("e" + std::to_string(i), i * 10, 5, "\"args\": {\"text\": \"" + bait + "\"}"));
  std::string text = trace_of(events);
  ASSERT_GT(text.size(), size_t{24} << 20);
  for (int threads : {1, 2, 5}) {
    ReadOptions o;
    o.threads = threads;
    auto t = parse_trace(text, o);
    EXPECT_EQ(t->size(), 100u);
    EXPECT_EQ(t->find_name("bait"), kNone);
  }
  ReadOptions cancel;
  cancel.progress = [](uint64_t, uint64_t) { return false; };
  EXPECT_THROW(parse_trace(text, cancel), Error);
}

// Any prefix of a file opens with what it holds, and never with more than the whole.
TEST(TraceReader, EveryPrefixOpens) {
  const std::string text = troubled(120);
  auto whole = parse_trace(text);
  size_t before = 0, cuts = 0;
  const size_t head = text.find('[') + 1;
  for (size_t cut = head; cut <= text.size(); cut += 7) {
    auto t = parse_trace(text.substr(0, cut));
    ASSERT_LE(t->size(), whole->size() + 1) << cut;
    // An event that the cut leaves usable may be one that later text would have shown to be broken.
    ASSERT_GE(t->size() + 1, before) << cut;
    before = t->size();
    ++cuts;
  }
  EXPECT_GT(cuts, 1000u);
  EXPECT_GE(before + 1, whole->size());
}

TEST(TraceStore, SummariesHoldEveryEventOnce) {
  std::vector<std::string> events;
  for (int i = 0; i < 20000; ++i)
    events.push_back(slice(i % 1000 == 7 ? "long" : "short", i * 10, i % 1000 == 7 ? 9 : 3));
  auto t = parse_trace(trace_of(events));
  for (size_t buckets : {10, 100, 3000, 50000}) {
    auto all = t->summarise(0, t->begin(), t->finish() + 1, buckets);
    uint64_t count = 0;
    int64_t busy = 0, longest = 0;
    for (const Summary& s : all) {
      count += s.count;
      busy += s.busy;
      longest = std::max(longest, t->duration(s.longest));
      EXPECT_LE(s.start, s.end);
    }
    EXPECT_EQ(count, 20000u);
    EXPECT_EQ(busy, 20 * 9000 + 19980 * 3000);
    EXPECT_EQ(longest, 9000);
    EXPECT_LE(all.size(), std::max<size_t>(2 * buckets, 20) + 2);
  }
  auto some = t->summarise(0, 500000, 600000, 4);
  uint64_t count = 0;
  for (const Summary& s : some) count += s.count;
  auto [first, last] = t->range(0, 500000, 600000);
  EXPECT_EQ(count, last - first);
}

}  // namespace
}  // namespace tenon::traces
