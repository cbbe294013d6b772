#include "tests/projects/old_versions.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <nlohmann/json.hpp>

#include "core/sha256.h"
#include "tests/projects/project_files.h"

namespace tenon::projects::testing_files {
namespace {

constexpr const char* kVersion1 = R"sql(
PRAGMA page_size = 65536;
CREATE TABLE models  (id INTEGER PRIMARY KEY, spec   TEXT NOT NULL UNIQUE);
CREATE TABLE recipes (id INTEGER PRIMARY KEY, recipe TEXT NOT NULL UNIQUE);
CREATE TABLE project (id INTEGER PRIMARY KEY CHECK (id = 1), model INTEGER NOT NULL REFERENCES models, recipe INTEGER NOT NULL REFERENCES recipes, created TEXT NOT NULL);
CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, status TEXT NOT NULL, owner TEXT NOT NULL DEFAULT '', created TEXT NOT NULL,
  steps INTEGER NOT NULL DEFAULT 0, total_steps INTEGER NOT NULL, seconds REAL NOT NULL DEFAULT 0, model INTEGER NOT NULL REFERENCES models,
  recipe INTEGER NOT NULL REFERENCES recipes, best TEXT NOT NULL DEFAULT 'null', error TEXT NOT NULL DEFAULT '', deleted INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX run_names ON runs (name) WHERE deleted = 0;
CREATE TABLE series (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, name TEXT NOT NULL, UNIQUE (run, name));
CREATE TABLE points (series INTEGER NOT NULL REFERENCES series ON DELETE CASCADE, step INTEGER NOT NULL, wall REAL, value REAL, PRIMARY KEY (series, step)) WITHOUT ROWID;
CREATE TABLE chunks (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL);
CREATE TABLE checkpoints (id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, step INTEGER NOT NULL, created TEXT NOT NULL,
  bytes INTEGER NOT NULL, stored INTEGER NOT NULL, state TEXT NOT NULL, UNIQUE (run, step));
CREATE TABLE tensors (id INTEGER PRIMARY KEY, checkpoint INTEGER NOT NULL REFERENCES checkpoints ON DELETE CASCADE, name TEXT NOT NULL, dtype TEXT NOT NULL,
  shape TEXT NOT NULL, UNIQUE (checkpoint, name));
CREATE TABLE tensor_chunks (tensor INTEGER NOT NULL REFERENCES tensors ON DELETE CASCADE, seq INTEGER NOT NULL, chunk INTEGER NOT NULL REFERENCES chunks,
  PRIMARY KEY (tensor, seq)) WITHOUT ROWID;
CREATE INDEX chunk_users ON tensor_chunks (chunk);
CREATE TABLE artifacts (id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER REFERENCES runs ON DELETE CASCADE, step INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
  created TEXT NOT NULL, data BLOB NOT NULL);
CREATE TABLE window_state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
PRAGMA application_id = 1415933551;
PRAGMA user_version = 1;
INSERT INTO project VALUES (1, 1, 1, '2026-01-02T03:04:05Z');
INSERT INTO runs (name, status, created, steps, total_steps, seconds, model, recipe, best) VALUES ('old', 'finished', '2026-01-02T03:04:06Z', 20, 20, 1.5, 1, 1,
  '{"metric":"test_accuracy","value":0.5,"step":20}');
INSERT INTO series VALUES (1, 1, 'loss');
INSERT INTO points VALUES (1, 1, 0.1, 2.5), (1, 2, 0.2, NULL);
INSERT INTO checkpoints VALUES (1, 1, 20, '2026-01-02T03:04:07Z', 8, 8, '{"step":20}');
INSERT INTO tensors VALUES (1, 1, 'model/w', 'f32', '[2]');
INSERT INTO artifacts VALUES (1, 1, 20, 'note', 'n', '2026-01-02T03:04:08Z', x'6869');
INSERT INTO window_state VALUES ('docks', '[1]');
)sql";

}  // namespace

void make_version_1(const std::string& path) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  const float values[2] = {1.5f, -2};
  const std::string hash = hex(sha256(values, sizeof values));
  const std::string rest = "INSERT INTO models VALUES (1, '" + small_model().to_json().dump() +
                           "'); INSERT INTO recipes VALUES (1, '" + small_recipe().dump() + "');" +
                           "INSERT INTO chunks VALUES (1, x'" + hash +
                           "', x'0000c03f000000c0'); INSERT INTO tensor_chunks VALUES (1, 0, 1);";
  ASSERT_EQ(sqlite3_exec(db, (kVersion1 + rest).c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

}  // namespace tenon::projects::testing_files
