// Findings as pages: their words, figures and tables, and what a row selects.
#include "views/shared/finding_page.h"

#include <gtest/gtest.h>

#include "tests/views/step_fixture.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::views {
namespace {

using tracing::Finding;
using tracing::Unit;

TEST(FindingPage, ShowsFiguresAndTablesAsPeopleReadThem) {
  Finding f;
  f.sentence = "It takes long.";
  f.facts = {{"busy_ns", "GPU busy", Unit::nanoseconds, int64_t{1'500'000}}, {"share", "share", Unit::share, 0.25}};
  f.tables.push_back({"critical-path", {{"name", "WHAT", Unit::text}, {"self_ns", "SELF CPU", Unit::nanoseconds}}, {}});
  f.tables[0].add({std::string("sgemm"), int64_t{2000}}, tracing::Sight::of(7));
  f.tables[0].add({std::string("nothing"), int64_t{10}}, {-1, 5'000'100, 5'000'400});
  f.tables[0].add({std::string("all"), int64_t{1}}, {});
  const FindingPage page = make_page(f, {3, 5'000'000});
  EXPECT_TRUE(page.ok);
  EXPECT_EQ(page.sentence, "It takes long.");
  EXPECT_EQ(page.figures,
            (std::vector<std::pair<std::string, std::string>>{{"GPU busy", "1.5 ms"}, {"share", "25.0 %"}}));
  ASSERT_EQ(page.tables.size(), 1u);
  EXPECT_EQ(page.tables[0].title, "Critical path");
  const Table& t = page.tables[0].table;
  EXPECT_EQ(t.columns[0].title, "What");
  EXPECT_EQ(t.columns[1].title, "Self CPU");
  EXPECT_FALSE(t.columns[0].number);
  EXPECT_TRUE(t.columns[1].number);
  EXPECT_EQ(t.rows[0].cells[1].key, 2000);
  EXPECT_EQ(t.rows[0].cells[0].text, "sgemm");
  EXPECT_TRUE(t.rows[0].selection.same(Selection::event(3, 7)));
  Selection stretch = Selection::range(100, 400);
  stretch.document = 3;
  EXPECT_TRUE(t.rows[1].selection.same(stretch)) << to_text(t.rows[1].selection);
  EXPECT_FALSE(t.rows[2].selection);
}

TEST(FindingPage, OfAStepARowSelectsItsOp) {
  const auto step = testing::small_step();
  const Finding f = tracing::trace_analyses().at("ops").run({{step->timeline.store}, 100, -1});
  ASSERT_TRUE(f.ok) << f.sentence;
  const FindingPage page = make_page(f, {0, 0, step});
  ASSERT_FALSE(page.tables.empty());
  const Table& t = page.tables[0].table;
  ASSERT_GT(t.rows.size(), 3u);
  for (const Table::Row& row : t.rows) {
    ASSERT_EQ(row.selection.kind, Selection::Kind::op) << row.cells[0].text;
    EXPECT_EQ(step->ops.at(static_cast<size_t>(row.selection.id) - 1).name, row.cells[0].text);
  }
}

}  // namespace
}  // namespace tenon::views
