// What runs did on their way.
#include "projects/project.h"
#include "projects/project_impl.h"

namespace tenon::projects {

void Project::append_events(int64_t run, const std::vector<RunEvent>& events) {
  Transaction t(impl_->write());
  for (const RunEvent& e : events)
    impl_->writer->run("INSERT OR IGNORE INTO run_events (run, step, kind, text) VALUES (?, ?, ?, ?)", run, e.step,
                       e.kind, e.text);
  t.commit();
}

std::vector<RunEvent> Project::events(int64_t run) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  Query q = db.query("SELECT step, kind, text FROM run_events WHERE run = ? ORDER BY step, id", run);
  std::vector<RunEvent> out;
  while (q.next()) out.push_back({q.integer(0), q.text(1), q.text(2)});
  return out;
}

}  // namespace tenon::projects
