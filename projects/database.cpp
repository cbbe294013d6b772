#include "projects/database.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tenon::projects {
namespace {

bool exists(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0;
}

/// A path as the body of a file: URI.
std::string uri(const std::string& path, const char* options) {
  std::string s = "file:";
  for (unsigned char c : path)
    if (c == '%' || c == '?' || c == '#' || c < 0x21 || c >= 0x7f)
      s += fmt::format("%{:02x}", c);
    else
      s += static_cast<char>(c);
  return s + options;
}

}  // namespace

Query::~Query() {
  if (!statement_) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

bool Query::next() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  db_.fail(sqlite3_extended_errcode(db_.handle_));
}

bool Query::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
int64_t Query::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Query::real(int column) const {
  return is_null(column) ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(statement_, column);
}
std::string Query::text(int column) const {
  const auto* s = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return s ? std::string(s, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : std::string();
}
Blob Query::blob(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  return {data, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

Query& Query::bind(int at, int64_t value) {
  sqlite3_bind_int64(statement_, at, value);
  return *this;
}
Query& Query::bind(int at, double value) {
  sqlite3_bind_double(statement_, at, value);  // a NaN becomes NULL
  return *this;
}
Query& Query::bind(int at, std::string_view value) {
  sqlite3_bind_text(statement_, at, value.data() ? value.data() : "", static_cast<int>(value.size()), SQLITE_TRANSIENT);
  return *this;
}
Query& Query::bind(int at, Blob value) {
  if (sqlite3_bind_blob64(statement_, at, value.data ? value.data : "", value.bytes, SQLITE_STATIC) == SQLITE_TOOBIG)
    throw Error(fmt::format("{}: {} bytes are more than one entry of a project can hold (1 GB)", db_.path_, value.bytes));
  return *this;
}

Database::Database(const std::string& path, Access access) : path_(path), access_(access) {
  struct stat st {};
  if (access != Access::create) {
    if (::stat(path.c_str(), &st) != 0)
      throw Error(fmt::format("{}: {}", path, std::strerror(errno)),
                  errno == ENOENT ? "Check the name, or make a project with `tenon new`." : "");
    if (S_ISDIR(st.st_mode)) throw Error(fmt::format("{} is a folder, not a project file", path));
  }
  try {
    open(false);
  } catch (const Error&) {
    // A database in WAL mode on a read-only folder can be read only as one that nobody changes: safe while no log lies beside it.
    if (access != Access::read_only || exists(path + "-wal")) throw;
    open(true);
  }
}

void Database::open(bool immutable) {
  if (handle_) sqlite3_close_v2(handle_);
  handle_ = nullptr;
  statements_.clear();
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
  flags |= access_ == Access::read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (access_ == Access::create) flags |= SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(uri(path_, immutable ? "?immutable=1" : "").c_str(), &handle_, flags, nullptr);
  try {
    if (code != SQLITE_OK) fail(handle_ ? sqlite3_extended_errcode(handle_) : code);
    sqlite3_extended_result_codes(handle_, 1);
    sqlite3_busy_timeout(handle_, 10000);
    if (access_ != Access::create) query("SELECT count(*) FROM sqlite_schema").next();
    script("PRAGMA foreign_keys = ON; PRAGMA secure_delete = OFF;");
  } catch (...) {
    for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
    statements_.clear();
    sqlite3_close_v2(handle_);
    handle_ = nullptr;
    throw;
  }
}

Database::~Database() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  if (handle_) sqlite3_close_v2(handle_);
}

sqlite3_stmt* Database::prepare(const char* sql) {
  sqlite3_stmt*& statement = statements_[sql];
  if (!statement) {
    const int code = sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) {
      statements_.erase(sql);
      fail(sqlite3_extended_errcode(handle_));
    }
  }
  return statement;
}

void Database::script(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(sqlite3_extended_errcode(handle_));
}

int64_t Database::last_id() const { return sqlite3_last_insert_rowid(handle_); }
int Database::changes() const { return sqlite3_changes(handle_); }

void Database::fail(int code) const {
  const int system = handle_ ? sqlite3_system_errno(handle_) : 0;
  const std::string said = handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      throw Error(fmt::format("{} is not a Tenon project: it is some other kind of file", path_));
    case SQLITE_CORRUPT:
      throw Error(fmt::format("{} is damaged ({})", path_, said),
                  "Restore it from a copy, or save what is left with `sqlite3 FILE .recover`.");
    case SQLITE_FULL:
      throw Error(fmt::format("{}: no space is left on its disk; what was saved before is still there", path_),
                  "Free some space and go on.");
    case SQLITE_READONLY:
      throw Error(fmt::format("{} is read-only: the change was not saved", path_), "Change its permissions, or work on a copy.");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error(fmt::format("{} is in use by another program", path_), "Wait until it has finished.");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw Error(fmt::format("{} cannot be opened: {}", path_, system ? std::strerror(system) : said.c_str()),
                  "Check that the folder exists and who may write there.");
    case SQLITE_IOERR:
      if (system == ENOSPC || system == EDQUOT || system == EFBIG)
        throw Error(fmt::format("{}: {}; what was saved before is still there", path_, std::strerror(system)),
                    "Free some space and go on.");
      throw Error(fmt::format("{}: reading or writing failed ({}{})", path_, said, system ? std::string(": ") + std::strerror(system) : ""),
                  "Check the disk.");
    default:
      throw Error(fmt::format("{}: {}", path_, said));
  }
}

Transaction::Transaction(Database& db) : lock_(db.mutex), db_(db) { db_.run("BEGIN IMMEDIATE"); }
Transaction::~Transaction() {
  if (!open_) return;
  try {
    db_.run("ROLLBACK");
  } catch (const Error&) {
    // After a full disk SQLite has already rolled back by itself.
  }
}
void Transaction::commit() {
  db_.run("COMMIT");
  open_ = false;
}

nlohmann::json stored_json(const std::string& text) {
  auto j = nlohmann::json::parse(text, nullptr, false);
  if (j.is_discarded()) throw Error("the project is damaged: a stored text is no JSON (" + text.substr(0, 40) + ")", "the rest of the project can still be read");
  return j;
}

}  // namespace tenon::projects
