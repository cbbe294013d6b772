// Two flame graphs in one: what each path holds in A and in B adds up to what each of them holds.
#include "tracing/analyses/flame_difference.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/tracing/findings.h"
#include "tests/tracing/made_snapshot.h"
#include "tracing/analyses/snapshot_analysis.h"

namespace tenon::tracing {
namespace {

/// So many steps of 100 µs; "work" takes its share of each, on a thread of that number.
std::string stepped(int steps, int work_us, int thread) {
  std::string out = R"({"traceEvents": [)";
  auto slice = [&](const std::string& category, const std::string& name, int tid, int ts, int dur) {
    out += R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "pid": 1, "tid": )" +
           std::to_string(tid) + R"(, "ts": )" + std::to_string(ts) + R"(, "dur": )" + std::to_string(dur) + "},\n";
  };
  for (int i = 0; i < steps; ++i) {
    slice("user_annotation", "ProfilerStep#" + std::to_string(i + 3), thread, 1000 * i, 100);
    slice("cpu_op", "outer", thread, 1000 * i + 5, 80);
    slice("cpu_op", "work", thread, 1000 * i + 10, work_us);
    slice("kernel", "gemm", 7, 1000 * i + 20, 40);
  }
  return out + R"({"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {}}]})";
}

uint32_t node_of(const FlamePair& p, const std::string& name) {
  for (uint32_t i = 1; i < p.a.size(); ++i)
    if (p.flame.text(i) == name) return i;
  ADD_FAILURE() << "no node " << name;
  return 0;
}

TEST(FlamePairs, are_of_a_mean_step_whatever_its_number_and_thread) {
  const auto a = traces::parse_trace(stepped(2, 30, 11)), b = traces::parse_trace(stepped(5, 50, 99));
  const FlamePair p = flame_difference(*a, *b);
  const uint32_t work = node_of(p, "work"), outer = node_of(p, "outer"), step = node_of(p, "ProfilerStep*");
  EXPECT_EQ(p.a[work].self, 30'000);
  EXPECT_EQ(p.b[work].self, 50'000);
  EXPECT_EQ(p.change(work), 20'000);
  EXPECT_EQ(p.a[outer].total, 80'000);
  EXPECT_EQ(p.change(outer), 0) << "what its callee takes more it takes less itself";
  EXPECT_EQ(p.flame.nodes()[outer].parent, step);
  EXPECT_EQ(p.change(node_of(p, "gemm")), 0);
  EXPECT_EQ(b->event_name(p.b[work].longest), "work");
  EXPECT_EQ(a->event_name(p.a[work].longest), "work");
  // The width holds both.
  for (uint32_t i = 0; i < p.a.size(); ++i) EXPECT_GE(p.flame.nodes()[i].total, std::max(p.a[i].total, p.b[i].total));
  EXPECT_THROW(flame_difference(*a, *b, [](uint64_t, uint64_t) { return false; }), Error);
}

TEST(FlamePairs, the_rows_of_their_table_add_up_and_show_both_sides) {
  const auto a = traces::parse_trace(stepped(2, 30, 11)), b = traces::parse_trace(stepped(2, 50, 11));
  for (const size_t top : {size_t{1}, size_t{100}}) {
    const Finding f = run("diff-stacks", {a, b}, top);
    ASSERT_TRUE(f.ok) << f.sentence;
    const Table* t = table_of(f, "stacks");
    ASSERT_NE(t, nullptr);
    ASSERT_EQ(t->rows.size(), 2u);
    ASSERT_EQ(t->others.size(), t->rows.size());
    int64_t sum = 0;
    for (const auto& row : t->rows) sum += std::get<int64_t>(row[1]);
    EXPECT_EQ(sum, fact<int64_t>(f, "change"));
    EXPECT_GE(t->sights[0].event, 0);
    EXPECT_EQ(a->event_name(static_cast<traces::EventId>(t->sights[0].event)),
              b->event_name(static_cast<traces::EventId>(t->others[0].event)));
  }
  const FlamePair p = flame_difference(*a, *b);
  EXPECT_NE(folded(p).find(";ProfilerStep*;outer;work 30000 50000\n"), std::string::npos) << folded(p);
  const Finding same = run("diff-stacks", {a, a});
  EXPECT_NE(same.sentence.find("the same on every path"), std::string::npos) << same.sentence;
}

TEST(FlamePairs, of_snapshots_hold_what_is_alive_at_the_peaks) {
  snapshot::MadeSnapshot a, b;
  a.alloc("model.py", 1 << 20);
  b.alloc("model.py", 1 << 20);
  b.alloc("cache.py", 3 << 20);
  const auto x = a.done(), y = b.done();
  const FlamePair p = flame_difference(*x, *y);
  ASSERT_EQ(p.flame.unit(), Unit::bytes);
  EXPECT_EQ(p.a[0].total, 1 << 20);
  EXPECT_EQ(p.b[0].total, 4 << 20);
  const Finding f = snapshot_analyses().at("diff-stacks").run({.snapshots = {x, y}});
  ASSERT_EQ(f.tables.at(0).rows.size(), 1u);
  EXPECT_TRUE(f.tables[0].sights[0].place.empty()) << "A has no such place";
  EXPECT_NE(f.tables[0].others[0].place.find("cache.py"), std::string::npos);
  EXPECT_EQ(std::get<int64_t>(f.tables[0].rows[0][1]), 3 << 20);
}

TEST(TraceDifferences, rows_lead_to_an_event_on_each_side) {
  const auto a = traces::parse_trace(stepped(2, 30, 11)), b = traces::parse_trace(stepped(2, 50, 11));
  const Finding f = run("diff", {a, b});
  const Table* items = table_of(f, "items");
  ASSERT_NE(items, nullptr);
  ASSERT_EQ(items->sights.size(), items->rows.size());
  ASSERT_EQ(items->others.size(), items->rows.size());
  size_t both = 0;
  for (size_t r = 0; r < items->rows.size(); ++r) {
    if (items->sights[r].event < 0 || items->others[r].event < 0) continue;
    ++both;
    EXPECT_EQ(a->event_name(static_cast<traces::EventId>(items->sights[r].event)),
              b->event_name(static_cast<traces::EventId>(items->others[r].event)));
  }
  EXPECT_GT(both, 0u);
}

}  // namespace
}  // namespace tenon::tracing
