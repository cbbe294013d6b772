#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/sha256.h"
#include "core/tensor_bytes.h"
#include "projects/project.h"
#include "projects/project_impl.h"

namespace tenon::projects {
namespace {

/// Pieces that did not change since an earlier checkpoint are not written again; smaller ones find more that is equal
/// and cost more rows.
constexpr size_t kChunk = size_t{1} << 20;

void drop_unused_chunks(Database& db) {
  db.run("DELETE FROM chunks WHERE NOT EXISTS (SELECT 1 FROM tensor_chunks WHERE chunk = chunks.id)");
}

Shape parse_shape(const std::string& text) { return Shape(stored_json(text).get<std::vector<int64_t>>()); }

}  // namespace

int64_t Project::save_checkpoint(int64_t run, const Checkpoint& checkpoint, const std::vector<MetricRow>& rows,
                                 double seconds, const nlohmann::json& best, const ChangedRecipe* changed) {
  Database& db = impl_->write();
  uint64_t all = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) all += tensor.nbytes();
  Transaction t(db, "this checkpoint", all);
  const bool replaces = db.query("SELECT 1 FROM checkpoints WHERE run = ? AND step = ?", run, checkpoint.step).next();
  if (replaces) db.run("DELETE FROM checkpoints WHERE run = ? AND step = ?", run, checkpoint.step);
  db.run("INSERT INTO checkpoints (run, step, created, bytes, stored, state) VALUES (?, ?, ?, 0, 0, ?)", run,
         checkpoint.step, now_text(), checkpoint.state.dump());
  const int64_t id = db.last_id();
  int64_t bytes = 0, stored = 0;
  std::vector<char> copy;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const Shape& shape = tensor.size();
    db.run("INSERT INTO tensors (checkpoint, name, dtype, shape) VALUES (?, ?, ?, ?)", id, name,
           tenon::name(tensor.dtype()), nlohmann::json(std::vector<int64_t>(shape.begin(), shape.end())).dump());
    const int64_t tensor_id = db.last_id();
    const std::string_view data = logical_bytes(tensor, copy);
    const size_t size = data.size();
    bytes += static_cast<int64_t>(size);
    for (size_t at = 0, seq = 0; at < size; at += kChunk, ++seq) {
      const size_t part = std::min(kChunk, size - at);
      const Sha256Digest hash = sha256(data.data() + at, part);
      const Blob key{hash.data(), hash.size()};
      int64_t chunk = 0;
      if (Query q = db.query("SELECT id FROM chunks WHERE hash = ?", key); q.next()) chunk = q.integer(0);
      if (!chunk) {
        db.run("INSERT INTO chunks (hash, data) VALUES (?, ?)", key, Blob{data.data() + at, part});
        chunk = db.last_id();
        stored += static_cast<int64_t>(part);
      }
      db.run("INSERT INTO tensor_chunks (tensor, seq, chunk) VALUES (?, ?, ?)", tensor_id, static_cast<int64_t>(seq),
             chunk);
    }
  }
  db.run("UPDATE checkpoints SET bytes = ?, stored = ? WHERE id = ?", bytes, stored, id);
  if (replaces) drop_unused_chunks(db);
  impl_->put_metrics(run, rows);
  db.run("UPDATE runs SET steps = ?, seconds = max(seconds, ?) WHERE id = ?", checkpoint.step, seconds, run);
  if (changed) {
    db.run("DELETE FROM recipe_changes WHERE run = ? AND step >= ?", run, checkpoint.step);
    db.run("INSERT INTO recipe_changes (run, step, recipe, created) VALUES (?, ?, ?, ?)", run, checkpoint.step,
           changed->recipe.dump(), now_text());
    db.run("UPDATE runs SET total_steps = ? WHERE id = ?", changed->total_steps, run);
  }
  if (!best.is_null()) db.run("UPDATE runs SET best = ? WHERE id = ?", best.dump(), run);
  t.commit();
  return id;
}

namespace {
#define TENON_SELECT_CHECKPOINT                                                                                    \
  "SELECT c.id, c.run, c.step, c.created, c.bytes, c.stored, ifnull(json_extract(r.best, '$.step'), -1) = c.step " \
  "FROM checkpoints c JOIN runs r ON r.id = c.run "

std::vector<CheckpointInfo> read_checkpoints(Query q) {
  std::vector<CheckpointInfo> out;
  while (q.next())
    out.push_back({q.integer(0), q.integer(1), q.integer(2), q.text(3), q.integer(4), q.integer(5), q.integer(6) != 0});
  return out;
}
}  // namespace

std::vector<CheckpointInfo> Project::checkpoints(int64_t run) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  return read_checkpoints(db.query(TENON_SELECT_CHECKPOINT "WHERE c.run = ? ORDER BY c.step", run));
}

std::vector<CheckpointInfo> Project::all_checkpoints() const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  return read_checkpoints(db.query(TENON_SELECT_CHECKPOINT "ORDER BY c.run, c.step"));
}

Checkpoint Project::load_checkpoint(int64_t id) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  Checkpoint c;
  {
    Query q = db.query("SELECT step, state FROM checkpoints WHERE id = ?", id);
    if (!q.next()) throw Error(fmt::format("{} has no checkpoint number {}", path(), id));
    c.step = q.integer(0);
    c.state = stored_json(q.text(1));
  }
  auto damaged = [&](const std::string& name) -> Error {
    return Error(fmt::format("{}: the checkpoint of step {} is damaged in tensor {}", path(), c.step, name),
                 "Use another checkpoint, or restore the file from a copy.");
  };
  // All tensors in one ordered pass over their chunks.
  Query tensors = db.query("SELECT id, name, dtype, shape FROM tensors WHERE checkpoint = ? ORDER BY name", id);
  while (tensors.next()) {
    const std::string name = tensors.text(1);
    DType dtype;
    if (!parse_dtype(tensors.text(2).c_str(), dtype)) throw damaged(name);
    Tensor value = empty(parse_shape(tensors.text(3)), dtype);
    const size_t size = value.nbytes();
    size_t at = 0;
    Query chunks = db.query(
        "SELECT c.hash, c.data FROM tensor_chunks t JOIN chunks c ON c.id = t.chunk WHERE t.tensor = ? ORDER BY t.seq",
        tensors.integer(0));
    while (chunks.next()) {
      const Blob data = chunks.blob(1), hash = chunks.blob(0);
      if (data.bytes > size - at) throw damaged(name);
      const Sha256Digest actual = sha256(data.data, data.bytes);
      if (hash.bytes != actual.size() || std::memcmp(hash.data, actual.data(), actual.size()) != 0) throw damaged(name);
      std::memcpy(static_cast<char*>(value.raw()) + at, data.data, data.bytes);
      at += data.bytes;
    }
    if (at != size) throw damaged(name);
    c.tensors.emplace_back(name, std::move(value));
  }
  return c;
}

Checkpoint Project::checkpoint_before(int64_t run, int64_t step) const {
  int64_t id = 0;
  {
    Database& db = impl_->read();
    std::lock_guard lock(db.mutex);
    Query q = db.query("SELECT id FROM checkpoints WHERE run = ? AND step <= ? ORDER BY step DESC LIMIT 1", run, step);
    if (!q.next())
      throw Error(fmt::format("{}: this run has no checkpoint at or before step {}", path(), step),
                  "Its first one was removed; train it again to go back that far.");
    id = q.integer(0);
  }
  return load_checkpoint(id);
}

void Project::delete_checkpoint(int64_t id) {
  Database& db = impl_->write();
  Transaction t(db);
  db.run("DELETE FROM checkpoints WHERE id = ?", id);
  drop_unused_chunks(db);
  t.commit();
}

}  // namespace tenon::projects
