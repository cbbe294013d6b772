#include "views/query/query_completion.h"

#include <algorithm>
#include <cctype>

#include "projects/query/sql_text.h"
#include "views/shared/format.h"

namespace tenon::views {

using projects::QueryColumn;
using projects::QueryTable;

namespace {
bool part_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80); }

/// The word of SQL that stands before a place, in lower case: "from".
std::string word_before(std::string_view sql, size_t place) {
  while (place > 0 && std::isspace(static_cast<unsigned char>(sql[place - 1]))) --place;
  size_t begin = place;
  while (begin > 0 && part_of_word(sql[begin - 1])) --begin;
  return lower(std::string(sql.substr(begin, place - begin)));
}
}  // namespace

Completion complete_query(projects::QueryKind kind, std::string_view sql, size_t cursor) {
  cursor = std::min(cursor, sql.size());
  Completion out;
  out.begin = cursor;
  while (out.begin > 0 && part_of_word(sql[out.begin - 1])) --out.begin;
  const std::string typed(sql.substr(out.begin, cursor - out.begin)), low = lower(typed);
  const bool behind_dot = out.begin > 0 && sql[out.begin - 1] == '.';
  if (projects::in_sql_text(sql, cursor) || (typed.empty() && !behind_dot)) return out;
  const auto add = [&](const std::string& word) {
    const std::string as = lower(word);
    if (as == low) out.whole = true;
    if (as.size() > low.size() && as.starts_with(low) &&
        std::find(out.words.begin(), out.words.end(), word) == out.words.end())
      out.words.push_back(word);
  };
  const std::vector<std::string> names = projects::sql_names(sql);
  std::vector<const QueryTable*> named, all;
  for (const QueryTable& t : projects::query_tables(kind)) {
    all.push_back(&t);
    if (std::find(names.begin(), names.end(), t.name) != names.end()) named.push_back(&t);
  }
  const std::string before = word_before(sql, out.begin);
  const bool wants_table = before == "from" || before == "join";
  if (wants_table)
    for (const QueryTable* t : all) add(t->name);
  for (const QueryTable* t : named.empty() ? all : named)
    for (const QueryColumn& c : t->columns) add(c.name);
  if (behind_dot) return out;
  for (const QueryTable* t : all) add(t->name);
  for (const std::string& f : projects::sql_functions()) add(f);
  // Capitals for those who write them.
  const bool capitals = !typed.empty() && std::isupper(static_cast<unsigned char>(typed[0]));
  for (const std::string& k : projects::sql_keywords()) add(capitals ? k : lower(k));
  return out;
}

}  // namespace tenon::views
