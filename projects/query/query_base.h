#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "projects/query/query_table.h"

namespace tenon::projects {

struct QueryOptions {
  int64_t max_rows = 10000;  ///< that are fetched; 0: all
  double limit_s = 60;       ///< seconds after which it is stopped; 0: never
  std::function<bool()> cancelled;
};

/// What a query came to. Numbers are exact: nanoseconds and bytes are whole.
struct QueryResult {
  struct Column {
    std::string name;  ///< no two have the same
    /// Of the column of a table that the query reads and this one is named after, `sum(dur)` and the like after dur;
    /// nothing where there is none, or several that disagree.
    std::optional<tracing::Unit> unit;
    QueryColumn::Leads leads = QueryColumn::Leads::nowhere;
    bool number = false;  ///< every value that is not NULL is one
  };
  std::vector<Column> columns;
  std::vector<std::vector<QueryValue>> rows;
  bool more = false;  ///< there are rows beyond max_rows
  double seconds = 0;

  /// "1,240 rows in 310 ms", "the first 10,000 rows, there are more, in ..."
  std::string said() const;
  /// The exact text of a value; NULL is empty.
  static std::string text_of(const QueryValue& value);
};

/// Answers SQL (SQLite's) about one document. Only tables of the document are there, and a query can only read: what
/// writes, attaches, loads or changes settings is refused, and so is a second statement. Used by one thread at a time.
/// What a table read or worked out when it was first named is kept for the next query.
class QueryBase {
 public:
  explicit QueryBase(QuerySubject subject);
  ~QueryBase();
  QueryBase(const QueryBase&) = delete;
  QueryKind kind() const;
  /// Throws Error (usage) that names the place in the text and near names where the words are wrong, and Error where
  /// the time ran out; "cancelled" where it was.
  QueryResult run(const std::string& sql, const QueryOptions& options = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::projects
