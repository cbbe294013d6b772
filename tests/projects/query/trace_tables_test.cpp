// The tables of a trace against its store.
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/projects/project_files.h"
#include "tests/projects/query/asked.h"
#include "tests/tracing/made_training.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::projects {
namespace {

using namespace testing_query;
using traces::EventId;

std::shared_ptr<const traces::Trace> made_trace() {
  tracing::Training t;
  t.steps = 3;
  t.blocks = 3;
  t.stacks = true;
  return traces::parse_trace(tracing::train(t));
}

struct TraceTables : ::testing::Test {
  std::shared_ptr<const traces::Trace> trace = made_trace();
  QueryBase base{{.trace = trace}};
};

TEST_F(TraceTables, events_are_those_of_the_store) {
  const auto all = rows(base,
                        "SELECT id, name, category, kind, start, dur, \"end\", thread, thread_id, gpu, depth, parent, "
                        "launch FROM events");
  ASSERT_EQ(all.size(), trace->size());
  const auto id_or_null = [](EventId e) { return e == traces::kNone ? QueryValue() : QueryValue(int64_t{e}); };
  for (EventId e = 0; e < trace->size(); ++e) {
    const traces::Row& row = trace->rows()[trace->row_of(e)];
    const Row expected = {int64_t{e},
                          std::string(trace->event_name(e)),
                          trace->category(e).name,
                          std::string(traces::name(trace->kind(e))),
                          trace->start(e) - trace->begin(),
                          trace->duration(e),
                          trace->end(e) - trace->begin(),
                          row.label(),
                          int64_t{trace->row_of(e)},
                          int64_t{row.gpu},
                          int64_t{trace->lanes()[trace->lane_of(e)].depth},
                          id_or_null(trace->parent(e)),
                          id_or_null(trace->launch_of(e))};
    ASSERT_EQ(all[e], expected) << "event " << e;
  }
}

TEST_F(TraceTables, what_narrows_changes_no_answer) {
  const int64_t middle = (trace->finish() - trace->begin()) / 2;
  const std::string m = std::to_string(middle), n = std::to_string(middle + middle / 3);
  // A plus before a column keeps SQLite from narrowing by it.
  expect_narrowed(base, "events", "start >= " + m + " AND start < " + n, "+start >= " + m + " AND +start < " + n);
  expect_narrowed(base, "events", "\"end\" > " + m + " AND start <= " + n, "+\"end\" > " + m + " AND +start <= " + n);
  expect_narrowed(base, "events", "\"end\" <= " + m + ".5", "+\"end\" <= " + m + ".5");
  expect_narrowed(base, "events", "name = 'aten::mm'", "+name = 'aten::mm'");
  expect_narrowed(base, "events", "name = 'aten::mm' AND start > " + m, "+name = 'aten::mm' AND +start > " + m);
  expect_narrowed(base, "events", "name IN ('aten::mm', 'aten::gelu')", "+name IN ('aten::mm', 'aten::gelu')");
  expect_narrowed(base, "events", "name = 'ATEN::MM' COLLATE NOCASE", "lower(name) = 'aten::mm'");
  expect_narrowed(base, "events", "category = 'kernel'", "+category = 'kernel'");
  expect_narrowed(base, "events", "kind = 'cpu op' AND thread_id = 0", "+kind = 'cpu op' AND +thread_id = 0");
  expect_narrowed(base, "events", "id BETWEEN 5 AND 9.5", "+id BETWEEN 5 AND 9.5");
  expect_narrowed(base, "events", "id = '7'", "+id = 7");
  expect_narrowed(base, "events", "id > 1e300 OR id < 3", "+id > 1e300 OR +id < 3");
  EXPECT_GT(rows(base, "SELECT 1 FROM events WHERE name = 'aten::mm'").size(), 5u);
  EXPECT_TRUE(rows(base, "SELECT 1 FROM events WHERE name = 'no such op'").empty());
  EXPECT_TRUE(rows(base, "SELECT 1 FROM events WHERE name = NULL OR id = NULL").empty());
  EXPECT_TRUE(rows(base, "SELECT 1 FROM events WHERE start > 'later'").empty());
}

TEST_F(TraceTables, groups_sum_up_what_the_store_holds) {
  std::map<std::string, std::pair<int64_t, int64_t>> expected;
  for (EventId e = 0; e < trace->size(); ++e)
    if (trace->kind(e) == traces::EventKind::kernel) {
      auto& [count, sum] = expected[std::string(trace->event_name(e))];
      ++count;
      sum += trace->duration(e);
    }
  const auto all = rows(base, "SELECT name, count(*), sum(dur) FROM events WHERE category = 'kernel' GROUP BY name");
  ASSERT_EQ(all.size(), expected.size());
  for (const Row& r : all)
    EXPECT_EQ(expected[std::get<std::string>(r[0])], std::pair(std::get<int64_t>(r[1]), std::get<int64_t>(r[2])));
}

TEST_F(TraceTables, a_kernel_belongs_to_the_step_of_its_launch) {
  const auto steps = tracing::trace_steps(*trace);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(number(base, "SELECT count(*) FROM steps"), 3);
  EXPECT_EQ(text(rows(base, "SELECT step, start, dur FROM steps")[1]),
            text({steps[1].number, steps[1].start - trace->begin(), steps[1].end - steps[1].start}));
  size_t kernels = 0;
  for (const Row& r : rows(base, "SELECT id, step FROM events WHERE kind = 'kernel'")) {
    const auto e = static_cast<EventId>(std::get<int64_t>(r[0]));
    const int64_t time = trace->start(trace->launch_of(e));
    for (const tracing::TraceStep& s : steps)
      if (time >= s.start && time < s.end) {
        EXPECT_EQ(r[1], QueryValue(s.number)) << e;
        ++kernels;
      }
  }
  EXPECT_GT(kernels, 20u);
}

TEST_F(TraceTables, threads_links_and_what_the_file_says) {
  EXPECT_EQ(number(base, "SELECT count(*) FROM threads"), static_cast<int64_t>(trace->rows().size()));
  EXPECT_EQ(number(base, "SELECT sum(events) FROM threads"), static_cast<int64_t>(trace->size()));
  EXPECT_EQ(rows(base,
                 "SELECT DISTINCT e.thread, t.thread FROM events e JOIN threads t ON t.id = e.thread_id WHERE "
                 "e.thread <> t.thread")
                .size(),
            0u);
  const auto links = rows(base, "SELECT source, target FROM links WHERE kind = 'launch'");
  ASSERT_EQ(links.size(), trace->launches().size());
  for (size_t i = 0; i < links.size(); ++i)
    EXPECT_EQ(text(links[i]), text({int64_t{trace->launches()[i].from}, int64_t{trace->launches()[i].to}}));
  EXPECT_EQ(number(base, "SELECT count(*) FROM links WHERE kind = 'backward'"),
            static_cast<int64_t>(trace->forward_backward().size()));
  EXPECT_GT(trace->forward_backward().size(), 0u);
  EXPECT_EQ(number(base, "SELECT count(*) FROM metadata"), static_cast<int64_t>(trace->metadata().size()));
  EXPECT_EQ(number(base, "SELECT count(*) FROM repairs"), static_cast<int64_t>(trace->repairs().size()));
}

TEST(TraceTablesOfAFile, arguments_counters_memory_and_repairs) {
  testing_files::TempDir dir;
  const std::string path = dir / "t.json";
  testing_files::write(path,
                       R"({"schemaVersion": 1, "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 2, "ts": 10, "dur": 5,
 "args": {"External id": 7, "Input Dims": [[2, 3], []], "text": "a \"b\""}},
{"ph": "C", "name": "clock", "pid": 1, "ts": 11, "args": {"mhz": 1.5}},
{"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 2, "ts": 12,
 "args": {"Bytes": 512, "Addr": 4096, "Device Type": 1, "Device Id": 0,
 "Total Allocated": 512, "Total Reserved": 2048}},
{"ph": "X", "cat": "cpu_op", "name": "later", "pid": 1, "tid": 2, "ts": 20, "dur": -5}
], "deviceProperties": [], "with_stack": 1})");
  QueryBase base({.trace = traces::read_trace(path, {.read_cache = false, .write_cache = false})});
  EXPECT_EQ(text(rows(base,
                      "SELECT json_extract(args, '$.\"External id\"'), json_extract(args, '$.\"Input "
                      "Dims\"[0][1]'), json_extract(args, '$.text') FROM events WHERE name = 'aten::add'")
                     .at(0)),
            "7|3|a \"b\"");
  EXPECT_EQ(number(base, "SELECT count(*) FROM counters WHERE value = 1.5"), 1);
  EXPECT_EQ(text(rows(base, "SELECT bytes, allocated, reserved, address, gpu, device FROM memory").at(0)),
            "512|512|2048|4096|1|0");
  EXPECT_EQ(number(base, "SELECT count(*) FROM metadata WHERE key = 'with_stack'"), 1);
  EXPECT_GE(number(base, "SELECT sum(count) FROM repairs"), 1);
}

TEST(TraceTablesOfAFile, an_empty_trace_has_empty_tables) {
  QueryBase base({.trace = traces::parse_trace(R"({"traceEvents": []})")});
  for (const QueryTable& t : query_tables(QueryKind::trace))
    if (t.name != "metadata") {
      EXPECT_EQ(number(base, "SELECT count(*) FROM " + t.name), 0) << t.name;
    }
  EXPECT_TRUE(rows(base, "SELECT * FROM events WHERE name = 'x' AND start > 5 AND id = 0").empty());
}

}  // namespace
}  // namespace tenon::projects
