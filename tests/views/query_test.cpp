// The parts of the query view that need no window: the rows of an answer, its picture, completion, saved queries.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/templates/templates.h"
#include "projects/query/query_base.h"
#include "tests/messages.h"
#include "tracing/trace/trace_reader.h"
#include "views/query/query_chart.h"
#include "views/query/query_completion.h"
#include "views/query/query_page.h"
#include "views/query/saved_queries.h"

namespace tenon::views {
namespace {

using projects::QueryBase;
using projects::QueryKind;
using projects::QueryResult;
using testing_words::message_of;

std::shared_ptr<const traces::Trace> three_kernels() {
  return traces::parse_trace(R"({"traceEvents": [
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 1, "tid": 7, "ts": 10, "dur": 1500},
{"ph": "X", "cat": "kernel", "name": "relu", "pid": 1, "tid": 7, "ts": 2000, "dur": 20.5},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 1, "tid": 7, "ts": 3000, "dur": 900}]})");
}
std::shared_ptr<const QueryResult> asked(const std::string& sql) {
  QueryBase base({.trace = three_kernels()});
  return std::make_shared<const QueryResult>(base.run(sql));
}
bool has_word(const Completion& c, const std::string& word) {
  return std::find(c.words.begin(), c.words.end(), word) != c.words.end();
}
Completion typed(const std::string& sql, QueryKind kind = QueryKind::trace) {
  return complete_query(kind, sql, sql.size());
}

TEST(QueryPage, numbers_stay_exact_and_heads_name_their_units) {
  const Table t = make_table(*asked("SELECT id, name, dur, dur * 1.5 AS longer, NULL AS missing FROM events"));
  EXPECT_EQ(
      t.csv(),
      "id,name,\"dur, ns\",longer,missing\n0,gemm,1500000,2250000,\n1,relu,20500,30750,\n2,gemm,900000,1350000,\n");
  EXPECT_TRUE(t.columns[2].number);
  EXPECT_FALSE(t.columns[1].number);
  EXPECT_EQ(t.rows[0].cells[2].tip.str(), "1.5 ms");
  EXPECT_EQ(t.rows[1].cells[2].tip.str(), "20.5 µs");
  EXPECT_EQ(t.rows[0].cells[4].tip.str(), "NULL");
  EXPECT_FALSE(t.rows[0].selection) << "without a document a row leads nowhere";
}

TEST(QueryPage, a_row_leads_to_its_event_run_or_step) {
  const QuerySight trace{.document = 4, .events = 3};
  EXPECT_TRUE(make_table(*asked("SELECT name, id FROM events WHERE id = 2"), trace)
                  .rows[0]
                  .selection.same(Selection::event(4, 2)));
  EXPECT_TRUE(make_table(*asked("SELECT 1 AS event, 'x' AS y"), trace).rows[0].selection.same(Selection::event(4, 1)));
  EXPECT_FALSE(make_table(*asked("SELECT 3 AS event"), trace).rows[0].selection) << "there is no such event";
  EXPECT_FALSE(make_table(*asked("SELECT 'a' AS event, 2 AS other"), trace).rows[0].selection);
  QuerySight project{.shown_run = 2};
  project.has_run = [](int64_t run) { return run == 1 || run == 2; };
  project.run_named = [](const std::string& name) { return int64_t{name == "cnn" ? 1 : 0}; };
  const auto leads = [&](const char* sql) { return make_table(*asked(sql), project).rows[0].selection; };
  EXPECT_TRUE(leads("SELECT 'cnn' AS run").same(Selection::run(1)));
  EXPECT_TRUE(leads("SELECT 1 AS run, 5 AS step").same(Selection::run(1)));
  EXPECT_TRUE(leads("SELECT 2 AS run, 5 AS step").same(Selection::step(5))) << "of the run that is shown";
  EXPECT_TRUE(leads("SELECT 5 AS step").same(Selection::step(5)));
  EXPECT_FALSE(leads("SELECT 9 AS run"));
  EXPECT_FALSE(leads("SELECT 'gone' AS run"));
  EXPECT_FALSE(leads("SELECT 1 AS event"));
}

TEST(QueryChart, texts_and_numbers_are_bars) {
  QueryChart chart;
  EXPECT_EQ(chart.summary(), "There is no answer to draw yet");
  const auto result = asked("SELECT name, count(*), sum(dur) FROM events GROUP BY name ORDER BY 3 DESC");
  chart.set_result(result, make_table(*result));
  EXPECT_TRUE(chart.bars());
  EXPECT_EQ(chart.marks(), 2u);
  const Scene& scene = chart.frame({600, 300});
  const auto texts = scene.texts();
  for (const char* word : {"gemm", "relu", "sum(dur)", "2.4 ms", "20.5 µs"})
    EXPECT_NE(std::find(texts.begin(), texts.end(), word), texts.end()) << word << "\n" << scene.dump();
  EXPECT_TRUE(scene.overlaps().empty()) << scene.overlaps()[0];
  EXPECT_NE(chart.summary().find("2 bars, sum(dur) of name; highest name: gemm, sum(dur): 2.4 ms"), std::string::npos)
      << chart.summary();
}

TEST(QueryChart, numbers_over_numbers_are_a_line) {
  QueryChart chart;
  const auto result = asked("SELECT start, dur FROM events");
  chart.set_result(result, make_table(*result));
  EXPECT_FALSE(chart.bars());
  EXPECT_EQ(chart.marks(), 3u);
  for (const Size size : {Size{900, 400}, Size{300, 160}, Size{60, 40}}) {
    const Scene& scene = chart.frame(size);
    EXPECT_GE(scene.count(Scene::Kind::line), 3u);
    if (size.w >= 300) {
      EXPECT_TRUE(scene.overlaps().empty()) << scene.overlaps()[0];
    }
  }
  // As many points as no screen has columns are drawn, and none of their heights is lost.
  const auto many = asked(
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) SELECT i, iif(i = 5003, 1000, "
      "i % 7) AS v FROM n");
  chart.set_result(many, make_table(*many));
  const Scene& scene = chart.frame({600, 300});
  EXPECT_EQ(chart.marks(), 10000u);
  EXPECT_LT(scene.points().size(), 5000u);
  int at_top = 0;
  for (const Scene::Prim& p : scene.prims())
    for (uint32_t i = 0; p.kind == Scene::Kind::line && p.stroke == Ink::series0 && i < p.count; ++i)
      at_top += scene.points()[p.first + i].y < 40;
  EXPECT_EQ(at_top, 1) << "the spike";
  EXPECT_LT(scene.targets().size(), 700u);
}

TEST(QueryChart, arrows_go_through_it_and_enter_selects) {
  QueryChart chart;
  const auto result = asked("SELECT id, name, dur FROM events");
  chart.set_result(result, make_table(*result, {.document = 1, .events = 3}));
  Selection chosen;
  chart.on_select = [&](const Selection& s) { chosen = s; };
  chart.frame({600, 300});
  const auto press = [&](const char* key) { return chart.key({key, "", {}}); };
  EXPECT_TRUE(press("Down"));
  EXPECT_TRUE(press("Right"));
  EXPECT_FALSE(chosen);
  EXPECT_TRUE(press("Return"));
  EXPECT_TRUE(chosen.same(Selection::event(1, 1)));
  EXPECT_NE(chart.summary().find(". name: relu, dur: 20.5 µs"), std::string::npos) << chart.summary();
  EXPECT_TRUE(press("End"));
  EXPECT_TRUE(press("End"));
  EXPECT_FALSE(press("Q"));
  chart.frame({600, 300});
  const Scene::Target& bar = chart.last().targets()[0];
  EXPECT_TRUE(chart.pointer({PointerEvent::Type::press, Button::left, bar.box.x + 5, bar.box.y + 5, {}}));
  EXPECT_TRUE(chosen.same(Selection::event(1, 0)));
  // More bars than have room: the keys bring those that are hidden.
  const auto many = asked(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90) SELECT 'row ' || i, i FROM n");
  chart.set_result(many, make_table(*many));
  chart.frame({400, 200});
  press("End");
  const auto texts = chart.frame({400, 200}).texts();
  EXPECT_NE(std::find(texts.begin(), texts.end(), "row 90"), texts.end());
  EXPECT_TRUE(chart.wheel({100, 100, 0, 1, {}}));
}

TEST(QueryChart, what_is_no_chart_says_so) {
  QueryChart chart;
  for (const char* sql : {"SELECT name FROM events", "SELECT dur FROM events", "SELECT NULL, NULL"}) {
    const auto result = asked(sql);
    chart.set_result(result, make_table(*result));
    EXPECT_EQ(chart.marks(), 0u) << sql;
    EXPECT_NE(chart.summary().find("A chart wants"), std::string::npos) << sql;
    chart.frame({300, 200});
    EXPECT_FALSE(chart.key({"Right", "", {}}));
  }
}

TEST(QueryCompletion, columns_of_the_tables_that_are_named_come_first) {
  const Completion c = typed("SELECT du");
  EXPECT_EQ(c.begin, 7u);
  EXPECT_TRUE(has_word(c, "dur"));
  EXPECT_EQ(typed("SELECT * FROM ev").words.front(), "events");
  EXPECT_FALSE(has_word(typed("SELECT * FROM repairs WHERE st"), "start")) << "repairs have no such column";
  EXPECT_EQ(typed("SEL").words.front(), "SELECT");
  EXPECT_EQ(typed("sel").words.front(), "select");
  EXPECT_TRUE(has_word(typed("SELECT med"), "median"));
  // Of a name before a dot only columns are offered.
  const std::string sql = "SELECT e. FROM events e";
  const Completion dot = complete_query(QueryKind::trace, sql, 9);
  EXPECT_TRUE(has_word(dot, "launch"));
  EXPECT_FALSE(has_word(dot, "select"));
  EXPECT_TRUE(has_word(typed("SELECT * FROM allo", QueryKind::snapshot), "allocations"));
}

TEST(QueryCompletion, texts_comments_and_whole_words_ask_for_nothing) {
  EXPECT_TRUE(typed("SELECT 'du").words.empty());
  EXPECT_TRUE(typed("-- du").words.empty());
  EXPECT_TRUE(typed("").words.empty());
  EXPECT_TRUE(typed("SELECT dur FROM events").whole);
  EXPECT_FALSE(typed("SELECT dur FROM event").whole);
}

TEST(SavedQueries, are_kept_by_the_project_or_by_the_person) {
  const std::filesystem::path folder = ::testing::TempDir() + "/queries." + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const char* had = std::getenv("XDG_CONFIG_HOME");
  const std::string before = had ? had : "";
  ::setenv("XDG_CONFIG_HOME", folder.c_str(), 1);
  {
    const Template& t = find_template("spirals");
    auto project = projects::Project::create(folder / "p.tenon", t.model, t.recipe.to_json());
    SavedQueries own(nullptr), of_project(project);
    of_project.put({QueryKind::trace, "long ones", "SELECT 1"});
    of_project.put({QueryKind::project, "long ones", "SELECT 2"});
    of_project.put({QueryKind::trace, "long ones", "SELECT 3"});
    own.put({QueryKind::trace, "mine", "SELECT 'ä'"});
    EXPECT_EQ(own.all(), (std::vector<SavedQuery>{{QueryKind::trace, "mine", "SELECT 'ä'"}}));
    ASSERT_EQ(of_project.all().size(), 2u);
    EXPECT_EQ(message_of([&] { own.put({QueryKind::trace, "", "SELECT 1"}); }), "a saved query needs a name");
    EXPECT_EQ(message_of([&] { own.put({QueryKind::trace, "x", " \n"}); }), "there is no query to save");
    of_project.remove(QueryKind::project, "long ones");
    EXPECT_EQ(SavedQueries(project).all(), (std::vector<SavedQuery>{{QueryKind::trace, "long ones", "SELECT 3"}}));
    // What another hand has written there is passed over.
    project->set_window_state("queries", {{{"of", "nothing"}, {"name", 7}}, 3, nullptr});
    EXPECT_TRUE(SavedQueries(project).all().empty());
    // Nothing can be written into a project that is only read: they are the person's then.
    const auto read_only = projects::Project::open(folder / "p.tenon", true);
    EXPECT_EQ(SavedQueries(read_only).all().size(), 1u);
  }
  if (before.empty())
    ::unsetenv("XDG_CONFIG_HOME");
  else
    ::setenv("XDG_CONFIG_HOME", before.c_str(), 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tenon::views
