// tenon run: one run, and what is done to it as a whole.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "engine/train/recipe.h"
#include "projects/finish.h"
#include "projects/surgery.h"
#include "views/runs/run_row.h"

namespace tenon::app {
namespace {

using projects::Project;
using projects::RunInfo;

/// Also where the run is deleted.
RunInfo find_run(const Project& project, const std::string& name) {
  for (const RunInfo& r : project.deleted_runs())
    if (r.name == name) {
      const auto all = project.runs();
      if (std::none_of(all.begin(), all.end(), [&](const RunInfo& o) { return o.name == name; })) return r;
    }
  return project.run(name);
}

void edit_run(Project& project, const Args& args, const RunInfo& run) {
  if (args.has("--undelete")) project.undelete_runs({run.id});
  if (args.has("--rename")) project.rename_run(run.id, args.text("--rename"));
  if (args.has("--note") || args.has("--tag") || args.has("--untag")) {
    std::vector<std::string> tags = run.tags;
    for (const std::string& t : args.all("--untag"))
      if (std::erase(tags, t) == 0)
        throw Error::usage(fmt::format("run {} has no tag \"{}\"", run.name, t),
                           tags.empty() ? "It has none." : "It has: " + views::tags_text(run));
    for (const std::string& t : args.all("--tag")) tags.push_back(t);
    project.describe_run(run.id, args.text("--note", run.note), tags);
  }
  if (args.has("--delete")) {
    if (run.status == "running" || run.status == "paused")
      throw Error::usage(fmt::format("run {} is being trained", run.name), "Stop it first.");
    project.delete_runs({run.id});
  }
}

/// One line a change: "after step 120: optimizer.lr 0.01 → 0.003".
std::vector<std::string> history(const RunInfo& run) {
  std::vector<std::string> lines;
  Recipe before = Recipe::from_json(run.recipe);
  for (const projects::RecipeChange& c : run.changes) {
    Recipe after = Recipe::from_json(c.recipe);
    lines.push_back(fmt::format("after step {}: {}", count_text(c.step), difference_text(differences(before, after))));
    before = std::move(after);
  }
  return lines;
}

/// "cnn-01 after step 300: optimizer.lr 0.01 → 0.003"; empty where it is no branch.
std::string branch_text(const Project& project, const RunInfo& r) {
  if (!r.branch) return {};
  const std::string changes = views::branch_changes(project.run(r.branch.run), r);
  return fmt::format("{} after step {}{}", r.branch.name, count_text(r.branch.step),
                     changes.empty() ? ", without a change" : ": " + changes);
}

void show_run(const Project& project, const RunInfo& r, bool deleted) {
  std::vector<std::vector<std::string>> rows = {
      {"name", r.name},
      {"status", projects::status_text(r) + (deleted ? ", deleted: --undelete brings it back" : "")},
      {"steps", fmt::format("{} of {}", count_text(r.steps), count_text(r.total_steps))},
      {"time", duration_text(r.seconds)},
      {"begun", r.created}};
  if (!r.best.is_null())
    rows.push_back({"best", fmt::format("{} {} at step {}", r.best.at("metric").get<std::string>(),
                                        value_text(r.best.at("value").get<double>()),
                                        count_text(r.best.at("step").get<int64_t>()))});
  if (r.branch) rows.push_back({"parent", branch_text(project, r)});
  if (!r.tags.empty()) rows.push_back({"tags", views::tags_text(r)});
  if (!r.note.empty()) rows.push_back({"note", r.note});
  if (!r.error.empty()) rows.push_back({r.status == "failed" ? "error" : "why", r.error});
  for (const std::string& line : history(r)) rows.push_back({"recipe", line});
  for (const auto& row : rows) print(fmt::format("{:<8}{}\n", row[0], row[1]));
}

int compare(const Project& project, const Args& args, const RunInfo& run) {
  const RunInfo other = project.run(args.text("--against"));
  const auto all =
      differences(Recipe::from_json(other.recipe_after(other.steps)), Recipe::from_json(run.recipe_after(run.steps)));
  std::vector<std::vector<std::string>> rows = {{"KEY", other.name, run.name}};
  for (const KeyDifference& d : all) {
    if (args.json()) print_json({{"key", d.key}, {other.name, d.from}, {run.name, d.to}});
    rows.push_back({d.key, d.from.empty() ? "–" : d.from, d.to.empty() ? "–" : d.to});
  }
  if (args.json()) return 0;
  if (all.empty())
    print(fmt::format("{} and {} were told the same\n", other.name, run.name));
  else
    print(table(rows));
  return 0;
}

int one_run(const Args& args) {
  const char* kEdits[] = {"--rename", "--note", "--tag", "--untag", "--delete", "--undelete"};
  const bool edits = std::any_of(std::begin(kEdits), std::end(kEdits), [&](const char* o) { return args.has(o); });
  const auto project = edits ? Project::open(args.word(0)) : open_to_read(args.word(0));
  const int64_t id = find_run(*project, args.word(1)).id;
  if (edits) edit_run(*project, args, project->run(id));
  const RunInfo r = project->run(id);
  if (args.has("--against")) return compare(*project, args, r);
  const auto gone = project->deleted_runs();
  const bool deleted = std::any_of(gone.begin(), gone.end(), [&](const RunInfo& d) { return d.id == id; });
  if (!args.json()) return show_run(*project, r, deleted), 0;
  nlohmann::json changes = nlohmann::json::array();
  for (const projects::RecipeChange& c : r.changes)
    changes.push_back({{"step", c.step}, {"created", c.created}, {"recipe", c.recipe}});
  nlohmann::json parent;
  if (r.branch)
    parent = {{"run", r.branch.name},
              {"step", r.branch.step},
              {"model", projects::model_changes(project->run(r.branch.run).model, r.model)}};
  print_json({{"id", r.id},
              {"parent", parent},
              {"name", r.name},
              {"status", r.status},
              {"deleted", deleted},
              {"created", r.created},
              {"steps", r.steps},
              {"total_steps", r.total_steps},
              {"seconds", r.seconds},
              {"best", r.best},
              {"tags", r.tags},
              {"note", r.note},
              {"error", r.error},
              {"recipe", r.recipe},
              {"changes", changes}});
  return 0;
}

const bool registered_run =
    register_command({"run",
                      "PROJECT RUN",
                      2,
                      2,
                      {{"--rename", "NAME", "another name"},
                       {"--note", "TEXT", "what there is to say of it"},
                       {"--tag", "WORD", "a word it is found by (tenon runs --filter 'tags ~ WORD'); may be repeated"},
                       {"--untag", "WORD", "takes a tag away; may be repeated"},
                       {"--delete", "", "out of every list; its steps stay in the file"},
                       {"--undelete", "", "brings it back"},
                       {"--against", "RUN", "the keys of the recipe in which it differs from another run"},
                       kJson},
                      "one run: its words, the changes of its recipe; rename, note, tag, delete, bring back",
                      one_run});

}  // namespace
}  // namespace tenon::app
