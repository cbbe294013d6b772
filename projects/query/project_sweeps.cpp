// The sweeps of a project and their trials.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "projects/project.h"
#include "projects/query/query_table.h"

namespace tenon::projects {
namespace {

using tracing::Unit;
using Found = QueryColumn::Found;
using Leads = QueryColumn::Leads;

using SweepList = QueryList<SweepInfo>;

/// A text of the plan, which may be damaged.
void put_plan_text(QueryCell& out, const SweepInfo& sweep, const char* key) {
  if (sweep.plan.is_object() && sweep.plan.contains(key) && sweep.plan[key].is_string())
    out.put(sweep.plan[key].get<std::string>());
}

const bool registered_sweeps = register_query_table(
    QueryKind::project,
    {"sweeps", 55, "searches over keys of the recipe, without those that were deleted",
     QueryColumns<SweepList>()
         .add(
             "id", Unit::count, "number of the sweep",
             [](const SweepList& s, int64_t i, QueryCell& c) { c.put(s[i].id); }, Found::unique)
         .add("name", Unit::text, "its own",
              [](const SweepList& s, int64_t i, QueryCell& c) { c.put_standing(s[i].name); })
         .add("created", Unit::text, "ISO 8601, UTC",
              [](const SweepList& s, int64_t i, QueryCell& c) { c.put_standing(s[i].created); })
         .add("method", Unit::text, "grid, random, bayes, ...",
              [](const SweepList& s, int64_t i, QueryCell& c) { put_plan_text(c, s[i], "method"); })
         .add("metric", Unit::text, "what is searched for",
              [](const SweepList& s, int64_t i, QueryCell& c) { put_plan_text(c, s[i], "metric"); })
         .add("goal", Unit::text, "min or max",
              [](const SweepList& s, int64_t i, QueryCell& c) { put_plan_text(c, s[i], "goal"); })
         .add("trials", Unit::count, "that were chosen so far",
              [](const SweepList& s, int64_t i, QueryCell& c) { c.put(static_cast<int64_t>(s[i].trials.size())); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       return std::make_unique<SweepList>(s.project->sweeps());
     }});

struct Trials final : QueryRows {
  explicit Trials(std::vector<SweepInfo> of) : sweeps(std::move(of)) {
    for (const SweepInfo& s : sweeps)
      for (const TrialInfo& t : s.trials) all.emplace_back(&s, &t);
  }
  int64_t end() const override { return static_cast<int64_t>(all.size()); }
  const SweepInfo& sweep(int64_t i) const { return *all[static_cast<size_t>(i)].first; }
  const TrialInfo& operator[](int64_t i) const { return *all[static_cast<size_t>(i)].second; }
  std::vector<SweepInfo> sweeps;
  std::vector<std::pair<const SweepInfo*, const TrialInfo*>> all;
};

const bool registered_trials = register_query_table(
    QueryKind::project,
    {"trials",
     60,
     "the trials of all sweeps; what each was told stands in recipe, by its run",
     QueryColumns<Trials>()
         .add(
             "sweep", Unit::count, "id in sweeps",
             [](const Trials& t, int64_t i, QueryCell& c) { c.put(t.sweep(i).id); }, Found::sorted)
         .add("sweep_name", Unit::text, "its name",
              [](const Trials& t, int64_t i, QueryCell& c) { c.put_standing(t.sweep(i).name); })
         .add("trial", Unit::count, "its number, from 1",
              [](const Trials& t, int64_t i, QueryCell& c) { c.put(t[i].number); })
         .add(
             "run", Unit::count, "id in runs; NULL: it has not begun, or could not",
             [](const Trials& t, int64_t i, QueryCell& c) {
               if (t[i].run) c.put(t[i].run);
             },
             Found::by_looking, Leads::run)
         .add("state", Unit::text, "open, finished, pruned or failed",
              [](const Trials& t, int64_t i, QueryCell& c) { c.put_standing(t[i].state); })
         .add("value", Unit::number, "what it came to; NULL where it came to nothing",
              [](const Trials& t, int64_t i, QueryCell& c) { c.put(t[i].value); })
         .add("settings", Unit::text, "what was chosen: \"optimizer.lr=0.01 seed=2\"",
              [](const Trials& t, int64_t i, QueryCell& c) {
                std::string all;
                for (const auto& pair : t[i].settings)
                  if (pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_string())
                    all += (all.empty() ? "" : " ") + pair[0].get<std::string>() + "=" + pair[1].get<std::string>();
                c.put(std::move(all));
              })
         .add("error", Unit::text, "why it failed",
              [](const Trials& t, int64_t i, QueryCell& c) { c.put_standing(t[i].error); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<Trials>(s.project->sweeps()); },
     {{"Trials from the best", "SELECT sweep_name, trial, value, settings, run\nFROM trials ORDER BY sweep, value"}}});

}  // namespace
}  // namespace tenon::projects
