// What of a document is looked at: conditions in words, and the way back.
#include "views/shared/filter.h"

#include <gtest/gtest.h>

#include "tracing/trace/trace_reader.h"

namespace tenon::views {
namespace {

TEST(Filter, IsPutInWordsAndTakenAwayPartByPart) {
  const auto trace = traces::parse_trace(
      R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":5,"ts":1,"dur":2},
          {"ph":"M","name":"thread_name","pid":1,"tid":5,"args":{"name":"loads data"}}]})");
  const Filter all{.name = "gemm", .module = "features.3", .row = 0, .from = 2000, .to = 4500};
  const auto parts = parts_of(all, trace.get());
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].text, "“gemm”");
  EXPECT_EQ(parts[1].text, "features.3");
  EXPECT_NE(parts[2].text.find("loads data"), std::string::npos) << parts[2].text;
  EXPECT_EQ(parts[3].text, "2.00 µs to 4.50 µs");
  EXPECT_EQ(parts_of(all, nullptr)[2].text, "row 0") << "nothing knows its name";
  Filter rest = all;
  for (size_t i = 0; i < 4; ++i) rest = parts_of(rest, trace.get()).front().without;
  EXPECT_FALSE(rest);
  EXPECT_TRUE(parts_of({}, trace.get()).empty());
  EXPECT_TRUE(all);
  EXPECT_FALSE(Filter{}) << "nothing is asked for";
}

TEST(Filters, EveryDocumentHasItsOwnWayBack) {
  Filters f;
  EXPECT_FALSE(f.of(3));
  EXPECT_FALSE(f.can_undo(3));
  f.set(3, {.name = "a"});
  f.set(3, {.name = "a", .row = 2});
  f.set(4, {.row = 7});
  EXPECT_EQ(f.of(4).row, 7);
  f.undo(3);
  EXPECT_EQ(f.of(3), Filter{.name = "a"});
  f.undo(3);
  EXPECT_FALSE(f.of(3));
  f.undo(3);  // nothing before the first
  EXPECT_FALSE(f.of(3));
  f.redo(3);
  f.redo(3);
  f.redo(3);
  EXPECT_EQ(f.of(3).row, 2);
  f.undo(3);
  f.set(3, {.module = "head"});  // what was undone is forgotten
  EXPECT_FALSE(f.can_redo(3));
  EXPECT_EQ(f.of(4).row, 7);
  f.forget(4);
  EXPECT_FALSE(f.can_undo(4));
}

TEST(Filters, AWordThatIsTypedIsOneStepBack) {
  Filters f;
  f.set(0, {.row = 1});
  for (const char* text : {"g", "ge", "gem", "gemm"}) f.set(0, {.name = text, .row = 1}, true);
  EXPECT_EQ(f.of(0).name, "gemm");
  f.undo(0);
  EXPECT_EQ(f.of(0), Filter{.row = 1});
  f.redo(0);
  EXPECT_EQ(f.of(0).name, "gemm");
  // Typed and taken away again: nothing happened.
  Filters g;
  for (const char* text : {"g", "ge", "g", ""}) g.set(0, {.name = text}, true);
  EXPECT_FALSE(g.of(0));
  EXPECT_FALSE(g.can_undo(0));
  // Two words, with something else between them, are two.
  for (const char* text : {"a", "ab"}) g.set(0, {.name = text}, true);
  g.set(0, {.name = "ab", .row = 3});
  for (const char* text : {"abc", "abcd"}) g.set(0, {.name = text, .row = 3}, true);
  g.undo(0);
  EXPECT_EQ(g.of(0), (Filter{.name = "ab", .row = 3}));
  g.undo(0);
  EXPECT_EQ(g.of(0).name, "ab");
  g.undo(0);
  EXPECT_FALSE(g.of(0));
}

}  // namespace
}  // namespace tenon::views
