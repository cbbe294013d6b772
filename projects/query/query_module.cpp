#include "projects/query/query_module.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

// Note [Rows without copies]
// Each table is a virtual table of SQLite over what the document holds in memory. SQLite asks how it may narrow the
// rows (best_index), begins a walk with the values it narrows them by (filter), and asks for one cell at a time. What
// narrows is a help alone: SQLite tests every row again, so that a walk may only ever find too many.
namespace tenon::projects {
namespace {

using Found = QueryColumn::Found;

struct RowsTable : sqlite3_vtab {
  QueryModule* of = nullptr;
};
struct RowsCursor : sqlite3_vtab_cursor {
  int64_t row = 0, end = 0;
  QueryRows::Scan scan;
  QueryCell cell;
};

QueryModule& module_of(sqlite3_vtab* t) { return *static_cast<RowsTable*>(t)->of; }
QueryModule& module_of(sqlite3_vtab_cursor* c) { return module_of(c->pVtab); }

/// What was thrown, where SQLite finds it: no exception may go through its C.
int failed(char*& message) {
  const Error e = caught_error();
  sqlite3_free(message);
  message = sqlite3_mprintf("%s", e.message().c_str());
  return SQLITE_ERROR;
}

int connect_rows(sqlite3* db, void* aux, int, const char* const*, sqlite3_vtab** out, char** message) {
  try {
    auto& module = *static_cast<QueryModule*>(aux);
    std::string columns;
    for (const QueryColumn& c : module.table.columns)
      columns += fmt::format("{}\"{}\" {}", columns.empty() ? "" : ", ", c.name, c.type());
    if (const int code = sqlite3_declare_vtab(db, ("CREATE TABLE x(" + columns + ")").c_str()); code != SQLITE_OK)
      return code;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    auto* table = new RowsTable;
    table->of = &module;
    *out = table;
    return SQLITE_OK;
  } catch (...) {
    return failed(*message);
  }
}
int disconnect_rows(sqlite3_vtab* t) {
  delete static_cast<RowsTable*>(t);
  return SQLITE_OK;
}

/// The letter of a test in a plan; 0: rows are not found by it.
char plan_letter(unsigned char op) {
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
      return '=';
    case SQLITE_INDEX_CONSTRAINT_LT:
      return '<';
    case SQLITE_INDEX_CONSTRAINT_LE:
      return 'l';
    case SQLITE_INDEX_CONSTRAINT_GT:
      return '>';
    case SQLITE_INDEX_CONSTRAINT_GE:
      return 'g';
    default:
      return 0;
  }
}
QueryTest::Op op_of_letter(char letter) {
  switch (letter) {
    case '<':
      return QueryTest::Op::less;
    case 'l':
      return QueryTest::Op::less_equal;
    case '>':
      return QueryTest::Op::greater;
    case 'g':
      return QueryTest::Op::greater_equal;
    default:
      return QueryTest::Op::equal;
  }
}

/// The plan is a text: a letter and the number of its column for every value that filter_rows() is given.
int best_index(sqlite3_vtab* t, sqlite3_index_info* info) try {
  QueryModule& module = module_of(t);
  const auto& columns = module.table.columns;
  if (!module.rows) module.rows = module.table.rows(module.subject);
  const double all = std::max(1.0, module.rows->count());
  double rows = all, looked_at = all;
  std::string plan;
  int values = 0;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& c = info->aConstraint[i];
    if (!c.usable || c.iColumn < 0) continue;
    const QueryColumn& column = columns[static_cast<size_t>(c.iColumn)];
    const char letter = plan_letter(c.op);
    if (!letter || column.found == Found::by_looking) continue;
    if (column.is_text() && (letter != '=' || std::strcmp(sqlite3_vtab_collation(info, i), "BINARY") != 0)) continue;
    plan += fmt::format("{}{} ", letter, c.iColumn);
    info->aConstraintUsage[i].argvIndex = ++values;
    if (letter == '=') {
      rows = column.found == Found::unique ? 1 : rows / (column.found == Found::sorted ? 1000 : 50);
      looked_at = column.found == Found::scanned ? std::min(looked_at, all / 20 + rows) : std::min(looked_at, rows + 8);
      if (column.found == Found::unique) info->idxFlags |= SQLITE_INDEX_SCAN_UNIQUE;
    } else {
      rows /= 4;
      looked_at = std::min(looked_at, rows + 8);
    }
  }
  info->estimatedRows = static_cast<sqlite3_int64>(std::max(1.0, rows));
  info->estimatedCost = std::max(1.0, looked_at);
  if (info->nOrderBy == 1 && !info->aOrderBy[0].desc && info->aOrderBy[0].iColumn >= 0) {
    const Found found = columns[static_cast<size_t>(info->aOrderBy[0].iColumn)].found;
    info->orderByConsumed = found == Found::unique || found == Found::sorted;
  }
  info->idxStr = sqlite3_mprintf("%s", plan.c_str());
  info->needToFreeIdxStr = 1;
  return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
} catch (...) {
  return failed(t->zErrMsg);
}

int open_rows(sqlite3_vtab*, sqlite3_vtab_cursor** out) try {
  *out = new RowsCursor;
  return SQLITE_OK;
} catch (...) {
  return SQLITE_NOMEM;
}
int close_rows(sqlite3_vtab_cursor* c) {
  delete static_cast<RowsCursor*>(c);
  return SQLITE_OK;
}

QueryValue value_of_sqlite(sqlite3_value* v) {
  switch (sqlite3_value_type(v)) {
    case SQLITE_INTEGER:
      return static_cast<int64_t>(sqlite3_value_int64(v));
    case SQLITE_FLOAT:
      return sqlite3_value_double(v);
    case SQLITE_TEXT:
      return std::string(reinterpret_cast<const char*>(sqlite3_value_text(v)),
                         static_cast<size_t>(sqlite3_value_bytes(v)));
    default:
      return {};
  }
}

/// The first row of [from, end) whose cell of a sorted column is at least `least`.
int64_t first_at_least(const QueryRows& rows, const QueryColumn& column, int64_t from, int64_t end, int64_t least) {
  QueryCell cell;
  while (from < end) {
    const int64_t middle = from + (end - from) / 2;
    cell.clear();
    column.cell(rows, middle, cell);
    if (cell.integer() < least)
      from = middle + 1;
    else
      end = middle;
  }
  return from;
}

void settle_row(RowsCursor& c) {
  if (c.scan && c.row < c.end) c.row = c.scan(c.row);
}

int filter_rows(sqlite3_vtab_cursor* cursor, int, const char* plan, int count, sqlite3_value** values) try {
  auto& c = *static_cast<RowsCursor*>(cursor);
  const QueryModule& module = module_of(cursor);
  const QueryRows& rows = *module.rows;
  c.row = 0;
  c.end = rows.end();
  std::vector<QueryTest> scanned;
  for (int i = 0; i < count; ++i) {
    const char letter = *plan++;
    char* behind = nullptr;
    const QueryColumn& column = module.table.columns[std::strtoul(plan, &behind, 10)];
    plan = behind + 1;
    QueryTest test{column.name, op_of_letter(letter), value_of_sqlite(values[i])};
    if (column.found == Found::scanned) {
      scanned.push_back(std::move(test));
      continue;
    }
    int64_t low = INT64_MIN, high = INT64_MAX;
    test.narrow(low, high);
    if (low > INT64_MIN) c.row = first_at_least(rows, column, c.row, c.end, low);
    if (high < INT64_MAX) c.end = first_at_least(rows, column, c.row, c.end, high + 1);
  }
  c.scan = rows.scan(scanned);
  settle_row(c);
  return SQLITE_OK;
} catch (...) {
  return failed(cursor->pVtab->zErrMsg);
}

int next_row(sqlite3_vtab_cursor* cursor) try {
  auto& c = *static_cast<RowsCursor*>(cursor);
  ++c.row;
  settle_row(c);
  return SQLITE_OK;
} catch (...) {
  return failed(cursor->pVtab->zErrMsg);
}
int at_end(sqlite3_vtab_cursor* cursor) {
  const auto& c = *static_cast<RowsCursor*>(cursor);
  return c.row >= c.end;
}
int row_number(sqlite3_vtab_cursor* cursor, sqlite3_int64* out) {
  *out = static_cast<RowsCursor*>(cursor)->row;
  return SQLITE_OK;
}

int cell_of_row(sqlite3_vtab_cursor* cursor, sqlite3_context* to, int column) try {
  auto& c = *static_cast<RowsCursor*>(cursor);
  const QueryModule& module = module_of(cursor);
  c.cell.clear();
  module.table.columns[static_cast<size_t>(column)].cell(*module.rows, c.row, c.cell);
  switch (c.cell.kind()) {
    case QueryCell::Kind::integer:
      sqlite3_result_int64(to, c.cell.integer());
      break;
    case QueryCell::Kind::real:
      sqlite3_result_double(to, c.cell.real());
      break;
    case QueryCell::Kind::text: {
      const std::string_view text = c.cell.text();
      sqlite3_result_text64(to, text.empty() ? "" : text.data(), text.size(),
                            c.cell.stands() ? SQLITE_STATIC : SQLITE_TRANSIENT, SQLITE_UTF8);
      break;
    }
    case QueryCell::Kind::null:
      sqlite3_result_null(to);
      break;
  }
  return SQLITE_OK;
} catch (...) {
  sqlite3_result_error(to, caught_error().message().c_str(), -1);
  return SQLITE_ERROR;
}

const sqlite3_module& rows_module() {
  // Without xCreate a table is there by its name alone, and cannot be made or dropped; without xUpdate it is read-only.
  static const sqlite3_module module = [] {
    sqlite3_module m{};
    m.xConnect = connect_rows;
    m.xBestIndex = best_index;
    m.xDisconnect = disconnect_rows;
    m.xOpen = open_rows;
    m.xClose = close_rows;
    m.xFilter = filter_rows;
    m.xNext = next_row;
    m.xEof = at_end;
    m.xColumn = cell_of_row;
    m.xRowid = row_number;
    return m;
  }();
  return module;
}

}  // namespace

void add_query_module(sqlite3* db, QueryModule& module) {
  if (sqlite3_create_module_v2(db, module.table.name.c_str(), &rows_module(), &module, nullptr) != SQLITE_OK)
    throw Error(fmt::format("the table {} cannot be asked: {}", module.table.name, sqlite3_errmsg(db)));
}

}  // namespace tenon::projects
