// What the watches of the runs of a project saw.
#include "engine/train/watch.h"
#include "projects/project.h"
#include "projects/query/query_table.h"

namespace tenon::projects {
namespace {

using tracing::Unit;
using Found = QueryColumn::Found;
using Leads = QueryColumn::Leads;

struct SeenByWatch {
  std::shared_ptr<const RunInfo> run;
  WatchHit hit;
};
using WatchHits = QueryList<SeenByWatch>;

std::vector<SeenByWatch> all_hits(const Project& project) {
  std::vector<SeenByWatch> all;
  std::vector<RunInfo> runs = project.runs();
  for (RunInfo& r : runs) {
    const auto run = std::make_shared<const RunInfo>(std::move(r));
    for (WatchHit& h : project.watch_hits(run->id)) all.push_back({run, std::move(h)});
  }
  return all;
}

const bool registered_watch_hits = register_query_table(
    QueryKind::project,
    {"watch_hits",
     45,
     "every step at which the condition of a watch held",
     QueryColumns<WatchHits>()
         .add(
             "run", Unit::count, "id in runs", [](const WatchHits& w, int64_t i, QueryCell& c) { c.put(w[i].run->id); },
             Found::sorted, Leads::run)
         .add(
             "run_name", Unit::text, "its name",
             [](const WatchHits& w, int64_t i, QueryCell& c) { c.put_standing(w[i].run->name); }, Found::by_looking,
             Leads::run)
         .add(
             "step", Unit::count, "at which it held",
             [](const WatchHits& w, int64_t i, QueryCell& c) { c.put(w[i].hit.step); }, Found::by_looking, Leads::step)
         .add("watch", Unit::text, "its condition",
              [](const WatchHits& w, int64_t i, QueryCell& c) { c.put_standing(w[i].hit.watch); })
         .add("at", Unit::text, "the tensor or the metric that fulfilled it",
              [](const WatchHits& w, int64_t i, QueryCell& c) { c.put_standing(w[i].hit.at); })
         .add("value", Unit::number, "what that was",
              [](const WatchHits& w, int64_t i, QueryCell& c) { c.put(w[i].hit.value); })
         .add("bound", Unit::number, "what it was compared with",
              [](const WatchHits& w, int64_t i, QueryCell& c) { c.put(w[i].hit.bound); })
         .add("begins", Unit::count, "1 where it had not held when it was looked at before",
              [](const WatchHits& w, int64_t i, QueryCell& c) { c.put(static_cast<int64_t>(w[i].hit.begins)); })
         .add("action", Unit::text, "count, mark, checkpoint, pause or stop",
              [](const WatchHits& w, int64_t i, QueryCell& c) {
                c.put(std::string(watch_action_name(w[i].hit.action)));
              }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       return std::make_unique<WatchHits>(all_hits(*s.project));
     },
     {{"What watches saw",
       "SELECT run_name, watch, min(step) AS first, count(*) AS steps, run\nFROM watch_hits GROUP BY "
       "run, watch ORDER BY run, first"}}});

}  // namespace
}  // namespace tenon::projects
