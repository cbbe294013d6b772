#include "projects/database.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/disk.h"
#include "core/error.h"

namespace tenon::projects {
namespace {

constexpr int kBusyMs = 10000;
constexpr int64_t kPage = 65536;     // of every project; see create_schema
constexpr uint64_t kRoom = 1 << 20;  // tables and indexes that any change touches, a page of each

int64_t size_of(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 ? st.st_size : 0;
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
    throw Error(
        fmt::format("{}: {} bytes are more than one entry of a project can hold (1 GB)", db_.path_, value.bytes));
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
    // A database in WAL mode in a read-only folder, or on a disk too full for the index of its log, can be read only as
    // one that nobody changes: safe while there is nothing in the log.
    if (access != Access::read_only || size_of(path + "-wal") > 0) throw;
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
    sqlite3_busy_timeout(handle_, kBusyMs);
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

int64_t Database::copy_into(Database& other, const std::function<bool(int64_t done, int64_t total)>& progress) {
  // Within a transaction that reads, pages stay those of its beginning; without it each change of another connection
  // would make SQLite begin anew, and a run that trains changes the file several times a second.
  script("BEGIN");
  query("SELECT count(*) FROM sqlite_schema").next();
  sqlite3_backup* backup = sqlite3_backup_init(other.handle_, "main", handle_, "main");
  if (!backup) {
    script("ROLLBACK");
    other.fail(sqlite3_extended_errcode(other.handle_));
  }
  constexpr int kPages = 64;
  int code = SQLITE_OK;
  int64_t total = 0;
  bool cancelled = false;
  while (!cancelled && code == SQLITE_OK) {
    code = sqlite3_backup_step(backup, kPages);
    total = sqlite3_backup_pagecount(backup) * kPage;
    if (progress) cancelled = !progress(total - sqlite3_backup_remaining(backup) * kPage, total);
  }
  sqlite3_backup_finish(backup);
  script("ROLLBACK");
  if (code != SQLITE_OK && code != SQLITE_DONE) {
    const int told = sqlite3_extended_errcode(other.handle_);
    other.fail(told == SQLITE_OK ? code : told);
  }
  if (cancelled) throw Error("cancelled");
  return total;
}

int64_t Database::last_id() const { return sqlite3_last_insert_rowid(handle_); }
int Database::changes() const { return sqlite3_changes(handle_); }

int64_t Database::log_bytes() const {
  const char* main = handle_ ? sqlite3_db_filename(handle_, "main") : nullptr;
  return main && *main ? size_of(sqlite3_filename_wal(main)) : 0;
}

/// Moves the log into the file and cuts it to nothing, as far as nobody reads it now. Quietly: what is in the log is
/// saved.
void Database::fold() {
  sqlite3_busy_timeout(handle_, 0);
  sqlite3_wal_checkpoint_v2(handle_, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  sqlite3_busy_timeout(handle_, kBusyMs);
}

/// SQLite keeps the reason of the last file that it tried, which may be one beside this.
static std::string why_not_opened(const std::string& path, int system, const std::string& said) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const char* in = folder.empty() ? "." : folder.c_str();
  const bool there = ::access(path.c_str(), F_OK) == 0;
  if (::access(in, F_OK) == 0 && ((there && ::access(path.c_str(), R_OK) != 0) || (!there && ::access(in, W_OK) != 0)))
    system = errno;
  return system ? std::strerror(system) : said;
}

void Database::fail(int code) {
  int system = handle_ ? sqlite3_system_errno(handle_) : 0;
  const std::string said = handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  const int kind = code & 0xff;
  // SQLite does not always keep the reason for which a write failed: where no page finds room any more, that was it.
  const bool wrote = (code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_SHMSIZE) && system != EIO;
  const int64_t left = wrote && !is_no_space(system) ? free_bytes(path_) : -1;  // -1 as well where nobody knows
  if (kind == SQLITE_FULL || (left >= 0 && left < kPage)) system = ENOSPC;
  if (kind == SQLITE_FULL || ((kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN) && is_no_space(system))) {
    full_ = true;
    // The part of the log that the failed change had taken is its own again at the next attempt.
    const int64_t ours = needs_.empty() ? 0 : std::max<int64_t>(0, log_bytes() - log_before_);
    throw no_space(system, path_, "what was saved before is still there", space_hint(path_, needs_, needed_, ours));
  }
  switch (kind) {
    case SQLITE_NOTADB:
      throw Error(fmt::format("{} is not a Tenon project: it is some other kind of file", path_));
    case SQLITE_CORRUPT:
      throw Error(fmt::format("{} is damaged ({})", path_, said),
                  "Restore it from a copy, or save what is left with `sqlite3 FILE .recover`.");
    case SQLITE_READONLY:
      throw Error(fmt::format("{} is read-only: the change was not saved", path_),
                  "Change its permissions, or work on a copy.");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error(fmt::format("{} is in use by another program", path_), "Wait until it has finished.");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw Error(fmt::format("{} cannot be opened: {}", path_, why_not_opened(path_, system, said)),
                  "Check that the folder exists and who may write there.");
    case SQLITE_IOERR:
      throw Error(fmt::format("{}: reading or writing failed ({}{})", path_, said,
                              system ? std::string(": ") + std::strerror(system) : ""),
                  "Check the disk.");
    default:
      throw Error(fmt::format("{}: {}", path_, said));
  }
}

Transaction::Transaction(Database& db, const char* what, uint64_t bytes) : lock_(db.mutex), db_(db) {
  db_.full_ = false;
  db_.needs_ = what ? fmt::format("{} needs about", what) : "";
  db_.needed_ = what ? bytes + kRoom : 0;
  // A log can be cut short only when everything in it is in the file too. Where the disk may turn out too small that is
  // seen to before: else a change that fails leaves a log of the size of the disk, and no room to move out of it what
  // it held.
  if (what) {
    const int64_t left = free_bytes(db_.path_);
    if (left >= 0 && static_cast<uint64_t>(left) < 2 * db_.needed_) db_.fold();
  }
  db_.log_before_ = db_.log_bytes();
  db_.run("BEGIN IMMEDIATE");
}
Transaction::~Transaction() {
  db_.needs_.clear();
  if (!open_) return;
  try {
    db_.run("ROLLBACK");
  } catch (const Error&) {
    // After a full disk SQLite has already rolled back by itself.
  }
  if (db_.full_) db_.fold();
  db_.full_ = false;
}
void Transaction::commit() {
  db_.run("COMMIT");
  open_ = false;
}

nlohmann::json stored_json(const std::string& text) {
  auto j = nlohmann::json::parse(text, nullptr, false);
  if (j.is_discarded())
    throw Error("the project is damaged: a stored text is no JSON (" + text.substr(0, 40) + ")",
                "the rest of the project can still be read");
  return j;
}

}  // namespace tenon::projects
