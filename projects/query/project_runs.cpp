// The runs of a project, what they were told, and what the project keeps of them.
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "projects/finish.h"
#include "projects/project.h"
#include "projects/query/query_table.h"
#include "projects/recipe_keys.h"

namespace tenon::projects {
namespace {

using tracing::Unit;
using Found = QueryColumn::Found;
using Leads = QueryColumn::Leads;

using RunList = QueryList<RunInfo>;

std::vector<QueryColumn> run_columns() {
  using R = RunList;
  return QueryColumns<R>()
      .add(
          "id", Unit::count, "number of the run", [](const R& r, int64_t i, QueryCell& c) { c.put(r[i].id); },
          Found::unique, Leads::run)
      .add(
          "name", Unit::text, "of the run", [](const R& r, int64_t i, QueryCell& c) { c.put_standing(r[i].name); },
          Found::by_looking, Leads::run)
      .add("status", Unit::text, "running, paused, finished, stopped early, stopped, failed, pruned or interrupted",
           [](const R& r, int64_t i, QueryCell& c) { c.put(status_text(r[i])); })
      .add("created", Unit::text, "ISO 8601, UTC",
           [](const R& r, int64_t i, QueryCell& c) { c.put_standing(r[i].created); })
      .add("steps", Unit::count, "that are done", [](const R& r, int64_t i, QueryCell& c) { c.put(r[i].steps); })
      .add("total_steps", Unit::count, "when it finishes",
           [](const R& r, int64_t i, QueryCell& c) { c.put(r[i].total_steps); })
      .add("seconds", Unit::number, "spent training", [](const R& r, int64_t i, QueryCell& c) { c.put(r[i].seconds); })
      .add("best_metric", Unit::text, "that the best state was chosen by; NULL before the first evaluation",
           [](const R& r, int64_t i, QueryCell& c) {
             if (!r[i].best.is_null()) c.put(r[i].best["metric"].get<std::string>());
           })
      .add("best_value", Unit::number, "of that metric; NULL before the first evaluation",
           [](const R& r, int64_t i, QueryCell& c) {
             if (!r[i].best.is_null()) c.put(r[i].best["value"].get<double>());
           })
      .add("best_step", Unit::count, "where it was; NULL before the first evaluation",
           [](const R& r, int64_t i, QueryCell& c) {
             if (!r[i].best.is_null()) c.put(r[i].best["step"].get<int64_t>());
           })
      .add("model", Unit::text, "its name",
           [](const R& r, int64_t i, QueryCell& c) { c.put_standing(r[i].model.name); })
      .add("parent", Unit::text, "run that a branch went on from; NULL of others",
           [](const R& r, int64_t i, QueryCell& c) {
             if (r[i].branch) c.put_standing(r[i].branch.name);
           })
      .add("parent_step", Unit::count, "after which a branch went on; NULL of others",
           [](const R& r, int64_t i, QueryCell& c) {
             if (r[i].branch) c.put(r[i].branch.step);
           })
      .add("epoch_steps", Unit::count, "steps of an epoch; NULL where it is not known",
           [](const R& r, int64_t i, QueryCell& c) {
             if (const EpochLength e = epoch_of(r[i]); e.steps > 0) c.put(e.steps);
           })
      .add("tags", Unit::text, "with commas between them",
           [](const R& r, int64_t i, QueryCell& c) {
             std::string all;
             for (const std::string& t : r[i].tags) all += (all.empty() ? "" : ", ") + t;
             c.put(std::move(all));
           })
      .add("note", Unit::text, "what a person says of it",
           [](const R& r, int64_t i, QueryCell& c) { c.put_standing(r[i].note); })
      .add("error", Unit::text, "why it failed, or was pruned",
           [](const R& r, int64_t i, QueryCell& c) { c.put_standing(r[i].error); });
}

const bool registered_runs = register_query_table(
    QueryKind::project,
    {"runs",
     10,
     "every run, without those that were deleted",
     run_columns(),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<RunList>(s.project->runs()); },
     {{"Runs by their time", "SELECT name, steps, seconds, status, best_value, id FROM runs ORDER BY seconds DESC"},
      {"How runs ended", "SELECT status, count(*) AS runs, sum(seconds) AS seconds FROM runs GROUP BY status"}}});

/// A value of a recipe. That of a key that was changed on the way has a row for each value.
struct RecipeValue {
  const RunInfo* run;
  int64_t since;
  std::string key;
  nlohmann::json value;
};
struct RecipeValues final : QueryRows {
  explicit RecipeValues(std::vector<RunInfo> of) : runs(std::move(of)) {
    for (const RunInfo& r : runs) {
      std::unordered_map<std::string, nlohmann::json> told;
      const auto add = [&](const nlohmann::json& recipe, int64_t since) {
        each_recipe_key(recipe, [&](const std::string& key, const nlohmann::json& value) {
          auto [at, fresh] = told.try_emplace(key, value);
          if (!fresh && at->second == value) return;
          at->second = value;
          all.push_back({&r, since, key, value});
        });
      };
      add(r.recipe, 0);
      for (const RecipeChange& c : r.changes) add(c.recipe, c.step);
    }
  }
  int64_t end() const override { return static_cast<int64_t>(all.size()); }
  const RecipeValue& operator[](int64_t i) const { return all[static_cast<size_t>(i)]; }
  std::vector<RunInfo> runs;
  std::vector<RecipeValue> all;
};

const bool registered_recipe = register_query_table(
    QueryKind::project,
    {"recipe",
     20,
     "what every run was told, a row a key; a key that was changed on the way has a row for each of its values",
     QueryColumns<RecipeValues>()
         .add(
             "run", Unit::count, "id in runs",
             [](const RecipeValues& v, int64_t i, QueryCell& c) { c.put(v[i].run->id); }, Found::sorted, Leads::run)
         .add(
             "run_name", Unit::text, "its name",
             [](const RecipeValues& v, int64_t i, QueryCell& c) { c.put_standing(v[i].run->name); }, Found::by_looking,
             Leads::run)
         .add("key", Unit::text, "as --set takes it: optimizer.lr",
              [](const RecipeValues& v, int64_t i, QueryCell& c) { c.put_standing(v[i].key); })
         .add("value", Unit::text, "as text",
              [](const RecipeValues& v, int64_t i, QueryCell& c) {
                const nlohmann::json& j = v[i].value;
                c.put(j.is_string() ? j.get<std::string>() : j.dump());
              })
         .add("number", Unit::number, "as a number; NULL where it is none",
              [](const RecipeValues& v, int64_t i, QueryCell& c) {
                if (v[i].value.is_number()) c.put(v[i].value.get<double>());
              })
         .add("since", Unit::count, "of the steps after this one; 0: from the beginning",
              [](const RecipeValues& v, int64_t i, QueryCell& c) { c.put(v[i].since); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       return std::make_unique<RecipeValues>(s.project->runs());
     },
     {{"Learning rates compared",
       "SELECT c.number AS lr, count(*) AS runs, avg(r.best_value) AS mean_best, max(r.best_value) AS highest\nFROM "
       "runs r "
       "JOIN recipe c ON c.run = r.id AND c.key = 'optimizer.lr'\nGROUP BY lr ORDER BY lr"}}});

/// Runs' names by their numbers.
using RunNames = std::unordered_map<int64_t, std::string>;
RunNames names_of_runs(const Project& project) {
  RunNames names;
  for (RunInfo& r : project.runs()) names.emplace(r.id, std::move(r.name));
  return names;
}
void put_run_name(QueryCell& out, const RunNames& names, int64_t run) {
  if (const auto at = names.find(run); at != names.end()) out.put_standing(at->second);
}

struct CheckpointList final : QueryList<CheckpointInfo> {
  explicit CheckpointList(const Project& p) : QueryList(kept(p)), names(names_of_runs(p)) {}
  /// Without those of deleted runs.
  static std::vector<CheckpointInfo> kept(const Project& p) {
    const RunNames names = names_of_runs(p);
    auto all = p.all_checkpoints();
    std::erase_if(all, [&](const CheckpointInfo& c) { return !names.count(c.run); });
    return all;
  }
  RunNames names;
};

const bool registered_checkpoints = register_query_table(
    QueryKind::project,
    {"checkpoints",
     50,
     "the states that are kept",
     QueryColumns<CheckpointList>()
         .add(
             "id", Unit::count, "number of the checkpoint",
             [](const CheckpointList& l, int64_t i, QueryCell& c) { c.put(l[i].id); }, Found::by_looking,
             Leads::checkpoint)
         .add(
             "run", Unit::count, "id in runs",
             [](const CheckpointList& l, int64_t i, QueryCell& c) { c.put(l[i].run); }, Found::sorted, Leads::run)
         .add(
             "run_name", Unit::text, "its name",
             [](const CheckpointList& l, int64_t i, QueryCell& c) { put_run_name(c, l.names, l[i].run); },
             Found::by_looking, Leads::run)
         .add(
             "step", Unit::count, "after which it is",
             [](const CheckpointList& l, int64_t i, QueryCell& c) { c.put(l[i].step); }, Found::by_looking, Leads::step)
         .add("created", Unit::text, "ISO 8601, UTC",
              [](const CheckpointList& l, int64_t i, QueryCell& c) { c.put_standing(l[i].created); })
         .add("bytes", Unit::bytes, "of its tensors",
              [](const CheckpointList& l, int64_t i, QueryCell& c) { c.put(l[i].bytes); })
         .add("stored_bytes", Unit::bytes, "that it added to the file",
              [](const CheckpointList& l, int64_t i, QueryCell& c) { c.put(l[i].stored_bytes); })
         .add("best", Unit::count, "1: the run's best state, else 0",
              [](const CheckpointList& l, int64_t i, QueryCell& c) { c.put(int64_t{l[i].best}); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<CheckpointList>(*s.project); },
     {{"Room that checkpoints take",
       "SELECT run_name, count(*) AS checkpoints, sum(stored_bytes), run\nFROM checkpoints GROUP BY run ORDER BY "
       "sum(stored_bytes) DESC"}}});

struct ArtifactList final : QueryList<ArtifactInfo> {
  ArtifactList(std::shared_ptr<const Project> p, const std::string& kind)
      : QueryList(p->artifacts(0, kind)), project(std::move(p)) {}
  std::shared_ptr<const Project> project;
};

const bool registered_artifacts = register_query_table(
    QueryKind::project,
    {"artifacts", 80, "what the project keeps beside its runs: traces, snapshots, exports, findings",
     QueryColumns<ArtifactList>()
         .add("id", Unit::count, "as `tenon artifacts` takes it",
              [](const ArtifactList& l, int64_t i, QueryCell& c) { c.put(l[i].id); })
         .add(
             "run", Unit::count, "id in runs; NULL: of none",
             [](const ArtifactList& l, int64_t i, QueryCell& c) {
               if (l[i].run) c.put(l[i].run);
             },
             Found::by_looking, Leads::run)
         .add("step", Unit::count, "it belongs to",
              [](const ArtifactList& l, int64_t i, QueryCell& c) { c.put(l[i].step); })
         .add("kind", Unit::text, "trace, memory, anomaly, export, finding or note",
              [](const ArtifactList& l, int64_t i, QueryCell& c) { c.put_standing(l[i].kind); })
         .add("name", Unit::text, "its own",
              [](const ArtifactList& l, int64_t i, QueryCell& c) { c.put_standing(l[i].name); })
         .add("created", Unit::text, "ISO 8601, UTC",
              [](const ArtifactList& l, int64_t i, QueryCell& c) { c.put_standing(l[i].created); })
         .add("bytes", Unit::bytes, "its size",
              [](const ArtifactList& l, int64_t i, QueryCell& c) { c.put(l[i].bytes); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       return std::make_unique<ArtifactList>(s.project, "");
     }});

const bool registered_findings = register_query_table(
    QueryKind::project,
    {"findings", 70, "what the analyses said of the traces and snapshots that were imported",
     QueryColumns<ArtifactList>()
         .add("artifact", Unit::count, "id in artifacts",
              [](const ArtifactList& l, int64_t i, QueryCell& c) { c.put(l[i].id); })
         .add("name", Unit::text, "file and analysis: \"trace.json: why\"",
              [](const ArtifactList& l, int64_t i, QueryCell& c) { c.put_standing(l[i].name); })
         .add("sentence", Unit::text, "what it says",
              [](const ArtifactList& l, int64_t i, QueryCell& c) {
                const auto j = nlohmann::json::parse(l.project->artifact(l[i].id), nullptr, false);
                if (j.is_object() && j.contains("sentence") && j["sentence"].is_string())
                  c.put(j["sentence"].get<std::string>());
              })
         .add("json", Unit::text, "all of it, its figures and tables: json_extract(json, '$.sentence')",
              [](const ArtifactList& l, int64_t i, QueryCell& c) { c.put(l.project->artifact(l[i].id)); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       return std::make_unique<ArtifactList>(s.project, "finding");
     }});

}  // namespace
}  // namespace tenon::projects
