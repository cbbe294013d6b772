// What holds for every analysis, whatever it is about.
#include "tests/tracing/findings.h"

#include <set>

#include "core/file.h"
#include "tests/tracing/made_training.h"
#include "tracing/analyses/event_names.h"
#include "tracing/analyses/snapshot_analysis.h"

namespace tenon::tracing {
namespace {

/// As an object of JSON a finding has a key a figure and a key a table: each its own.
void expect_own_names(const std::string& analysis, const Finding& f) {
  SCOPED_TRACE(analysis);
  std::set<std::string> names{"sentence"};
  for (const Fact& fact : f.facts) EXPECT_TRUE(names.insert(fact.name).second) << fact.name;
  for (const Table& t : f.tables) {
    EXPECT_TRUE(names.insert(t.name).second) << t.name;
    std::set<std::string> columns;
    for (const Column& c : t.columns) EXPECT_TRUE(columns.insert(c.name).second) << c.name;
    for (const auto& row : t.rows) EXPECT_EQ(row.size(), t.columns.size());
  }
  EXPECT_FALSE(f.sentence.empty());
  EXPECT_TRUE(f.sentence.ends_with('.')) << f.sentence;
}

TEST(Findings, OfTracesNameEachThingOnce) {
  Training loop;
  loop.stacks = true;
  loop.buckets = 3;
  loop.reduce = 40000;
  std::vector<std::shared_ptr<const traces::Trace>> both{traces::parse_trace(train(loop)),
                                                         traces::parse_trace(train({}))};
  for (const TraceAnalysis& a : trace_analyses()) {
    TraceRequest r;
    r.traces = a.min_traces == 1 ? std::vector{both[0]} : both;
    expect_own_names(a.name, a.run(r));
  }
}

/// What a row is about lies in the trace, and is what the row names.
TEST(Findings, RowsOfTracesKnowWhatTheyAreAbout) {
  Training loop;
  loop.stacks = true;
  loop.buckets = 3;
  loop.reduce = 40000;
  const auto t = traces::parse_trace(train(loop));
  std::set<std::string> with_sights;
  for (const TraceAnalysis& a : trace_analyses()) {
    if (a.min_traces > 1) continue;
    for (const Table& table : a.run({{t}, 100000, -1}).tables) {
      if (table.sights.empty()) continue;
      with_sights.insert(a.name);
      ASSERT_EQ(table.sights.size(), table.rows.size()) << a.name;
      for (size_t r = 0; r < table.rows.size(); ++r) {
        const Sight& s = table.sights[r];
        const std::string where = a.name + " " + table.name + " row " + std::to_string(r);
        if (s.event >= 0) {
          ASSERT_LT(s.event, static_cast<int64_t>(t->size())) << where;
          if (a.name == "kernels" || table.name == "ops") {
            EXPECT_EQ(t->event_name(static_cast<traces::EventId>(s.event)), std::get<std::string>(table.rows[r][0]));
          }
        } else if (s.to > s.from) {
          EXPECT_GE(s.from, t->begin()) << where;
          EXPECT_LE(s.to, t->finish()) << where;
        }
      }
    }
  }
  EXPECT_EQ(with_sights, (std::set<std::string>{"critical-path", "idle", "kernels", "modules", "ops", "overview",
                                                "stacks", "steps", "why"}));
  // The longest call stands for its name, and the longest gap for its step.
  const Finding idle = run("idle", {t});
  const Table* steps = table_of(idle, "steps");
  ASSERT_NE(steps, nullptr);
  for (size_t r = 0; r < steps->rows.size(); ++r)
    EXPECT_EQ(steps->sights[r].to - steps->sights[r].from, std::get<int64_t>(steps->rows[r].back()));
}

TEST(Findings, OfSnapshotsNameEachThingOnce) {
  auto s = snapshot::read_snapshot(std::string(TENON_SOURCE_DIR) + "/tests/fuzz/seeds/snapshot/spirals.pickle");
  for (const SnapshotAnalysis& a : snapshot_analyses()) {
    SnapshotRequest r;
    r.snapshots = a.min_files == 1 ? std::vector{s} : std::vector{s, s};
    expect_own_names(a.name, a.run(r));
  }
}

TEST(Findings, SayNamesOfKernelsInShort) {
  EXPECT_EQ(short_name("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
                       "at::detail::Array<char*, 3> >(int)"),
            "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, detail::Arra...");
  EXPECT_EQ(short_name("void at::native::(anonymous namespace)::softmax_warp_forward<float, true>(float*, void *)"),
            "softmax_warp_forward<float, true>(float*, void *)");
  EXPECT_EQ(short_name("aten::addmm"), "aten::addmm");
  EXPECT_EQ(short_name("format::kernel"), "format::kernel");
  EXPECT_EQ(short_name("\u00e4\u00e4\u00e4\u00e4", 8), "\u00e4\u00e4\u00e4\u00e4");
  EXPECT_EQ(short_name("\u00e4\u00e4\u00e4\u00e4\u00e4", 8), "\u00e4\u00e4...");
}

}  // namespace
}  // namespace tenon::tracing
