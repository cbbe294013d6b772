#pragma once

struct sqlite3;

namespace tenon::projects {

/// What SQLite has not: median(x), and percentile(x, p) with p from 0 to 100, between two values linear.
void add_query_functions(sqlite3* db);

}  // namespace tenon::projects
