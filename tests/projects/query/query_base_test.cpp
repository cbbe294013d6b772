// What a query may ask, what is refused, and in which words.
#include "projects/query/query_base.h"

#include <filesystem>

#include "projects/project.h"
#include "projects/query/sql_text.h"
#include "tests/messages.h"
#include "tests/projects/project_files.h"
#include "tests/projects/query/asked.h"
#include "tracing/snapshot/snapshot.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::projects {
namespace {

using namespace testing_query;
using testing_words::error_of;
using testing_words::has;
using testing_words::message_of;

std::shared_ptr<const traces::Trace> four_events() {
  return traces::parse_trace(R"({"traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 10, "dur": 5},
{"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 2, "ts": 20, "dur": 7},
{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 30, "dur": 9},
{"ph": "X", "cat": "kernel", "name": "k", "pid": 1, "tid": 3, "ts": 40, "dur": 100}]})");
}

struct Queries : ::testing::Test {
  QueryBase base{{.trace = four_events()}};
  std::string error(const std::string& sql) {
    return error_of([&] { base.run(sql); });
  }
};

constexpr const char* kEndless =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

TEST_F(Queries, every_table_is_asked_by_its_columns) {
  for (const QueryKind kind : kQueryKinds)
    for (const QueryTable& t : query_tables(kind)) {
      EXPECT_FALSE(t.help.empty()) << t.name;
      EXPECT_FALSE(t.columns.empty()) << t.name;
      for (const QueryColumn& c : t.columns) EXPECT_FALSE(c.help.empty()) << t.name << "." << c.name;
    }
  for (const QueryTable& t : query_tables(QueryKind::trace))
    for (const QueryColumn& c : t.columns)
      EXPECT_EQ(base.run("SELECT \"" + c.name + "\" FROM " + t.name).columns.at(0).name, c.name);
}

TEST_F(Queries, examples_are_answered) {
  testing_files::TempDir dir;
  QueryBase of[] = {
      QueryBase({.trace = four_events()}), QueryBase({.snapshot = std::make_shared<snapshot::Snapshot>()}),
      QueryBase(
          {.project = Project::create(dir / "p.tenon", testing_files::small_model(), testing_files::small_recipe())})};
  for (QueryBase& b : of) {
    EXPECT_GE(query_examples(b.kind()).size(), 4u);
    for (const QueryExample& e : query_examples(b.kind()))
      EXPECT_EQ(message_of([&] { b.run(e.sql); }), "no error") << e.title;
  }
}

TEST_F(Queries, what_is_not_reading_is_refused_and_said) {
  for (const char* sql : {"INSERT INTO events (name) VALUES ('x')",
                          "UPDATE events SET dur = 0",
                          "DELETE FROM events",
                          "CREATE TABLE t (a)",
                          "CREATE TEMP TABLE t (a)",
                          "CREATE VIEW v AS SELECT 1",
                          "DROP TABLE events",
                          "ATTACH ':memory:' AS other",
                          "ATTACH 'x.db' AS other",
                          "DETACH main",
                          "BEGIN",
                          "COMMIT",
                          "SAVEPOINT s",
                          "VACUUM",
                          "VACUUM INTO 'copy.db'",
                          "REINDEX",
                          "ANALYZE",
                          "ALTER TABLE events ADD COLUMN x",
                          "CREATE TRIGGER t AFTER INSERT ON events BEGIN SELECT 1; END",
                          "PRAGMA writable_schema = 1",
                          "PRAGMA journal_mode = DELETE",
                          "PRAGMA temp_store_directory = '/'",
                          "PRAGMA hard_heap_limit = 1",
                          "SELECT load_extension('x.so')",
                          "SELECT fts3_tokenizer('simple')",
                          "CREATE VIRTUAL TABLE t USING fts5(a)",
                          "EXPLAIN INSERT INTO events (name) VALUES ('x')",
                          "SELECT * FROM sqlite_schema",
                          "SELECT * FROM sqlite_temp_schema",
                          "SELECT * FROM dbstat",
                          "SELECT * FROM pragma_writable_schema(1)",
                          "SELECT * FROM pragma_database_list"}) {
    const std::string said = error(sql);
    EXPECT_NE(said, "no error") << sql;
    EXPECT_GT(said.size(), 20u) << sql;
  }
  EXPECT_FALSE(std::filesystem::exists("copy.db"));
  EXPECT_FALSE(std::filesystem::exists("x.db"));
  EXPECT_TRUE(has(error("DELETE FROM events"), "may not be modified") || has(error("DELETE FROM events"), "only reads"))
      << error("DELETE FROM events");
  EXPECT_TRUE(has(error("PRAGMA writable_schema = 1"), "PRAGMA writable_schema is refused"));
  EXPECT_TRUE(has(error("ATTACH 'x.db' AS other"), "no other file"));
  EXPECT_TRUE(has(error("SELECT * FROM sqlite_schema"), "is none of the tables of a trace"))
      << error("SELECT * FROM sqlite_schema");
  EXPECT_TRUE(has(error("SELECT load_extension('x.so')"), "cannot call load_extension()"));
  EXPECT_EQ(number(base, "SELECT count(*) FROM events"), 4) << "and the next one is answered";
}

TEST_F(Queries, what_looks_at_tables_and_plans_is_allowed) {
  EXPECT_EQ(rows(base, "PRAGMA table_info(threads)").size(),
            query_tables(QueryKind::trace).at("threads").columns.size());
  EXPECT_FALSE(rows(base, "EXPLAIN QUERY PLAN SELECT * FROM events WHERE id = 3").empty());
  EXPECT_EQ(text(rows(base, "VALUES (1, 'x'), (2, NULL)").at(0)), "1|x");
  EXPECT_EQ(text(rows(base, "SELECT value FROM json_each('[3, 4]')").at(1)), "4");
}

TEST_F(Queries, a_second_statement_is_refused_with_its_place) {
  EXPECT_EQ(number(base, " ; SELECT 1; -- and nothing more\n /* here */ ;"), 1);
  EXPECT_TRUE(has(error("SELECT 1;\n  SELECT 2"), "a second one begins at line 2, character 3"))
      << error("SELECT 1;\n  SELECT 2");
  EXPECT_TRUE(has(error("SELECT 1; DROP TABLE events"), "one statement"));
  EXPECT_TRUE(has(error(""), "there is no query"));
  EXPECT_TRUE(has(error("-- nothing\n;;"), "there is no query"));
  EXPECT_TRUE(has(error(std::string("SELECT 1\0; DELETE", 17)), "byte 0"));
}

TEST_F(Queries, wrong_words_are_told_with_their_place_and_near_ones) {
  const std::string column = error("SELECT name,\n durr FROM events");
  EXPECT_TRUE(has(column, "no column durr in events (line 2, character 2)")) << column;
  EXPECT_TRUE(has(column, "did you mean dur?")) << column;
  const std::string table = error("SELECT * FROM evnts");
  EXPECT_TRUE(has(table, "a trace has no table evnts")) << table;
  EXPECT_TRUE(has(table, "did you mean events?")) << table;
  EXPECT_TRUE(has(error("SELECT medan(dur) FROM events"), "median"));
  EXPECT_TRUE(has(error("SELECT name form events"), "line 1, character")) << error("SELECT name form events");
  const std::string quoted = error("SELECT * FROM events WHERE category = \"kernel\"");
  EXPECT_TRUE(has(quoted, "'kernel'")) << quoted;
}

TEST_F(Queries, broken_queries_are_refused_and_never_more) {
  for (const char* sql : {"SELECT",
                          "SELECT FROM",
                          "SELECT * FROM",
                          "SELECT * FROM events WHERE",
                          "SELECT ((((((",
                          "))",
                          "'",
                          "\"",
                          "`",
                          "[",
                          "/*",
                          "SELECT 'abc",
                          "SELECT * FROM events ORDER",
                          "SELECT * FROM events LIMIT x",
                          "SELECT count(*",
                          "WITH x AS SELECT 1",
                          "SELECT * FROM events JOIN",
                          "SELECT * FROM events WHERE name LIKE",
                          "SELECT ?1 +",
                          "SELECT id id id FROM events",
                          "SELECT *, FROM events",
                          "\xff\xfe",
                          "SELECT \xff FROM events",
                          "🙂",
                          "SELECT 1e999e9",
                          "SELECT * FROM events(1, 2)",
                          "SELECT sum(dur OVER () FROM events",
                          "SELECT median(dur) OVER () FROM events",
                          "SELECT percentile(dur, 200) FROM events",
                          "SELECT abs(-9223372036854775808)",
                          "SELECT json_extract('{', '$')",
                          "SELECT zeroblob(999999999999)",

                          "SELECT max(count(*)) FROM events",
                          "SELECT 1 UNION SELECT 1, 2",
                          "SELECT rowid2 FROM events"})
    EXPECT_GT(error(sql).size(), 10u) << sql;
  // What is odd and yet a query.
  EXPECT_EQ(rows(base, "SELECT rowid, * FROM events WHERE rowid = 2").size(), 1u);
  EXPECT_EQ(QueryResult::text_of(one(base, "SELECT x'00ff'")), "x'00ff'");
  EXPECT_EQ(QueryResult::text_of(one(base, "SELECT 9e999")), "inf");
  std::string deep = "SELECT ";
  for (int i = 0; i < 5000; ++i) deep += "(";
  EXPECT_NE(error(deep), "no error");
}

TEST_F(Queries, columns_have_the_units_of_what_they_are_named_after) {
  using tracing::Unit;
  const auto columns =
      base.run(
              "SELECT id, name, dur, sum(dur), avg(e.start), count(*), dur * 2 AS twice, dur AS \"end\" "
              "FROM events e")
          .columns;
  const std::optional<Unit> none;
  EXPECT_EQ(columns[2].unit, Unit::nanoseconds);
  EXPECT_EQ(columns[3].unit, Unit::nanoseconds);
  EXPECT_EQ(columns[4].unit, Unit::time);
  EXPECT_EQ(columns[5].unit, none);
  EXPECT_EQ(columns[6].unit, none);
  EXPECT_EQ(columns[7].unit, none) << "a column that the query does not read lends no unit";
  EXPECT_EQ(columns[0].leads, QueryColumn::Leads::event);
  EXPECT_TRUE(columns[0].number);
  EXPECT_FALSE(columns[1].number);
  const auto two = base.run("SELECT e.id, t.id, 7 AS event, id AS run FROM events e JOIN threads t USING (id)").columns;
  EXPECT_EQ(two[0].leads, QueryColumn::Leads::nowhere) << "of which of the two it is the name does not tell";
  EXPECT_EQ(two[1].name, "id_2");
  EXPECT_EQ(two[2].leads, QueryColumn::Leads::event);
}

TEST_F(Queries, rows_are_limited_and_more_are_told) {
  QueryOptions few;
  few.max_rows = 3;
  QueryResult r = base.run("SELECT id FROM events", few);
  EXPECT_EQ(r.rows.size(), 3u);
  EXPECT_TRUE(r.more);
  EXPECT_TRUE(has(r.said(), "the first 3 rows, there are more,")) << r.said();
  few.max_rows = 4;
  r = base.run("SELECT id FROM events", few);
  EXPECT_EQ(r.rows.size(), 4u);
  EXPECT_FALSE(r.more);
  EXPECT_TRUE(has(r.said(), "4 rows in ")) << r.said();
}

TEST_F(Queries, an_endless_one_is_stopped_by_its_limit_or_by_hand) {
  QueryOptions limited;
  limited.limit_s = 1e-3;
  EXPECT_TRUE(has(message_of([&] { base.run(kEndless, limited); }), "was stopped after 0.001 s"));
  int asked = 0;
  QueryOptions by_hand;
  by_hand.limit_s = 0;
  by_hand.cancelled = [&] { return ++asked > 3; };
  EXPECT_EQ(message_of([&] { base.run(kEndless, by_hand); }), "cancelled");
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(number(base, "SELECT count(*) FROM events"), 4);
}

TEST_F(Queries, medians_and_percentiles) {
  EXPECT_EQ(text(rows(base,
                      "SELECT median(column1), percentile(column1, 100), percentile(column1, 25) FROM (VALUES "
                      "(4), (1), (3), (2), (NULL))")
                     .at(0)),
            "2.5|4|1.75");
  EXPECT_EQ(text(rows(base, "SELECT median(dur) FROM events WHERE id < 0").at(0)), "");
  EXPECT_EQ(text(rows(base, "SELECT name, median(dur) FROM events WHERE kind = 'cpu op' GROUP BY name").at(0)),
            "a|7000");
}

TEST(SqlText, is_read_as_far_as_messages_need_it) {
  EXPECT_EQ(sql_names("SELECT e.Dur FROM [events] e -- durr\nWHERE x = 'kind' AND \"id\" = 3"),
            (std::vector<std::string>{"select", "e", "dur", "from", "events", "e", "where", "x", "and", "id", "3"}));
  EXPECT_TRUE(in_sql_text("SELECT 'ab", 10));
  EXPECT_FALSE(in_sql_text("SELECT 'ab' ", 12));
  EXPECT_FALSE(in_sql_text("SELECT 'ab'", 11));
  EXPECT_TRUE(in_sql_text("SELECT 1 -- a", 13));
  EXPECT_FALSE(in_sql_text("SELECT 1 -- a\nFROM", 18));
  EXPECT_TRUE(in_sql_text("/* a", 4));
  EXPECT_EQ(sql_place("a\nbc", 3), "line 2, character 2");
  EXPECT_EQ(sql_place("µ=", 2), "line 1, character 2");
}

TEST(QueryTables, a_new_one_is_added_by_one_definition) {
  RegistryScope scope("a test");
  using Numbers = QueryList<int64_t>;
  register_query_table(
      QueryKind::trace,
      {"squares", 99, "of the first numbers",
       QueryColumns<Numbers>()
           .add(
               "n", tracing::Unit::count, "the number", [](const Numbers& r, int64_t i, QueryCell& c) { c.put(r[i]); },
               QueryColumn::Found::unique)
           .add("square", tracing::Unit::number, "its square",
                [](const Numbers& r, int64_t i, QueryCell& c) { c.put(static_cast<double>(r[i] * r[i])); }),
       [](const QuerySubject&) -> std::unique_ptr<QueryRows> {
         return std::make_unique<Numbers>(std::vector<int64_t>{1, 2, 5, 8});
       }});
  scope.close();
  QueryBase base({.trace = four_events()});
  EXPECT_EQ(text(rows(base, "SELECT * FROM squares WHERE n = 5").at(0)), "5|25");
  EXPECT_EQ(rows(base, "SELECT 1 FROM squares WHERE n > 1 AND n <= 5").size(), 2u);
}

TEST(QueryTables, what_a_table_cannot_read_is_an_error_in_its_words) {
  RegistryScope scope("a test");
  register_query_table(QueryKind::trace,
                       {"broken", 98, "throws",
                        QueryColumns<QueryList<int>>().add(
                            "x", tracing::Unit::count, "nothing",
                            [](const QueryList<int>&, int64_t, QueryCell&) { throw Error("the disk is gone"); }),
                        [](const QuerySubject&) -> std::unique_ptr<QueryRows> {
                          return std::make_unique<QueryList<int>>(std::vector<int>{1});
                        }});
  scope.close();
  QueryBase base({.trace = four_events()});
  EXPECT_TRUE(has(error_of([&] { base.run("SELECT x FROM broken"); }), "the disk is gone"));
}

}  // namespace
}  // namespace tenon::projects
