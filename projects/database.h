#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

struct sqlite3;
struct sqlite3_stmt;

namespace tenon::projects {

/// Bytes bound to or read from a statement, not owned.
struct Blob {
  const void* data = nullptr;
  size_t bytes = 0;
};

/// One running statement; returns to its database's cache, reset, when it goes.
class Query {
 public:
  Query(class Database& db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  ~Query();
  Query(Query&& o) noexcept : db_(o.db_), statement_(std::exchange(o.statement_, nullptr)) {}

  /// The next row; false after the last. Throws Error naming the file.
  bool next();

  bool is_null(int column) const;
  int64_t integer(int column) const;
  double real(int column) const;  ///< NULL reads as NaN: SQLite keeps NaN that way
  std::string text(int column) const;
  Blob blob(int column) const;  ///< valid until the next next()

  Query& bind(int at, int64_t value);
  Query& bind(int at, int value) { return bind(at, static_cast<int64_t>(value)); }
  Query& bind(int at, bool value) { return bind(at, static_cast<int64_t>(value)); }
  Query& bind(int at, double value);
  Query& bind(int at, std::string_view value);
  Query& bind(int at, const std::string& value) { return bind(at, std::string_view(value)); }
  Query& bind(int at, const char* value) { return bind(at, std::string_view(value)); }
  Query& bind(int at, Blob value);  ///< the memory must live until the query goes

 private:
  Database& db_;
  sqlite3_stmt* statement_;  ///< null once moved from
};

/// JSON that the file holds; throws Error where it is damaged.
nlohmann::json stored_json(const std::string& text);

/// The words of a statement. They are known when the program is compiled: a statement that was prepared is found again
/// by where its words stand.
struct Sql {
  const char* text;
  consteval Sql(const char* words) : text(words) {}  // NOLINT(google-explicit-constructor)
};

/// One connection to one SQLite file. Statements are prepared once. Lock `mutex` around every use; Transaction does.
class Database {
 public:
  enum class Access { read_only, read_write, create };
  Database(const std::string& path, Access access);
  ~Database();
  Database(const Database&) = delete;

  template <class... Args>
  Query query(Sql sql, const Args&... args) {
    Query q(*this, prepare(sql.text));
    int at = 0;
    (q.bind(++at, args), ...);
    return q;
  }
  /// Runs a statement that gives no rows.
  template <class... Args>
  void run(Sql sql, const Args&... args) {
    query(sql, args...).next();
  }
  /// Several statements without arguments, not cached.
  void script(const char* sql);

  /// Writes everything as it is at this moment into another database, which loses what it had; changes that others make
  /// meanwhile stay out of it. `progress` counts bytes and may cancel (Error "cancelled"). Returns the bytes.
  int64_t copy_into(Database& other, const std::function<bool(int64_t done, int64_t total)>& progress);

  int64_t last_id() const;
  int changes() const;
  const std::string& path() const { return path_; }
  /// Throws what an SQLite result code means for this file, in words.
  [[noreturn]] void fail(int code);

  std::recursive_mutex mutex;

 private:
  friend class Query;
  friend class Transaction;
  sqlite3_stmt* prepare(const char* sql);
  void open(bool immutable);
  int64_t log_bytes() const;
  void fold();

  std::string path_;
  Access access_;
  sqlite3* handle_ = nullptr;
  std::unordered_map<std::string_view, sqlite3_stmt*> statements_;  ///< keys are string literals

  // Of the transaction at work, for what is said where the disk is full.
  std::string needs_;
  uint64_t needed_ = 0;
  int64_t log_before_ = 0;
  bool full_ = false;
};

/// Holds the lock and a transaction; rolls back unless commit() was reached. One that finds the disk full throws an
/// Error of the kind no_space, and gives back what it had taken of the disk as far as the log allows.
class Transaction {
 public:
  /// `what` will write about so many bytes: "this checkpoint".
  explicit Transaction(Database& db, const char* what = nullptr, uint64_t bytes = 0);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  void commit();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  Database& db_;
  bool open_ = true;
};

}  // namespace tenon::projects
