// What is compared with what, which side a row selects, and its counterpart; boxes of a difference flame graph.
#include "views/compare/compare_model.h"

#include <gtest/gtest.h>

#include "tracing/trace/trace_reader.h"
#include "views/shared/project_contents.h"

namespace tenon::views {
namespace {

CompareSide side_of(Document::Kind kind, int document, const std::string& title) {
  return {kind, document, 0, title, ""};
}

TEST(CompareSides, exactly_two_of_a_kind_are_taken) {
  CompareModel m;
  EXPECT_FALSE(m.set_offered({}, 0));
  EXPECT_NE(m.missing().find("Open two traces"), std::string::npos);
  m.set_offered({side_of(Document::Kind::trace, 1, "a.json")}, 1);
  EXPECT_FALSE(m.ready());
  EXPECT_FALSE(m.can_choose());
  EXPECT_NE(m.missing().find("a.json is open. Open another trace"), std::string::npos) << m.missing();
  m.set_offered({side_of(Document::Kind::trace, 1, "a.json"), side_of(Document::Kind::model, 2, "m.onnx")}, 2);
  EXPECT_NE(m.missing().find("a.json is a trace and m.onnx a model"), std::string::npos) << m.missing();
  EXPECT_TRUE(m.set_offered({side_of(Document::Kind::trace, 1, "a.json"), side_of(Document::Kind::model, 2, "m.onnx"),
                             side_of(Document::Kind::trace, 3, "b.json")},
                            3));
  ASSERT_TRUE(m.ready());
  EXPECT_EQ(m.a()->document, 1);
  EXPECT_EQ(m.b()->document, 3);
  ASSERT_EQ(m.offered_b().size(), 1u) << "B lists what is of A's kind, without A";
  EXPECT_EQ(m.offered_b()[0].document, 3);
  EXPECT_FALSE(m.set_offered(m.offered(), 2)) << "the same again";
  // A third one does not change what is compared; one that is closed does.
  auto all = m.offered();
  all.push_back(side_of(Document::Kind::trace, 4, "c.json"));
  EXPECT_FALSE(m.set_offered(all, 4));
  std::erase_if(all, [](const CompareSide& s) { return s.document == 1; });
  EXPECT_TRUE(m.set_offered(all, 4));
  ASSERT_TRUE(m.ready());
  EXPECT_EQ(m.a()->document, 3);
  EXPECT_EQ(m.b()->document, 4) << "the one other trace";
}

TEST(CompareSides, of_two_kinds_with_two_each_that_of_what_is_shown) {
  const std::vector<CompareSide> all{side_of(Document::Kind::trace, 1, "a"), side_of(Document::Kind::trace, 2, "b"),
                                     side_of(Document::Kind::model, 3, "c"), side_of(Document::Kind::model, 4, "d")};
  CompareModel first, second;
  first.set_offered(all, 2);
  EXPECT_EQ(first.a()->kind, Document::Kind::trace);
  second.set_offered(all, 0);
  EXPECT_EQ(second.a()->kind, Document::Kind::model);
}

TEST(CompareSides, are_chosen_and_swapped) {
  CompareModel m;
  m.set_offered({side_of(Document::Kind::trace, 1, "a"), side_of(Document::Kind::trace, 2, "b"),
                 side_of(Document::Kind::trace, 3, "c"), side_of(Document::Kind::model, 4, "m"),
                 side_of(Document::Kind::model, 5, "n"), side_of(Document::Kind::model, 6, "o")},
                0);
  EXPECT_FALSE(m.ready()) << "there are three of each";
  EXPECT_TRUE(m.can_choose());
  m.choose_a(m.offered()[0]);
  EXPECT_FALSE(m.ready());
  EXPECT_NE(m.missing().find("Choose what a is compared with"), std::string::npos) << m.missing();
  m.choose_b(m.offered()[3]);
  EXPECT_FALSE(m.b()) << "a model is not compared with a trace";
  m.choose_b(m.offered()[2]);
  m.swap();
  EXPECT_EQ(m.a()->document, 3);
  EXPECT_EQ(m.b()->document, 1);
  m.choose_a(m.offered()[0]);
  EXPECT_EQ(m.a()->document, 1) << "B was chosen as A: they change places";
  EXPECT_EQ(m.b()->document, 3);
  m.choose_a(m.offered()[4]);
  EXPECT_FALSE(m.b()) << "A is of another kind now";
}

TEST(CompareSides, the_file_that_is_opened_next_is_b) {
  CompareModel m;
  std::vector<CompareSide> all{side_of(Document::Kind::trace, 1, "a"), side_of(Document::Kind::trace, 2, "b")};
  m.set_offered(all, 1);
  m.compare_with_next(1);
  EXPECT_TRUE(m.waits_for_next());
  all.push_back(side_of(Document::Kind::model, 3, "m"));
  m.set_offered(all, 3);
  EXPECT_TRUE(m.waits_for_next()) << "a model is no B of a trace";
  all.push_back(side_of(Document::Kind::trace, 4, "c"));
  EXPECT_TRUE(m.set_offered(all, 4));
  EXPECT_EQ(m.a()->document, 1);
  EXPECT_EQ(m.b()->document, 4);
  EXPECT_FALSE(m.waits_for_next());
}

TEST(CompareSides, are_documents_and_the_checkpoints_of_the_project) {
  ProjectContents contents;
  projects::RunInfo run;
  run.id = 7;
  run.name = "cnn-01";
  contents.runs.push_back(run);
  contents.checkpoints = {{{.id = 1, .run = 7, .step = 100}, {.id = 2, .run = 7, .step = 2000, .best = true}}};
  Document one{.id = 1, .kind = Document::Kind::trace, .path = "/x/t.json", .title = "t.json"}, two = one;
  two.id = 2;
  two.path = "/y/t.json";
  const auto sides = comparable_sides({one, two}, contents);
  ASSERT_EQ(sides.size(), 4u);
  EXPECT_EQ(sides[0].title, "t.json (x #1)");
  EXPECT_EQ(sides[1].title, "t.json (y #2)") << "two of one name are told apart";
  EXPECT_EQ(sides[2].title, "cnn-01 · step 2,000, best");
  EXPECT_EQ(sides[3].checkpoint, 1);
  CompareModel m;
  m.set_offered(sides, 0);
  ASSERT_TRUE(m.ready()) << "the two documents";
  EXPECT_EQ(m.a()->kind, Document::Kind::trace);
}

TEST(CompareSides, of_very_many_checkpoints_are_the_last_and_best_of_the_newest_runs) {
  ProjectContents contents;
  for (int64_t run = 1; run <= 5000; ++run) {
    projects::RunInfo info;
    info.id = run;
    info.name = "run " + std::to_string(run);
    contents.runs.push_back(info);
    contents.checkpoints.emplace_back();
    for (int64_t step = 10; step <= 50; step += 10) {
      projects::CheckpointInfo c;
      c.id = run * 10 + step / 10;
      c.run = run;
      c.step = step;
      c.best = step == 30;
      contents.checkpoints.back().push_back(c);
    }
  }
  const auto sides = comparable_sides({}, contents);
  ASSERT_EQ(sides.size(), 1000u);
  EXPECT_EQ(sides[0].title, "run 5000 · step 50");
  EXPECT_EQ(sides[1].title, "run 5000 · step 30, best");
  EXPECT_EQ(sides[2].title, "run 4999 · step 50");
}

TEST(CompareRows, select_the_side_that_is_shown_and_know_the_other) {
  tracing::Finding f;
  f.tables.push_back({"items", {{"name", "WHAT", tracing::Unit::text}}, {}});
  f.tables[0].add({std::string("both")}, tracing::Sight::of(5), tracing::Sight::of(8));
  f.tables[0].add({std::string("only A")}, tracing::Sight::of(6), {});
  f.tables[0].add({std::string("only B")}, {}, tracing::Sight::of(9));
  f.tables[0].add({std::string("a tensor")}, tracing::Sight::of_tensor("fc.weight"),
                  tracing::Sight::of_tensor("module.fc.weight"));
  CompareModel m;
  m.set_offered({side_of(Document::Kind::trace, 1, "a"), side_of(Document::Kind::trace, 2, "b")}, 1);
  const auto page = std::make_shared<const FindingPage>(make_page(f, {1}, {2}));
  m.set_result(page, nullptr);
  const auto& rows = page->tables[0].table.rows;
  const Selection in_a = Selection::event(1, 5), in_b = Selection::event(2, 8);
  EXPECT_TRUE(m.chosen(rows[0].selection, 1).same(in_a));
  EXPECT_TRUE(m.other(in_a).same(in_b));
  EXPECT_TRUE(m.other(in_b).same(in_a));
  EXPECT_TRUE(m.chosen(rows[0].selection, 2).same(in_b)) << "B is shown";
  EXPECT_TRUE(m.row_of(in_b).same(in_a)) << "the same row is marked";
  EXPECT_TRUE(m.chosen(rows[1].selection, 2).same(Selection::event(1, 6)));
  EXPECT_FALSE(m.other(Selection::event(1, 6)));
  EXPECT_TRUE(rows[2].selection.same(Selection::event(2, 9))) << "it stands in B alone";
  EXPECT_TRUE(m.other(Selection::file_tensor(1, "fc.weight")).same(Selection::file_tensor(2, "module.fc.weight")));
  EXPECT_FALSE(m.other(Selection::event(1, 77)));
  EXPECT_FALSE(m.other({}));
}

TEST(CompareRows, of_a_checkpoint_a_tensor_is_its_module) {
  tracing::Finding f;
  f.tables.push_back({"weights", {{"name", "TENSOR", tracing::Unit::text}}, {}});
  f.tables[0].add({std::string("w")}, tracing::Sight::of_tensor("features.0.weight"),
                  tracing::Sight::of_tensor("features.0.weight"));
  const FindingPage both = make_page(f, {Document::kProject}, {Document::kProject});
  EXPECT_TRUE(both.tables[0].table.rows[0].selection.same(Selection::module("features.0")));
  EXPECT_FALSE(both.tables[0].others[0]) << "the module is the same one in both";
  const FindingPage file = make_page(f, {Document::kProject}, {3});
  EXPECT_TRUE(file.tables[0].others[0].same(Selection::file_tensor(3, "features.0.weight")));
}

TEST(DifferenceFlames, show_what_changed_by_colour_sign_and_width) {
  auto trace = [](int first, int second) {
    return traces::parse_trace(
        R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "grows", "pid": 1, "tid": 1, "ts": 0, "dur": )" +
        std::to_string(first) + R"(},
        {"ph": "X", "cat": "cpu_op", "name": "stays", "pid": 1, "tid": 1, "ts": 300, "dur": 100})" +
        (second ? R"(, {"ph": "X", "cat": "cpu_op", "name": "new", "pid": 1, "tid": 1, "ts": 500, "dur": 100})" : "") +
        "]}");
  };
  const auto a = trace(100, 0), b = trace(200, 1);
  CompareModel m;
  m.set_offered({side_of(Document::Kind::trace, 1, "a"), side_of(Document::Kind::trace, 2, "b")}, 1);
  m.set_result(nullptr, std::make_shared<const tracing::FlamePair>(tracing::flame_difference(*a, *b)));
  const Scene& scene = m.flame().frame({800, 300});
  const auto texts = scene.texts();
  auto drawn = [&](const std::string& text) { return std::find(texts.begin(), texts.end(), text) != texts.end(); };
  EXPECT_TRUE(drawn("grows  +100.0 µs") || drawn("grows  +100 µs")) << scene.dump();
  EXPECT_TRUE(drawn("stays"));
  EXPECT_TRUE(drawn("more in B"));
  EXPECT_TRUE(scene.overlaps().empty()) << scene.overlaps().front();
  uint32_t node = 0;
  for (uint32_t i = 1; i < m.flame().flame()->nodes().size(); ++i)
    if (m.flame().flame()->text(i) == "new") node = i;
  EXPECT_FALSE(m.flame().in_a(node)) << "A has no such call";
  EXPECT_EQ(m.flame().in_b(node).document, 2);
  m.flame().choose(node);
  EXPECT_TRUE(m.chosen_box(1).same(m.flame().in_b(node)));
  EXPECT_NE(m.flame().summary().find("new"), std::string::npos) << m.flame().summary();
}

}  // namespace
}  // namespace tenon::views
