// tenon query: SQL over a trace, a memory snapshot, a model file or a project.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "projects/query/query_base.h"
#include "views/query/query_page.h"
#include "views/shared/document.h"

namespace tenon::app {
namespace {

using projects::QueryColumn;
using projects::QueryKind;
using projects::QueryResult;
using projects::QuerySubject;
using projects::QueryTable;

QueryKind query_kind(const std::string& file, views::Document::Kind kind) {
  switch (kind) {
    case views::Document::Kind::trace:
      return QueryKind::trace;
    case views::Document::Kind::snapshot:
      return QueryKind::snapshot;
    case views::Document::Kind::project:
      return QueryKind::project;
    case views::Document::Kind::model:
      return QueryKind::model;
  }
  throw Error(file + " is nothing that can be asked");
}

QuerySubject open_subject(const std::string& file, views::Document::Kind kind) {
  if (kind == views::Document::Kind::project) return {.project = open_to_read(file)};
  Bar bar("reading");
  const views::Document d = views::read_document(file, kind, [&](uint64_t done, uint64_t total) {
    bar.show(static_cast<int64_t>(done), static_cast<int64_t>(total));
    return !interrupted();
  });
  views::keep_read(d);
  need_one_trace(d);
  return {.trace = d.trace, .snapshot = d.snapshot, .model = d.model};
}

int list_tables(const Args& args, QueryKind kind) {
  std::vector<std::vector<std::string>> rows = {{"TABLE", "COLUMN", "TYPE", "UNIT", "WHAT"}};
  for (const QueryTable& t : projects::query_tables(kind)) {
    rows.push_back({t.name, "", "", "", t.help});
    for (const QueryColumn& c : t.columns) {
      const std::string unit = views::unit_word(c.unit);
      if (args.json())
        print_json({{"table", t.name}, {"column", c.name}, {"type", c.type()}, {"unit", unit}, {"help", c.help}});
      rows.push_back({"", c.name, c.type(), unit, c.help});
    }
  }
  if (args.json()) return 0;
  print(table(rows));
  for (const projects::QueryExample& e : projects::query_examples(kind))
    print(fmt::format("\n-- {}\n{};\n", e.title, e.sql));
  return 0;
}

nlohmann::json row_json(const QueryResult& result, const std::vector<projects::QueryValue>& row) {
  nlohmann::json j = nlohmann::json::object();
  for (size_t c = 0; c < row.size(); ++c) {
    nlohmann::json& value = j[result.columns[c].name];
    if (const auto* n = std::get_if<int64_t>(&row[c])) value = *n;
    if (const auto* x = std::get_if<double>(&row[c])) value = *x;
    if (const auto* text = std::get_if<std::string>(&row[c])) value = *text;
  }
  return j;
}

void print_rows(const Args& args, const QueryResult& result) {
  if (args.json()) {
    for (const auto& row : result.rows) print_json(row_json(result, row));
    return;
  }
  views::Table shown = views::make_table(result);
  if (args.has("--markdown")) return print(shown.markdown());
  if (args.has("--csv")) {  // for programs: columns are called as the query calls them
    for (size_t c = 0; c < shown.columns.size(); ++c) shown.columns[c].title = result.columns[c].name;
    return print(shown.csv());
  }
  for (auto& row : shown.rows)
    for (auto& cell : row.cells) cell.text = shortened(cell.text);
  std::vector<bool> right;
  print(table(rows_of(shown, right), right));
}

std::string text_of_query(const Args& args) {
  if (args.words() < 2)
    throw Error::usage("query wants words of SQL, or - to read them from standard input",
                       fmt::format("`tenon query {} --tables` lists what can be asked.", args.word(0)));
  if (args.word(1) != "-") return args.word(1);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

int query(const Args& args) {
  const std::string& file = args.word(0);
  const views::Document::Kind document = views::document_kind(file);
  const QueryKind kind = query_kind(file, document);
  if (args.has("--tables")) return list_tables(args, kind);
  const std::string sql = text_of_query(args);
  catch_interrupts();
  projects::QueryBase base(open_subject(file, document));
  const QueryResult result = base.run(sql, {.max_rows = args.integer("--limit", 10000, 0),
                                            .limit_s = args.number("--limit-s", 60, 0),
                                            .cancelled = [] { return interrupted(); }});
  print_rows(args, result);
  if (result.more)
    std::fputs(fmt::format("There are more rows than the first {}; --limit N gives more, --limit 0 all of them.\n",
                           count_text(static_cast<int64_t>(result.rows.size())))
                   .c_str(),
               stderr);
  return 0;
}

const bool registered_query = register_command(
    {"query",
     "FILE [SQL|-]",
     1,
     2,
     {{"--tables", "", "lists the tables and columns of such a file, with examples; asks nothing"},
      {"--csv", "", "comma-separated, every text whole and every number exact; NULL is empty"},
      {"--json", "", "a JSON object a row"},
      {"--markdown", "", "a table of Markdown"},
      {"--limit", "N", "rows at most (10,000); 0: all"},
      {"--limit-s", "SECONDS", "stops the query after so long (60); 0: never"}},
     "asks a trace, memory snapshot, model file or project in SQL (SQLite's): tenon query T.json \"select name, "
     "sum(dur) from events "
     "group by name\". It only reads; NaN is NULL",
     query});

}  // namespace
}  // namespace tenon::app
