// What the watches of runs saw, and what they cost.
#include "engine/train/watch.h"
#include "projects/project.h"
#include "projects/project_impl.h"

namespace tenon::projects {
namespace {

/// Of a later version, or of a hand that wrote into the file: it is marked.
WatchAction action_named(const std::string& name) {
  for (const WatchAction a : kWatchActions)
    if (name == watch_action_name(a)) return a;
  return WatchAction::mark;
}

}  // namespace

void Project::append_watch_hits(int64_t run, const std::vector<WatchHit>& hits) {
  Transaction t(impl_->write());
  for (const WatchHit& h : hits)
    impl_->writer->run(
        "INSERT OR REPLACE INTO watch_hits (run, watch, step, at, value, bound, begins, action) VALUES (?, ?, ?, ?, ?, "
        "?, ?, ?)",
        run, h.watch, h.step, h.at, h.value, h.bound, static_cast<int64_t>(h.begins),
        std::string(watch_action_name(h.action)));
  t.commit();
}

std::vector<WatchHit> Project::watch_hits(int64_t run) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  Query q = db.query(
      "SELECT watch, step, at, value, bound, begins, action FROM watch_hits WHERE run = ? ORDER BY step, watch", run);
  std::vector<WatchHit> out;
  while (q.next())
    out.push_back(
        {q.text(0), q.integer(1), q.text(2), q.real(3), q.real(4), q.integer(5) != 0, action_named(q.text(6))});
  return out;
}

void Project::add_watch_costs(int64_t run, const std::vector<WatchCost>& costs) {
  Transaction t(impl_->write());
  for (const WatchCost& c : costs)
    impl_->writer->run(
        "INSERT INTO watch_costs (run, watch, seconds, trained) VALUES (?, ?, ?, ?) ON CONFLICT (run, watch) DO UPDATE "
        "SET seconds = seconds + excluded.seconds, trained = trained + excluded.trained",
        run, c.watch, c.seconds, c.trained);
  t.commit();
}

std::vector<WatchCost> Project::watch_costs(int64_t run) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  Query q = db.query("SELECT watch, seconds, trained FROM watch_costs WHERE run = ? ORDER BY watch", run);
  std::vector<WatchCost> out;
  while (q.next()) out.push_back({q.text(0), q.real(1), q.real(2)});
  return out;
}

}  // namespace tenon::projects
