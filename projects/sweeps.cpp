#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "projects/project.h"
#include "projects/project_impl.h"

namespace tenon::projects {
namespace {

SweepInfo read_sweep(Database& db, const Query& q) {
  SweepInfo s;
  s.id = q.integer(0);
  s.name = q.text(1);
  s.created = q.text(2);
  s.plan = stored_json(q.text(3));
  s.model = ModelSpec::from_json(stored_json(q.text(4)));
  s.recipe = stored_json(q.text(5));
  Query t = db.query(
      "SELECT number, ifnull(run, 0), state, value, error, settings FROM trials WHERE sweep = ? ORDER BY number", s.id);
  while (t.next())
    s.trials.push_back({t.integer(0), t.integer(1), t.text(2), t.real(3), t.text(4), stored_json(t.text(5))});
  return s;
}

#define TENON_SELECT_SWEEP                                                                                  \
  "SELECT s.id, s.name, s.created, s.plan, m.spec, r.recipe FROM sweeps s JOIN models m ON m.id = s.model " \
  "JOIN recipes r ON r.id = s.recipe "
constexpr const char* kSweeps =
    TENON_SELECT_SWEEP "WHERE (s.id IN (SELECT sweep FROM deleted_sweeps)) = ? ORDER BY s.id";
constexpr const char* kSweepById = TENON_SELECT_SWEEP "WHERE s.id = ?";

std::vector<SweepInfo> read_sweeps(Database& db, bool deleted) {
  Query q = db.query(kSweeps, static_cast<int64_t>(deleted));
  std::vector<SweepInfo> out;
  while (q.next()) out.push_back(read_sweep(db, q));
  return out;
}

void must_be_there(Database& db, int64_t sweep) {
  if (!db.query("SELECT 1 FROM sweeps WHERE id = ?", sweep).next())
    throw Error(fmt::format("{} has no sweep number {}", db.path(), sweep));
}

}  // namespace

std::vector<SweepInfo> Project::sweeps() const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  return read_sweeps(db, false);
}

std::vector<SweepInfo> Project::deleted_sweeps() const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  return read_sweeps(db, true);
}

SweepInfo Project::sweep(int64_t id) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  Query q = db.query(kSweepById, id);
  if (!q.next()) throw Error(fmt::format("{} has no sweep number {}", path(), id));
  return read_sweep(db, q);
}

SweepInfo Project::sweep(const std::string& name) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  int64_t id = 0;
  std::vector<std::string> names;
  {
    Query q = db.query("SELECT id, name FROM sweeps WHERE id NOT IN (SELECT sweep FROM deleted_sweeps) ORDER BY id");
    while (q.next()) {
      names.push_back(q.text(1));
      if (q.text(1) == name) id = q.integer(0);
    }
  }
  if (id) return sweep(id);
  std::string near = near_names(name, names.data(), names.size());
  if (near.empty()) {
    for (size_t i = 0; i < names.size() && i < 8; ++i) near += (i ? ", " : "") + names[i];
    near = names.empty() ? "It has no sweeps yet; `tenon sweep PROJECT --key ...` starts one."
                         : "Its sweeps: " + near + (names.size() > 8 ? ", ..." : "");
  }
  throw Error::usage(fmt::format("{} has no sweep \"{}\"", path(), name), near);
}

SweepInfo Project::new_sweep(const std::string& name, const nlohmann::json& plan, const ModelSpec& model,
                             const nlohmann::json& recipe) {
  Database& db = impl_->write();
  int64_t id = 0;
  {
    Transaction t(db);
    auto taken = [&](const std::string& n) { return db.query("SELECT 1 FROM sweeps WHERE name = ?", n).next(); };
    std::string chosen = name;
    for (int i = 1; chosen.empty() || (name.empty() && taken(chosen)); ++i) chosen = fmt::format("sweep-{:02}", i);
    if (taken(chosen))
      throw Error::usage(fmt::format("{} already has a sweep \"{}\"", path(), chosen),
                         "Choose another name, or go on with that sweep: --resume " + chosen +
                             " (where it was deleted, --undelete " + chosen + " brings it back).");
    db.run("INSERT INTO sweeps (name, created, plan, model, recipe) VALUES (?, ?, ?, ?, ?)", chosen, now_text(),
           plan.dump(), impl_->model_id(model), impl_->recipe_id(recipe));
    id = db.last_id();
    t.commit();
  }
  return sweep(id);
}

void Project::rename_sweep(int64_t sweep, const std::string& name) {
  if (name.empty()) throw Error::usage("a sweep's name cannot be empty");
  Database& db = impl_->write();
  Transaction t(db);
  must_be_there(db, sweep);
  // Also the name of a deleted one, which may come back.
  if (db.query("SELECT 1 FROM sweeps WHERE name = ? AND id <> ?", name, sweep).next())
    throw Error::usage(fmt::format("{} already has a sweep \"{}\"", path(), name), "Choose another name.");
  db.run("UPDATE sweeps SET name = ? WHERE id = ?", name, sweep);
  t.commit();
}

void Project::delete_sweep(int64_t sweep) {
  Database& db = impl_->write();
  Transaction t(db);
  must_be_there(db, sweep);
  db.run("INSERT OR IGNORE INTO deleted_sweeps (sweep) VALUES (?)", sweep);
  t.commit();
}

void Project::undelete_sweep(int64_t sweep) {
  Database& db = impl_->write();
  Transaction t(db);
  must_be_there(db, sweep);
  db.run("DELETE FROM deleted_sweeps WHERE sweep = ?", sweep);
  t.commit();
}

void Project::add_trial(const TrialOf& trial, const nlohmann::json& settings) {
  Database& db = impl_->write();
  Transaction t(db);
  if (db.query("SELECT 1 FROM trials WHERE sweep = ? AND number = ?", trial.sweep, trial.number).next())
    throw Error(fmt::format("trial {} of this sweep of {} was chosen by another process", trial.number, path()),
                "Stop that one first.");
  db.run("INSERT INTO trials (sweep, number, settings) VALUES (?, ?, ?)", trial.sweep, trial.number, settings.dump());
  t.commit();
}

void Project::end_trial(const TrialOf& trial, const std::string& state, double value, const std::string& error) {
  Database& db = impl_->write();
  Transaction t(db);
  db.run("UPDATE trials SET state = ?, value = ?, error = ? WHERE sweep = ? AND number = ? AND state = 'open'", state,
         value, error, trial.sweep, trial.number);
  t.commit();
}

}  // namespace tenon::projects
