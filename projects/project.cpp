#include "projects/project.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/disk.h"
#include "core/error.h"
#include "projects/new_file.h"
#include "projects/project_impl.h"
#include "projects/schema.h"

namespace tenon::projects {

constexpr uint64_t kNewProject = 2 << 20;  // a page for every table and index, and the index of the log

Project::Project() : impl_(std::make_unique<Impl>()) {}

Project::~Project() {
  if (!impl_->writer) return;
  impl_->reader.reset();
  // The last connection folds the log into the file: what is left is one file.
  impl_->writer.reset();
}

const std::string& Project::path() const { return impl_->path; }
bool Project::read_only() const { return impl_->read_only; }

Database& Project::Impl::write() const {
  if (!writer)
    throw Error(fmt::format("{} is read-only: the change was not saved", path),
                "Change its permissions, or work on a copy.");
  return *writer;
}

std::shared_ptr<Project> Project::create(const std::string& path, const ModelSpec& model,
                                         const nlohmann::json& recipe) {
  NewFile file(path);
  bool named = false;
  try {
    Impl made;
    made.path = file.half();
    made.writer = std::make_unique<Database>(file.half(), Database::Access::create);
    create_schema(*made.writer);
    {
      Transaction t(*made.writer);
      made.writer->run("INSERT INTO project (id, model, recipe, created) VALUES (1, ?, ?, ?)", made.model_id(model),
                       made.recipe_id(recipe), now_text());
      t.commit();
    }
    made.writer->script("PRAGMA journal_mode = WAL;");
    check_schema(*made.writer);  // also that no page is missing
    made.writer.reset();
    file.put();
    named = true;
    return open(path);
  } catch (const Error& e) {
    if (e.kind() != Error::Kind::no_space) throw file.named(e);
    if (named) remove_database(path);  // whole, but there is no room to work with it: nothing is to be there then
    throw no_space(ENOSPC, path, "nothing was made", space_hint(path, "a new project needs about", kNewProject));
  }
}

std::shared_ptr<Project> Project::open(const std::string& path, bool read_only) {
  std::shared_ptr<Project> project(new Project);
  Impl& p = *project->impl_;
  p.path = path;
  struct stat st {};
  if (!read_only && ::stat(path.c_str(), &st) == 0) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    const bool writable = ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0 &&
                          ::faccessat(AT_FDCWD, folder.empty() ? "." : folder.c_str(), W_OK, AT_EACCESS) == 0;
    if (!writable) read_only = true;
  }
  p.read_only = read_only;
  if (!read_only) {
    p.writer = std::make_unique<Database>(path, Database::Access::read_write);
    const int version = check_schema(*p.writer);
    migrate_schema(*p.writer, version);
    p.writer->script("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
  }
  p.reader = std::make_unique<Database>(path, Database::Access::read_only);
  const int version = check_schema(*p.reader);
  add_missing_tables(*p.reader, version);
  return project;
}

int64_t Project::Impl::model_id(const ModelSpec& model) {
  const std::string text = model.to_json().dump();
  writer->run("INSERT INTO models (spec) VALUES (?) ON CONFLICT DO NOTHING", text);
  Query q = writer->query("SELECT id FROM models WHERE spec = ?", text);
  q.next();
  return q.integer(0);
}

int64_t Project::Impl::recipe_id(const nlohmann::json& recipe) {
  const std::string text = recipe.dump();
  writer->run("INSERT INTO recipes (recipe) VALUES (?) ON CONFLICT DO NOTHING", text);
  Query q = writer->query("SELECT id FROM recipes WHERE recipe = ?", text);
  q.next();
  return q.integer(0);
}

void Project::Impl::drop_unused_documents() {
  writer->run(
      "DELETE FROM models WHERE id NOT IN (SELECT model FROM project UNION SELECT model FROM runs UNION SELECT model "
      "FROM sweeps)");
  writer->run(
      "DELETE FROM recipes WHERE id NOT IN (SELECT recipe FROM project UNION SELECT recipe FROM runs UNION SELECT "
      "recipe FROM sweeps)");
}

int64_t Project::version_of_others() const {
  // SQLite counts what other connections than the asked one commit: the one that writes for this project is asked.
  Database& db = impl_->writer ? *impl_->writer : impl_->read();
  std::lock_guard lock(db.mutex);
  Query q = db.query("PRAGMA data_version");
  return q.next() ? q.integer(0) : 0;
}

ModelSpec Project::model() const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  Query q = db.query("SELECT spec FROM models JOIN project ON project.model = models.id");
  if (!q.next()) throw Error(fmt::format("{} is damaged: it holds no model", path()));
  return ModelSpec::from_json(stored_json(q.text(0)));
}

void Project::set_model(const ModelSpec& model) {
  Transaction t(impl_->write());
  impl_->writer->run("UPDATE project SET model = ?", impl_->model_id(model));
  impl_->drop_unused_documents();
  t.commit();
}

nlohmann::json Project::recipe() const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  Query q = db.query("SELECT recipe FROM recipes WHERE id = (SELECT recipe FROM project)");
  if (!q.next()) throw Error(fmt::format("{} is damaged: it holds no recipe", path()));
  return stored_json(q.text(0));
}

void Project::set_recipe(const nlohmann::json& recipe) {
  Transaction t(impl_->write());
  impl_->writer->run("UPDATE project SET recipe = ?", impl_->recipe_id(recipe));
  impl_->drop_unused_documents();
  t.commit();
}

nlohmann::json Project::window_state(const std::string& key) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  Query q = db.query("SELECT value FROM window_state WHERE key = ?", key);
  return q.next() ? stored_json(q.text(0)) : nlohmann::json();
}

void Project::set_window_state(const std::string& key, const nlohmann::json& value) {
  Transaction t(impl_->write());
  impl_->writer->run(
      "INSERT INTO window_state (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", key,
      value.dump());
  t.commit();
}

int64_t Project::Impl::put_artifact(int64_t run, int64_t step, const std::string& kind, const std::string& name,
                                    const std::string& bytes) {
  Query q = writer->query("INSERT INTO artifacts (run, step, kind, name, created, data) VALUES (?, ?, ?, ?, ?, ?)");
  if (run) q.bind(1, run);
  q.bind(2, step).bind(3, kind).bind(4, name).bind(5, now_text()).bind(6, Blob{bytes.data(), bytes.size()});
  q.next();
  return writer->last_id();
}

int64_t Project::add_artifact(int64_t run, int64_t step, const std::string& kind, const std::string& name,
                              const std::string& bytes) {
  Transaction t(impl_->write(), "what is added", bytes.size());
  const int64_t id = impl_->put_artifact(run, step, kind, name, bytes);
  t.commit();
  return id;
}

std::vector<int64_t> Project::add_artifacts(int64_t run, int64_t step, const std::vector<NewArtifact>& artifacts) {
  uint64_t size = 0;
  for (const NewArtifact& a : artifacts) size += a.bytes.size();
  Transaction t(impl_->write(), "what is added", size);
  std::vector<int64_t> ids;
  for (const NewArtifact& a : artifacts) ids.push_back(impl_->put_artifact(run, step, a.kind, a.name, a.bytes));
  t.commit();
  return ids;
}

std::vector<ArtifactInfo> Project::artifacts(int64_t run, const std::string& kind) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  Query q = db.query(
      "SELECT a.id, ifnull(a.run, 0), a.step, a.kind, a.name, a.created, length(a.data) FROM artifacts a LEFT JOIN "
      "runs r ON r.id = a.run "
      "WHERE (?1 = 0 OR a.run = ?1) AND (?2 = '' OR a.kind = ?2) AND ifnull(r.deleted, 0) = 0 ORDER BY a.id",
      run, kind);
  std::vector<ArtifactInfo> out;
  while (q.next())
    out.push_back({q.integer(0), q.integer(1), q.integer(2), q.text(3), q.text(4), q.text(5), q.integer(6)});
  return out;
}

std::string Project::artifact(int64_t id) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  Query q = db.query("SELECT data FROM artifacts WHERE id = ?", id);
  if (!q.next()) throw Error(fmt::format("{} holds no artifact {}", path(), id));
  const Blob b = q.blob(0);
  return {static_cast<const char*>(b.data), b.bytes};
}

}  // namespace tenon::projects
