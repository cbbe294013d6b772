#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "projects/project.h"
#include "projects/project_impl.h"

namespace tenon::projects {
namespace {

/// What read_run() reads, in its order.
#define TENON_SELECT_RUN                                                                                              \
  "SELECT r.id, r.name, r.status, r.created, r.steps, r.total_steps, r.seconds, c.recipe, m.spec, r.best, r.error, "  \
  "r.owner, "                                                                                                         \
  "CASE WHEN r.status IN ('running', 'paused') THEN (SELECT max((SELECT max(step) FROM points WHERE series = s.id)) " \
  "FROM series s WHERE s.run = r.id) END, w.note, w.tags, e.steps, e.samples, e.batch, r.recipe, r.model, "           \
  "b.parent, b.step, b.shift, p.name "                                                                                \
  "FROM runs r JOIN models m ON m.id = r.model JOIN recipes c ON c.id = r.recipe LEFT JOIN run_words w ON w.run = "   \
  "r.id LEFT JOIN epoch_lengths e ON e.run = r.id LEFT JOIN branches b ON b.run = r.id LEFT JOIN runs p ON p.id = "   \
  "b.parent "
constexpr const char* kRunsById = TENON_SELECT_RUN "WHERE r.deleted = ? ORDER BY r.id";
constexpr const char* kRunById = TENON_SELECT_RUN "WHERE r.id = ?";
constexpr const char* kRunByName = TENON_SELECT_RUN "WHERE r.name = ? AND r.deleted = 0";

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// The models and recipes of a list of runs, by their numbers: many runs share one, and reading it takes longest.
struct Documents {
  std::unordered_map<int64_t, ModelSpec> models;
  std::unordered_map<int64_t, nlohmann::json> recipes;
};

RunInfo read_run(const Query& q, Documents& read) {
  RunInfo r;
  r.id = q.integer(0);
  r.name = q.text(1);
  r.status = q.text(2);
  r.created = q.text(3);
  r.steps = q.integer(4);
  r.total_steps = q.integer(5);
  r.seconds = q.real(6);
  if (auto at = read.recipes.find(q.integer(18)); at != read.recipes.end())
    r.recipe = at->second;
  else
    r.recipe = read.recipes[q.integer(18)] = stored_json(q.text(7));
  if (auto at = read.models.find(q.integer(19)); at != read.models.end())
    r.model = at->second;
  else
    r.model = read.models[q.integer(19)] = ModelSpec::from_json(stored_json(q.text(8)));
  r.best = stored_json(q.text(9));
  // Everyone who shows it takes its three members for granted.
  const auto has = [&](const char* key, auto is) { return r.best.contains(key) && is(r.best[key]); };
  if (!r.best.is_object() || !has("metric", [](const nlohmann::json& v) { return v.is_string(); }) ||
      !has("value", [](const nlohmann::json& v) { return v.is_number(); }) ||
      !has("step", [](const nlohmann::json& v) { return v.is_number_integer(); }))
    r.best = nullptr;
  r.error = q.text(10);
  // A run whose process was killed is left marked as running. Each of its steps that has a metric can be replayed.
  if ((r.status == "running" || r.status == "paused") && !process_alive(q.text(11))) {
    r.status = "interrupted";
    r.steps = std::max(r.steps, q.integer(12));
  }
  r.note = q.text(13);
  r.tags = lines(q.text(14));
  if (!q.is_null(15)) r.epoch = {q.integer(15), q.integer(16), q.integer(17), q.integer(22)};
  if (!q.is_null(20)) r.branch = {q.integer(20), q.integer(21), q.text(23)};
  return r;
}

void read_changes(Database& db, std::vector<RunInfo>& runs) {
  if (runs.empty()) return;
  Query q = runs.size() == 1
                ? db.query("SELECT run, step, recipe, created FROM recipe_changes WHERE run = ? ORDER BY step",
                           runs.front().id)
                : db.query("SELECT run, step, recipe, created FROM recipe_changes ORDER BY run, step");
  auto run = runs.begin();  // both in the order of their numbers
  while (q.next()) {
    while (run != runs.end() && run->id < q.integer(0)) ++run;
    if (run != runs.end() && run->id == q.integer(0))
      run->changes.push_back({q.integer(1), stored_json(q.text(2)), q.text(3)});
  }
}

std::vector<RunInfo> read_runs(Database& db, bool deleted) {
  std::vector<RunInfo> out;
  {
    Query q = db.query(kRunsById, static_cast<int64_t>(deleted));
    Documents documents;
    while (q.next()) out.push_back(read_run(q, documents));
  }
  read_changes(db, out);
  return out;
}

/// The one run of a query; nothing where there is none.
std::vector<RunInfo> read_one(Database& db, Query q) {
  std::vector<RunInfo> out;
  Documents documents;
  if (q.next()) out.push_back(read_run(q, documents));
  read_changes(db, out);
  return out;
}

void must_exist(const Database& db, int64_t run) {
  if (db.changes() == 0) throw Error(fmt::format("{} has no run number {}", db.path(), run));
}

}  // namespace

const RecipeChange* RunInfo::change_after(int64_t step) const {
  const auto at = std::find_if(changes.begin(), changes.end(), [&](const RecipeChange& c) { return c.step == step; });
  return at == changes.end() ? nullptr : &*at;
}

const nlohmann::json& RunInfo::recipe_after(int64_t step) const {
  const nlohmann::json* of = &recipe;
  for (const RecipeChange& c : changes)
    if (c.step <= step) of = &c.recipe;
  return *of;
}

std::vector<RunInfo> Project::runs() const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  return read_runs(db, false);
}

std::vector<RunInfo> Project::deleted_runs() const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  return read_runs(db, true);
}

RunInfo Project::run(const std::string& name) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  if (auto found = read_one(db, db.query(kRunByName, name)); !found.empty()) return std::move(found.front());
  std::vector<std::string> names;
  Query q = db.query("SELECT name FROM runs WHERE deleted = 0 ORDER BY id");
  while (q.next()) names.push_back(q.text(0));
  std::string near = near_names(name, names.data(), names.size());
  if (near.empty()) {
    for (size_t i = 0; i < names.size() && i < 8; ++i) near += (i ? ", " : "") + names[i];
    near = names.empty() ? "It has no runs yet; `tenon train` starts one."
                         : "Its runs: " + near + (names.size() > 8 ? ", ..." : "");
  }
  throw Error::usage(fmt::format("{} has no run \"{}\"", path(), name), near);
}

RunInfo Project::run(int64_t id) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  auto found = read_one(db, db.query(kRunById, id));
  if (found.empty()) throw Error(fmt::format("{} has no run number {}", path(), id));
  return std::move(found.front());
}

RunInfo Project::new_run(const std::string& name, const ModelSpec& model, const nlohmann::json& recipe,
                         int64_t total_steps, const TrialOf& trial, const EpochLength& epoch, const BranchOf& branch) {
  Database& db = impl_->write();
  int64_t id = 0;
  {
    Transaction t(db);
    auto taken = [&](const std::string& n) {
      return db.query("SELECT 1 FROM runs WHERE name = ? AND deleted = 0", n).next();
    };
    std::string chosen = name;
    if (chosen.empty()) {
      const std::string base = model.name.empty() ? "run" : model.name;
      for (int i = 1; chosen.empty() || taken(chosen); ++i)
        chosen = branch ? fmt::format("{}-b{}", branch.name, i) : fmt::format("{}-{:02}", base, i);
    } else if (taken(chosen)) {
      throw Error::usage(fmt::format("{} already has a run \"{}\"", path(), chosen),
                         "Choose another name, or go on with that run: --resume " + chosen);
    }
    db.run(
        "INSERT INTO runs (name, status, owner, created, steps, total_steps, model, recipe) VALUES (?, 'running', ?, "
        "?, ?, ?, ?, ?)",
        chosen, process_identity(), now_text(), branch.step, total_steps, impl_->model_id(model),
        impl_->recipe_id(recipe));
    id = db.last_id();
    impl_->put_epoch(id, epoch);
    if (branch)
      db.run("INSERT INTO branches (run, parent, step, shift) VALUES (?, ?, ?, ?)", id, branch.run, branch.step,
             epoch.shift);
    if (trial.sweep) {
      db.run("UPDATE trials SET run = ? WHERE sweep = ? AND number = ? AND run IS NULL", id, trial.sweep, trial.number);
      if (db.changes() == 0)
        throw Error(fmt::format("trial {} of this sweep of {} was begun by another process", trial.number, path()),
                    "Stop that one first.");
    }
    t.commit();
  }
  return run(id);
}

void Project::Impl::put_status(int64_t run, const std::string& status, const std::string& error) {
  Database& db = *writer;
  const bool active = status == "running" || status == "paused";
  if (active) {
    Query q = db.query("SELECT owner, status FROM runs WHERE id = ?", run);
    if (q.next() && (q.text(1) == "running" || q.text(1) == "paused") && q.text(0) != process_identity() &&
        process_alive(q.text(0)))
      throw Error(
          fmt::format("this run of {} is being trained by process {}", path, q.text(0).substr(0, q.text(0).find(' '))),
          "Stop that one first.");
  }
  db.run("UPDATE runs SET status = ?, error = ?, owner = ? WHERE id = ?", status, error,
         active ? process_identity() : std::string(), run);
  must_exist(db, run);
}

void Project::Impl::put_progress(int64_t run, int64_t steps, double seconds) {
  writer->run("UPDATE runs SET steps = ?, seconds = ? WHERE id = ?", steps, seconds, run);
  must_exist(*writer, run);
}

void Project::Impl::put_epoch(int64_t run, const EpochLength& e) {
  if (e.steps > 0)
    writer->run("INSERT OR REPLACE INTO epoch_lengths (run, steps, samples, batch) VALUES (?, ?, ?, ?)", run, e.steps,
                e.samples, e.batch);
}

void Project::set_run_status(int64_t run, const std::string& status, const std::string& error) {
  Transaction t(impl_->write());
  impl_->put_status(run, status, error);
  t.commit();
}

void Project::set_run_progress(int64_t run, int64_t steps, double seconds) {
  Transaction t(impl_->write());
  impl_->put_progress(run, steps, seconds);
  t.commit();
}

void Project::continue_run(int64_t run, int64_t step, double seconds, const EpochLength& epoch) {
  Transaction t(impl_->write());
  impl_->put_status(run, "running", "");
  impl_->put_epoch(run, epoch);
  impl_->drop_metrics(run, step);
  impl_->put_progress(run, step, seconds);
  t.commit();
}

void Project::rename_run(int64_t run, const std::string& name) {
  Database& db = impl_->write();
  Transaction t(db);
  if (name.empty()) throw Error::usage("a run's name cannot be empty");
  if (db.query("SELECT 1 FROM runs WHERE name = ? AND deleted = 0 AND id <> ?", name, run).next())
    throw Error::usage(fmt::format("{} already has a run \"{}\"", path(), name), "Choose another name.");
  db.run("UPDATE runs SET name = ? WHERE id = ?", name, run);
  must_exist(db, run);
  t.commit();
}

void Project::describe_run(int64_t run, const std::string& note, const std::vector<std::string>& tags) {
  std::vector<std::string> kept;
  for (std::string t : tags) {
    std::replace(t.begin(), t.end(), '\n', ' ');
    const size_t from = t.find_first_not_of(' ');
    t = from == std::string::npos ? std::string() : t.substr(from, t.find_last_not_of(' ') - from + 1);
    if (!t.empty() && std::find(kept.begin(), kept.end(), t) == kept.end()) kept.push_back(t);
  }
  std::string joined;
  for (const std::string& t : kept) joined += (joined.empty() ? "" : "\n") + t;
  Database& db = impl_->write();
  Transaction t(db);
  db.run("UPDATE runs SET id = id WHERE id = ?", run);
  must_exist(db, run);
  db.run("INSERT OR REPLACE INTO run_words (run, note, tags) VALUES (?, ?, ?)", run, note, joined);
  t.commit();
}

void Project::delete_runs(const std::vector<int64_t>& runs) {
  Database& db = impl_->write();
  Transaction t(db);
  for (const int64_t run : runs) {
    db.run("UPDATE runs SET deleted = 1 WHERE id = ?", run);
    must_exist(db, run);
  }
  t.commit();
}

void Project::undelete_runs(const std::vector<int64_t>& runs) {
  Database& db = impl_->write();
  Transaction t(db);
  for (const int64_t run : runs) {
    auto same = db.query(
        "SELECT a.name FROM runs a JOIN runs b ON a.name = b.name WHERE a.id = ? AND a.deleted = 1 AND b.deleted = 0",
        run);
    if (same.next()) throw Error("a run of the name " + same.text(0) + " was made since", "Rename that one first.");
    db.run("UPDATE runs SET deleted = 0 WHERE id = ?", run);
    must_exist(db, run);
  }
  t.commit();
}

}  // namespace tenon::projects
