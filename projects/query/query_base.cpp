#include "projects/query/query_base.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <set>

#include "core/error.h"
#include "projects/query/query_functions.h"
#include "projects/query/query_module.h"
#include "projects/query/sql_text.h"

// Note [A query only reads]
// The connection is to an empty database in memory: the document's tables are looked at through it, and there is
// nothing else that a query could reach. SQLite asks the authorizer for every table, function and action while it
// prepares a statement; only what is listed there is allowed, so that what a later SQLite can do is refused too.
namespace tenon::projects {

using Leads = QueryColumn::Leads;

namespace {

using QueryClock = std::chrono::steady_clock;

double seconds_since(QueryClock::time_point begin) {
  return std::chrono::duration<double>(QueryClock::now() - begin).count();
}

/// Tables of SQLite's own that only look at values or at the tables' columns.
constexpr std::string_view kHarmlessTables[] = {"json_each", "json_tree", "pragma_table_info"};
bool harmless_pragma(std::string_view name) { return name == "table_info" || name == "function_list"; }
bool harmful_function(std::string_view name) { return name == "load_extension" || name == "fts3_tokenizer"; }

/// `sum(e.dur)` and its like are named after "dur"; another name is its own.
std::string named_after(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* function : {"sum(", "min(", "max(", "avg(", "total(", "median(", "percentile("})
    if (name.starts_with(function) && name.ends_with(")")) {
      name = name.substr(std::strlen(function), name.size() - std::strlen(function) - 1);
      name = name.substr(0, name.find(','));
    }
  if (const size_t dot = name.rfind('.'); dot != name.npos) name = name.substr(dot + 1);
  return name;
}

}  // namespace

struct QueryBase::Impl {
  QuerySubject subject;
  QueryKind kind;
  std::vector<std::unique_ptr<QueryModule>> modules;
  sqlite3* db = nullptr;

  // Of the query at work.
  std::set<std::pair<const QueryTable*, const QueryColumn*>> reads;
  std::string refused;
  const QueryOptions* options = nullptr;  ///< of the last one afterwards: nothing runs then that would ask it
  QueryClock::time_point begin;
  bool cancelled = false, late = false;

  const QueryTable* table(std::string_view name) const;
  int authorize(int action, const char* a, const char* b, const char* database);
  void connect();
  bool stops();
  [[noreturn]] void fail(const std::string& sql, size_t from) const;
  std::string near_columns(const std::string& wrong, const std::string& sql, std::string& where) const;
  sqlite3_stmt* prepare(const std::string& sql);
  void name_columns(sqlite3_stmt* s, QueryResult& result) const;
};

const QueryTable* QueryBase::Impl::table(std::string_view wanted) const {
  for (const auto& m : modules)
    if (sqlite3_stricmp(m->table.name.c_str(), std::string(wanted).c_str()) == 0) return &m->table;
  return nullptr;
}

/// SQLite makes a virtual table known where it is named first, in steps that look like writing. All that a query may
/// name are made known before anything is refused.
void QueryBase::Impl::connect() {
  std::vector<std::string> names(std::begin(kHarmlessTables), std::end(kHarmlessTables));
  for (const auto& m : modules) names.push_back(m->table.name);
  for (const std::string& name : names)
    if (sqlite3_exec(db, ("PRAGMA table_info(" + name + ")").c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
      throw Error(fmt::format("the table {} cannot be asked: {}", name, sqlite3_errmsg(db)));
}

int QueryBase::Impl::authorize(int action, const char* a, const char* b, const char* database) {
  const std::string first = a ? a : "", second = b ? b : "";
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_READ:
      if (!database) return SQLITE_OK;  // of the query itself: a WITH or a subquery
      if (const QueryTable* t = table(first)) {
        if (const QueryColumn* c = t->column(second)) reads.emplace(t, c);
        return SQLITE_OK;
      }
      if (std::find(std::begin(kHarmlessTables), std::end(kHarmlessTables), first) != std::end(kHarmlessTables))
        return SQLITE_OK;
      refused = fmt::format("{} is none of the tables of a {}", first, name(kind));
      return SQLITE_DENY;
    case SQLITE_FUNCTION:
      if (!harmful_function(second)) return SQLITE_OK;
      refused = fmt::format("a query cannot call {}()", second);
      return SQLITE_DENY;
    case SQLITE_PRAGMA:
      if (harmless_pragma(first)) return SQLITE_OK;
      refused = fmt::format("a query only reads: PRAGMA {} is refused", first);
      return SQLITE_DENY;
    case SQLITE_ATTACH:
      refused = "a query reads the document that is open, and no other file: ATTACH is refused";
      return SQLITE_DENY;
    default:
      refused = "a query only reads: what would change, make or delete something is refused";
      return SQLITE_DENY;
  }
}

bool QueryBase::Impl::stops() {
  if (!options) return false;
  cancelled = options->cancelled && options->cancelled();
  late = options->limit_s > 0 && seconds_since(begin) > options->limit_s;
  return cancelled || late;
}

QueryBase::QueryBase(QuerySubject subject) : impl_(std::make_unique<Impl>()) {
  Impl& m = *impl_;
  m.subject = std::move(subject);
  m.kind = kind_of(m.subject);
  if (sqlite3_open_v2(":memory:", &m.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr) !=
      SQLITE_OK) {
    sqlite3_close_v2(m.db);
    throw Error("SQLite has no memory for a query");
  }
  try {
    for (const QueryTable& t : query_tables(m.kind)) {
      m.modules.push_back(std::make_unique<QueryModule>(QueryModule{t, m.subject}));
      add_query_module(m.db, *m.modules.back());
    }
    m.connect();
  } catch (...) {
    sqlite3_close_v2(m.db);
    throw;
  }
  add_query_functions(m.db);
  for (const auto& [setting, on] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
                                    {SQLITE_DBCONFIG_DQS_DML, 0},
                                    {SQLITE_DBCONFIG_DQS_DDL, 0}})
    sqlite3_db_config(m.db, setting, on, nullptr);
  sqlite3_limit(m.db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(m.db, SQLITE_LIMIT_LENGTH, 64 << 20);  // of one value: no query needs the memory of the machine
  sqlite3_limit(m.db, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_set_authorizer(
      m.db,
      [](void* self, int action, const char* a, const char* b, const char* database, const char*) {
        return static_cast<Impl*>(self)->authorize(action, a, b, database);
      },
      &m);
  sqlite3_progress_handler(
      m.db, 4000, [](void* self) { return static_cast<int>(static_cast<Impl*>(self)->stops()); }, &m);
}

QueryBase::~QueryBase() { sqlite3_close_v2(impl_->db); }

QueryKind QueryBase::kind() const { return impl_->kind; }

/// Columns near a wrong name, of the tables that the query names; of all where it names none. `where`: "events", where
/// it is one table.
std::string QueryBase::Impl::near_columns(const std::string& wrong, const std::string& sql, std::string& where) const {
  const std::vector<std::string> words = sql_names(sql);
  std::vector<std::string> columns;
  std::vector<const QueryTable*> named;
  for (const auto& m : modules)
    if (std::find(words.begin(), words.end(), m->table.name) != words.end()) named.push_back(&m->table);
  if (named.size() == 1) where = named[0]->name;
  if (named.empty())
    for (const auto& m : modules) named.push_back(&m->table);
  for (const QueryTable* t : named)
    for (const QueryColumn& c : t->columns) columns.push_back(c.name);
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  if (std::string near = near_names(wrong, columns.data(), columns.size()); !near.empty()) return near;
  if (where.empty()) return "`tenon query FILE --tables` lists the tables and their columns.";
  std::string all;
  for (const QueryColumn& c : named[0]->columns) all += (all.empty() ? "" : ", ") + c.name;
  return "Its columns: " + all;
}

/// What SQLite said last, in words, with its place. The statement began at `from`.
void QueryBase::Impl::fail(const std::string& sql, size_t from) const {
  const std::string said = sqlite3_errmsg(db);
  const int offset = sqlite3_error_offset(db);
  const std::string at =
      offset >= 0 ? fmt::format(" ({})", sql_place(sql, from + static_cast<size_t>(offset))) : std::string();
  if (!refused.empty())
    throw Error::usage(refused + at, refused.find(" is none of ") != refused.npos
                                         ? "`tenon query FILE --tables` lists them."
                                         : "Take SELECT, WITH, VALUES or EXPLAIN. The document is never changed.");
  const auto behind = [&](const char* words) { return said.substr(std::strlen(words)); };
  if (said.starts_with("no such column: ")) {
    std::string wrong = behind("no such column: "), where;
    if (const size_t dot = wrong.rfind('.'); dot != wrong.npos) wrong = wrong.substr(dot + 1);
    std::string hint = near_columns(wrong, sql, where);
    if (const size_t quoted = offset >= 0 ? from + static_cast<size_t>(offset) : sql.size();
        quoted < sql.size() && sql[quoted] == '"')
      hint = "A text stands in single quotes: '" + wrong + "'.";
    throw Error::usage(fmt::format("there is no column {}{}{}", wrong, where.empty() ? "" : " in " + where, at), hint);
  }
  if (said.starts_with("no such table: ")) {
    std::vector<std::string> names;
    std::string all;
    for (const auto& m : modules) {
      names.push_back(m->table.name);
      all += (all.empty() ? "" : ", ") + m->table.name;
    }
    const std::string wrong = behind("no such table: "), near = near_names(wrong, names.data(), names.size());
    throw Error::usage(fmt::format("a {} has no table {}{}", name(kind), wrong, at),
                       near.empty() ? "Its tables: " + all : near);
  }
  if (said.starts_with("no such function: ")) {
    const std::string wrong = behind("no such function: ");
    const auto& all = sql_functions();
    throw Error::usage(fmt::format("there is no function {}(){}", wrong, at),
                       near_names(wrong, all.data(), all.size()));
  }
  throw Error::usage(fmt::format("the query cannot be answered: {}{}", said, at),
                     said.ends_with("syntax error")
                         ? "A name that is a word of SQL as well stands in \"double quotes\", a text in 'single' ones."
                         : "");
}

/// The one statement of the text.
sqlite3_stmt* QueryBase::Impl::prepare(const std::string& sql) {
  if (const size_t nul = sql.find('\0'); nul != sql.npos)
    throw Error::usage(fmt::format("the query holds a byte 0 ({})", sql_place(sql, nul)), "SQL is text.");
  reads.clear();
  refused.clear();
  sqlite3_stmt* statement = nullptr;
  const char* at = sql.c_str();
  while (!statement && *at) {
    const char* rest = at;
    if (sqlite3_prepare_v2(db, at, -1, &statement, &rest) != SQLITE_OK)
      fail(sql, static_cast<size_t>(at - sql.c_str()));
    at = rest;
  }
  if (!statement) throw Error::usage("there is no query", "For example: SELECT * FROM " + modules[0]->table.name);
  const auto of_first = reads;
  while (*at) {
    const char* rest = at;
    sqlite3_stmt* second = nullptr;
    const bool empty = sqlite3_prepare_v2(db, at, -1, &second, &rest) == SQLITE_OK && !second;
    sqlite3_finalize(second);
    if (!empty) {
      sqlite3_finalize(statement);
      while (std::isspace(static_cast<unsigned char>(*at))) ++at;
      throw Error::usage(fmt::format("a query is one statement, and a second one begins at {}",
                                     sql_place(sql, static_cast<size_t>(at - sql.c_str()))),
                         "Ask them one after the other.");
    }
    at = rest;
  }
  reads = of_first;
  if (!sqlite3_stmt_readonly(statement) || sqlite3_column_count(statement) == 0) {
    sqlite3_finalize(statement);
    throw Error::usage("a query only reads: this one would give no rows", "Take SELECT, WITH, VALUES or EXPLAIN.");
  }
  return statement;
}

void QueryBase::Impl::name_columns(sqlite3_stmt* s, QueryResult& result) const {
  std::set<std::string> taken;
  for (int i = 0; i < sqlite3_column_count(s); ++i) {
    const char* given = sqlite3_column_name(s, i);
    QueryResult::Column column{given ? given : "", {}};
    const std::string after = named_after(column.name);
    bool first = true;
    for (const auto& [t, c] : reads) {
      if (sqlite3_stricmp(c->name.c_str(), after.c_str()) != 0) continue;
      const bool agrees = first || column.unit == c->unit;
      column.unit = agrees ? std::optional(c->unit) : std::nullopt;
      // What was summed up leads nowhere.
      const Leads leads = after.size() == column.name.size() ? c->leads : Leads::nowhere;
      column.leads = first || column.leads == leads ? leads : Leads::nowhere;
      first = false;
    }
    if (after == "event") column.leads = Leads::event;
    if (after == "node" && kind == QueryKind::model) column.leads = Leads::node;
    if (after == "run") column.leads = Leads::run;
    if (after == "step") column.leads = Leads::step;
    for (int n = 2; !taken.insert(column.name).second; ++n) column.name = fmt::format("{}_{}", given, n);
    result.columns.push_back(std::move(column));
  }
}

namespace {
QueryValue value_at(sqlite3_stmt* s, int column) {
  switch (sqlite3_column_type(s, column)) {
    case SQLITE_INTEGER:
      return static_cast<int64_t>(sqlite3_column_int64(s, column));
    case SQLITE_FLOAT:
      return sqlite3_column_double(s, column);
    case SQLITE_NULL:
      return {};
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const unsigned char*>(sqlite3_column_blob(s, column));
      std::string text = "x'";
      for (int i = 0; i < sqlite3_column_bytes(s, column); ++i) text += fmt::format("{:02x}", bytes[i]);
      return text + "'";
    }
    default:
      return std::string(reinterpret_cast<const char*>(sqlite3_column_text(s, column)),
                         static_cast<size_t>(sqlite3_column_bytes(s, column)));
  }
}
}  // namespace

QueryResult QueryBase::run(const std::string& sql, const QueryOptions& options) {
  Impl& m = *impl_;
  m.options = &options;
  m.begin = QueryClock::now();
  m.cancelled = m.late = false;
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(m.prepare(sql), sqlite3_finalize);
  QueryResult result;
  m.name_columns(statement.get(), result);
  std::vector<bool> text(result.columns.size()), number(result.columns.size());
  for (;;) {
    const int code = sqlite3_step(statement.get());
    if (code == SQLITE_DONE) break;
    if (code != SQLITE_ROW) {
      if (m.cancelled) throw Error("cancelled");
      if (m.late)
        throw Error(fmt::format("the query was stopped after {:.3g} s, its limit", options.limit_s),
                    "Narrow it by WHERE, or give it more time (--limit-s).");
      m.fail(sql, 0);
    }
    if (options.max_rows > 0 && static_cast<int64_t>(result.rows.size()) == options.max_rows) {
      result.more = true;
      break;
    }
    auto& row = result.rows.emplace_back();
    row.reserve(result.columns.size());
    for (size_t c = 0; c < result.columns.size(); ++c) {
      row.push_back(value_at(statement.get(), static_cast<int>(c)));
      if (std::holds_alternative<std::string>(row.back()))
        text[c] = true;
      else if (row.back().index() != 0)
        number[c] = true;
    }
  }
  for (size_t c = 0; c < result.columns.size(); ++c) {
    result.columns[c].number = number[c] && !text[c];
    // A name is no promise: a text has no unit.
    if (text[c]) result.columns[c].unit.reset();
  }
  result.seconds = seconds_since(m.begin);
  return result;
}

std::string QueryResult::said() const {
  const std::string count =
      tracing::count_text(static_cast<int64_t>(rows.size())) + (rows.size() == 1 ? " row" : " rows");
  return fmt::format("{}{} in {}", more ? "the first " : "", count + (more ? ", there are more," : ""),
                     tracing::nanoseconds_text(seconds * 1e9));
}

std::string QueryResult::text_of(const QueryValue& value) {
  if (const auto* n = std::get_if<int64_t>(&value)) return std::to_string(*n);
  if (const auto* x = std::get_if<double>(&value)) return fmt::format("{}", *x);
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  return {};
}

}  // namespace tenon::projects
