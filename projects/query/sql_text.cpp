#include "projects/query/sql_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tenon::projects {
namespace {

bool in_sql_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80); }

/// A stretch of a query: a word, a quoted name, a text or comment, or a single other character.
struct SqlPiece {
  enum class Kind { word, name, text, other } kind = Kind::other;
  size_t begin = 0, end = 0;
};

SqlPiece sql_piece(std::string_view sql, size_t at) {
  using Kind = SqlPiece::Kind;
  const auto until = [&](std::string_view mark, size_t from) {
    const size_t end = sql.find(mark, from);
    return end == sql.npos ? sql.size() : end + mark.size();
  };
  const char c = sql[at];
  if (sql.substr(at, 2) == "--") return {Kind::text, at, until("\n", at)};
  if (sql.substr(at, 2) == "/*") return {Kind::text, at, until("*/", at + 2)};
  if (c == '\'' || c == '"' || c == '`') {
    size_t end = at + 1;
    while (end < sql.size() && (sql[end] != c || sql.substr(end, 2) == std::string(2, c))) end += sql[end] == c ? 2 : 1;
    return {c == '\'' ? Kind::text : Kind::name, at, std::min(end + 1, sql.size())};
  }
  if (c == '[') return {Kind::name, at, until("]", at)};
  size_t end = at;
  while (end < sql.size() && in_sql_word(sql[end])) ++end;
  return end > at ? SqlPiece{Kind::word, at, end} : SqlPiece{Kind::other, at, at + 1};
}

}  // namespace

std::vector<std::string> sql_names(std::string_view sql) {
  std::vector<std::string> names;
  for (size_t at = 0; at < sql.size();) {
    const SqlPiece p = sql_piece(sql, at);
    at = p.end;
    std::string_view word = sql.substr(p.begin, p.end - p.begin);
    if (p.kind == SqlPiece::Kind::name) word = word.substr(1, word.size() < 2 ? 0 : word.size() - 2);
    if (p.kind != SqlPiece::Kind::word && p.kind != SqlPiece::Kind::name) continue;
    std::string low(word);
    for (char& c : low) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    names.push_back(std::move(low));
  }
  return names;
}

bool in_sql_text(std::string_view sql, size_t place) {
  for (size_t at = 0; at < place && at < sql.size();) {
    const SqlPiece p = sql_piece(sql, at);
    // Behind its last character a text has ended; a comment of a line ends with the line, and one without an end never.
    if (p.kind == SqlPiece::Kind::text && place < p.end) return true;
    if (p.kind == SqlPiece::Kind::text && place == p.end && p.end == sql.size()) {
      const std::string_view text = sql.substr(p.begin);
      const bool closed = text.starts_with("'")    ? text.size() > 1 && text.back() == '\''
                          : text.starts_with("/*") ? text.size() > 3 && text.ends_with("*/")
                                                   : text.ends_with("\n");
      return !closed;
    }
    at = p.end;
  }
  return false;
}

std::string sql_place(std::string_view sql, size_t place) {
  const std::string_view before = sql.substr(0, std::min(place, sql.size()));
  const size_t line_begin = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  const std::string_view line = before.substr(line_begin);
  const auto characters = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
  return fmt::format("line {}, character {}", 1 + std::count(before.begin(), before.end(), '\n'), 1 + characters);
}

const std::vector<std::string>& sql_keywords() {
  static const std::vector<std::string> all = {
      "SELECT", "FROM", "WHERE",  "GROUP BY", "ORDER BY", "HAVING", "LIMIT",     "OFFSET",      "DISTINCT", "AS",
      "AND",    "OR",   "NOT",    "IN",       "LIKE",     "GLOB",   "BETWEEN",   "IS NULL",     "ASC",      "DESC",
      "JOIN",   "ON",   "USING",  "WITH",     "UNION",    "EXCEPT", "INTERSECT", "CASE",        "WHEN",     "THEN",
      "ELSE",   "END",  "EXISTS", "CAST",     "OVER",     "FILTER", "VALUES",    "PARTITION BY"};
  return all;
}

const std::vector<std::string>& sql_functions() {
  static const std::vector<std::string> all = {
      "count",        "sum",          "avg",       "min",    "max",    "total",    "median",  "percentile",
      "group_concat", "abs",          "round",     "iif",    "ifnull", "coalesce", "length",  "lower",
      "upper",        "substr",       "instr",     "printf", "like",   "glob",     "replace", "trim",
      "typeof",       "json_extract", "json_each", "lag",    "lead",   "rank",     "ntile",   "row_number"};
  return all;
}

}  // namespace tenon::projects
