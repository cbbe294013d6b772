#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "projects/query/query_base.h"

namespace tenon::projects::testing_query {

using Row = std::vector<QueryValue>;

inline std::vector<Row> rows(QueryBase& base, const std::string& sql) { return base.run(sql, {.max_rows = 0}).rows; }
/// The one value of a query that gives one.
inline QueryValue one(QueryBase& base, const std::string& sql) {
  const auto all = rows(base, sql);
  EXPECT_EQ(all.size(), 1u) << sql;
  return all.empty() || all[0].empty() ? QueryValue() : all[0][0];
}
inline int64_t number(QueryBase& base, const std::string& sql) {
  const QueryValue v = one(base, sql);
  EXPECT_TRUE(std::holds_alternative<int64_t>(v)) << sql;
  return std::holds_alternative<int64_t>(v) ? std::get<int64_t>(v) : -1;
}
/// A row as text, with | between its values.
inline std::string text(const Row& row) {
  std::string all;
  for (size_t c = 0; c < row.size(); ++c) all += (c ? "|" : "") + QueryResult::text_of(row[c]);
  return all;
}
/// A condition that helps to find rows gives those that `looked` gives, for which every row is looked at.
inline void expect_narrowed(QueryBase& base, const std::string& table, const std::string& where,
                            const std::string& looked) {
  auto quick = rows(base, "SELECT * FROM " + table + " WHERE " + where);
  auto slow = rows(base, "SELECT * FROM " + table + " WHERE " + looked);
  std::sort(quick.begin(), quick.end());  // without ORDER BY a query promises no order
  std::sort(slow.begin(), slow.end());
  EXPECT_EQ(quick, slow) << where;
}

}  // namespace tenon::projects::testing_query
