#include "projects/schema.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <iterator>

#include "core/error.h"

namespace tenon::projects {
namespace {

// Step i brings a file from version i to version i + 1. A step that has been released is never edited again.
//
// Note [Older files that cannot be written]
// Every step after the first only adds tables, each by a line that begins with CREATE TABLE. So a file of an older
// version that is read-only opens too: the tables that it lacks are made, empty, beside it in memory.
constexpr const char* kSteps[] = {
    R"sql(
CREATE TABLE models  (id INTEGER PRIMARY KEY, spec   TEXT NOT NULL UNIQUE);
CREATE TABLE recipes (id INTEGER PRIMARY KEY, recipe TEXT NOT NULL UNIQUE);
CREATE TABLE project (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  model   INTEGER NOT NULL REFERENCES models,
  recipe  INTEGER NOT NULL REFERENCES recipes,
  created TEXT NOT NULL);
CREATE TABLE runs (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  name        TEXT NOT NULL,
  status      TEXT NOT NULL,
  owner       TEXT NOT NULL DEFAULT '',   -- the process that trains it, while one does
  created     TEXT NOT NULL,
  steps       INTEGER NOT NULL DEFAULT 0,
  total_steps INTEGER NOT NULL,
  seconds     REAL NOT NULL DEFAULT 0,
  model       INTEGER NOT NULL REFERENCES models,
  recipe      INTEGER NOT NULL REFERENCES recipes,
  best        TEXT NOT NULL DEFAULT 'null',
  error       TEXT NOT NULL DEFAULT '',
  deleted     INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX run_names ON runs (name) WHERE deleted = 0;

CREATE TABLE series (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
                     name TEXT NOT NULL, UNIQUE (run, name));
CREATE TABLE points (                     -- a value of NULL is NaN
  series INTEGER NOT NULL REFERENCES series ON DELETE CASCADE,
  step   INTEGER NOT NULL,
  wall   REAL,
  value  REAL,
  PRIMARY KEY (series, step)) WITHOUT ROWID;

CREATE TABLE chunks (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL);
CREATE TABLE checkpoints (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  run     INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  step    INTEGER NOT NULL,
  created TEXT NOT NULL,
  bytes   INTEGER NOT NULL,
  stored  INTEGER NOT NULL,
  state   TEXT NOT NULL,
  UNIQUE (run, step));
CREATE TABLE tensors (
  id         INTEGER PRIMARY KEY,
  checkpoint INTEGER NOT NULL REFERENCES checkpoints ON DELETE CASCADE,
  name       TEXT NOT NULL,
  dtype      TEXT NOT NULL,
  shape      TEXT NOT NULL,
  UNIQUE (checkpoint, name));
CREATE TABLE tensor_chunks (
  tensor INTEGER NOT NULL REFERENCES tensors ON DELETE CASCADE,
  seq    INTEGER NOT NULL,
  chunk  INTEGER NOT NULL REFERENCES chunks,
  PRIMARY KEY (tensor, seq)) WITHOUT ROWID;
CREATE INDEX chunk_users ON tensor_chunks (chunk);

CREATE TABLE artifacts (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  run     INTEGER REFERENCES runs ON DELETE CASCADE,
  step    INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  name    TEXT NOT NULL,
  created TEXT NOT NULL,
  data    BLOB NOT NULL);
CREATE TABLE window_state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
)sql",
    R"sql(
CREATE TABLE run_words (                  -- what a person says of a run
  run  INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  note TEXT NOT NULL DEFAULT '',
  tags TEXT NOT NULL DEFAULT '');         -- one a line
CREATE TABLE recipe_changes (             -- the recipe of every step after this one, until the next change
  run     INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  step    INTEGER NOT NULL,
  recipe  TEXT NOT NULL,
  created TEXT NOT NULL,
  PRIMARY KEY (run, step)) WITHOUT ROWID;
CREATE TABLE sweeps (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  name    TEXT NOT NULL UNIQUE,
  created TEXT NOT NULL,
  plan    TEXT NOT NULL,
  model   INTEGER NOT NULL REFERENCES models,
  recipe  INTEGER NOT NULL REFERENCES recipes);
CREATE TABLE trials (                     -- a value of NULL is none
  sweep    INTEGER NOT NULL REFERENCES sweeps ON DELETE CASCADE,
  number   INTEGER NOT NULL,
  run      INTEGER REFERENCES runs ON DELETE SET NULL,
  state    TEXT NOT NULL DEFAULT 'open',
  value    REAL,
  error    TEXT NOT NULL DEFAULT '',
  settings TEXT NOT NULL,
  PRIMARY KEY (sweep, number)) WITHOUT ROWID;
)sql",
    R"sql(
CREATE TABLE epoch_lengths (
  run     INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  steps   INTEGER NOT NULL,
  samples INTEGER NOT NULL,
  batch   INTEGER NOT NULL);
CREATE TABLE series_sums (                -- of all points of a series; one without a row is summed up when asked for
  series    INTEGER PRIMARY KEY REFERENCES series ON DELETE CASCADE,
  points    INTEGER NOT NULL,
  bad       INTEGER NOT NULL,
  last_step INTEGER NOT NULL,
  last      REAL,                         -- a value of NULL is NaN
  low       REAL,
  low_step  INTEGER NOT NULL,
  high      REAL,
  high_step INTEGER NOT NULL);
)sql",
    R"sql(
CREATE TABLE deleted_sweeps (             -- hidden; their rows and runs stay
  sweep INTEGER PRIMARY KEY REFERENCES sweeps ON DELETE CASCADE);
)sql",
    R"sql(
CREATE TABLE branches (                   -- runs that went on from a step of another one
  run    INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  parent INTEGER NOT NULL REFERENCES runs,
  step   INTEGER NOT NULL,
  shift  INTEGER NOT NULL);
)sql",
    R"sql(
CREATE TABLE watch_hits (                 -- every step at which the condition of a watch held; NULL is NaN
  run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  watch  TEXT NOT NULL,
  step   INTEGER NOT NULL,
  at     TEXT NOT NULL,
  value  REAL,
  bound  REAL,
  begins INTEGER NOT NULL,
  action TEXT NOT NULL,
  PRIMARY KEY (run, watch, step)) WITHOUT ROWID;
CREATE TABLE watch_costs (                -- seconds spent on looking, and on all of the steps meanwhile
  run     INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  watch   TEXT NOT NULL,
  seconds REAL NOT NULL,
  trained REAL NOT NULL,
  PRIMARY KEY (run, watch)) WITHOUT ROWID;
)sql",
    R"sql(
CREATE TABLE run_events (                 -- what a run did on its way, told after that step
  id   INTEGER PRIMARY KEY,
  run  INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  step INTEGER NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (run, step, kind, text));
)sql",
};

int64_t pragma(Database& db, Sql sql) {
  Query q = db.query(sql);
  return q.next() ? q.integer(0) : 0;
}

}  // namespace

int schema_version() { return static_cast<int>(std::size(kSteps)); }

void create_schema(Database& db) {
  // The page size holds only when set before the first table; 64 KiB is twice as fast as 4 KiB for checkpoints. Nobody
  // knows the file yet, so nothing need be undone in it, and without a log every page goes, checked, to the file
  // itself.
  db.script("PRAGMA page_size = 65536; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = FULL;");
  Transaction t(db);
  for (const char* step : kSteps) db.script(step);
  db.script(
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};", kApplicationId, schema_version()).c_str());
  t.commit();
}

int check_schema(Database& db) {
  const int64_t application = pragma(db, "PRAGMA application_id");
  struct stat empty {};
  if (application == 0 && ::stat(db.path().c_str(), &empty) == 0 && empty.st_size == 0)
    throw Error(fmt::format("{} is not a Tenon project: it is an empty file", db.path()));
  if (application != kApplicationId)
    throw Error(fmt::format("{} is not a Tenon project: it is an SQLite database of another program", db.path()));
  const int version = static_cast<int>(pragma(db, "PRAGMA user_version"));
  if (version > schema_version())
    throw Error(fmt::format("{} was made by a newer Tenon (file version {}, this program knows up to {})", db.path(),
                            version, schema_version()),
                "Open it with that version; this one leaves it as it is.");
  if (version < 1) throw Error(fmt::format("{} is damaged: it has no version", db.path()));
  struct stat st {
  }, log{};
  const int64_t bytes = pragma(db, "PRAGMA page_count") * pragma(db, "PRAGMA page_size");
  // Pages that the file lacks may still lie in the log.
  const bool logged = ::stat((db.path() + "-wal").c_str(), &log) == 0 && log.st_size > 0;
  if (!logged && ::stat(db.path().c_str(), &st) == 0 && st.st_size < bytes)
    throw Error(
        fmt::format("{} is damaged: it ends before its time ({} bytes are missing)", db.path(), bytes - st.st_size),
        "Restore it from a copy.");
  return version;
}

void migrate_schema(Database& db, int from) {
  if (from == schema_version()) return;
  Transaction t(db);
  for (int i = from; i < schema_version(); ++i) db.script(kSteps[i]);
  db.script(fmt::format("PRAGMA user_version = {};", schema_version()).c_str());
  t.commit();
}

void add_missing_tables(Database& db, int from) {
  if (from < schema_version()) db.script("PRAGMA temp_store = MEMORY");
  for (int i = from; i < schema_version(); ++i) {
    std::string step = kSteps[i];
    constexpr std::string_view kCreate = "\nCREATE TABLE", kBeside = "\nCREATE TEMP TABLE";
    for (size_t at = 0; (at = step.find(kCreate, at)) != std::string::npos; at += kBeside.size())
      step.replace(at, kCreate.size(), kBeside);
    db.script(step.c_str());
  }
}

}  // namespace tenon::projects
