// What the runs of a project did on their way.
#include "projects/project.h"
#include "projects/query/query_table.h"

namespace tenon::projects {
namespace {

using tracing::Unit;
using Found = QueryColumn::Found;
using Leads = QueryColumn::Leads;

struct EventOfRun {
  std::shared_ptr<const RunInfo> run;
  RunEvent event;
};
using EventRows = QueryList<EventOfRun>;

std::vector<EventOfRun> all_events(const Project& project) {
  std::vector<EventOfRun> all;
  std::vector<RunInfo> runs = project.runs();
  for (RunInfo& r : runs) {
    const auto run = std::make_shared<const RunInfo>(std::move(r));
    for (RunEvent& e : project.events(run->id)) all.push_back({run, std::move(e)});
  }
  return all;
}

const bool registered_run_events = register_query_table(
    QueryKind::project,
    {"run_events",
     46,
     "what runs did on their way, such as making a plan of their steps or having to do without one",
     QueryColumns<EventRows>()
         .add(
             "run", Unit::count, "id in runs", [](const EventRows& e, int64_t i, QueryCell& c) { c.put(e[i].run->id); },
             Found::sorted, Leads::run)
         .add(
             "run_name", Unit::text, "its name",
             [](const EventRows& e, int64_t i, QueryCell& c) { c.put_standing(e[i].run->name); }, Found::by_looking,
             Leads::run)
         .add(
             "step", Unit::count, "after which it is told",
             [](const EventRows& e, int64_t i, QueryCell& c) { c.put(e[i].event.step); }, Found::by_looking,
             Leads::step)
         .add("kind", Unit::text, "plan, or op by op: why steps come from none",
              [](const EventRows& e, int64_t i, QueryCell& c) { c.put_standing(e[i].event.kind); })
         .add("text", Unit::text, "a sentence",
              [](const EventRows& e, int64_t i, QueryCell& c) { c.put_standing(e[i].event.text); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       return std::make_unique<EventRows>(all_events(*s.project));
     },
     {{"What became of plans",
       "SELECT run_name, step, text, run\nFROM run_events WHERE kind IN ('plan', 'op by op') ORDER BY run, step"}}});

}  // namespace
}  // namespace tenon::projects
