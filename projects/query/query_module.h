#pragma once
#include <memory>

#include "projects/query/query_table.h"

struct sqlite3;

namespace tenon::projects {

/// A table as SQLite reads it. Lives longer than the connection that knows it.
struct QueryModule {
  const QueryTable& table;
  const QuerySubject& subject;
  std::unique_ptr<QueryRows> rows = {};  ///< made where a query first asks it
};
/// The connection finds the table by its name; nothing is created in it. Throws Error where it cannot be added.
void add_query_module(sqlite3* db, QueryModule& module);

}  // namespace tenon::projects
