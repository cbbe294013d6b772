// tenon weights: which tensors of a file a model would begin with.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "projects/weights_file.h"

namespace tenon::app {
namespace {

std::string size_text(const std::vector<int64_t>& v) { return fmt::format("[{}]", fmt::join(v, ", ")); }

int weight_rows(const Args& args) {
  const auto settings = pairs_of(args, "--set");
  const auto project = args.has("--keep") ? projects::Project::open(args.word(0)) : open_to_read(args.word(0));
  Recipe recipe = Recipe::from_json(project->recipe());
  if (args.words() > 1) {
    for (const char* key : {"init.run", "init.sha256"}) recipe.reset(key);
    recipe.set("init.from", args.word(1));
  }
  for (const auto& [key, text] : settings) recipe.set(key, text);
  if (!projects::begins_with_weights(recipe))
    throw Error::usage(fmt::format("the recipe of {} names no weights to begin with", project->path()),
                       "Name a file, or a run of this project with --set init.run=RUN@best.");
  catch_interrupts();
  Bar bar("reading");
  const WeightMap map = projects::weight_table(*project, project->model(), recipe, bar.progress());
  bar.clear();
  if (args.has("--keep")) project->set_recipe(recipe.to_json());
  std::vector<std::vector<std::string>> rows = {{"MODEL", "SHAPE", "", "FILE", "SHAPE", "TYPE", "HOW"}};
  for (const WeightRow& r : map.rows) {
    const ModelTensor* t = r.target < 0 ? nullptr : &map.model[static_cast<size_t>(r.target)];
    const GivenTensor* g = r.source < 0 ? nullptr : &map.given[static_cast<size_t>(r.source)];
    const std::string how = g && !g->problem.empty() ? fmt::format("{}: {}", name(r.state), g->problem) : name(r.state);
    if (args.json()) {
      nlohmann::json j = {{"state", name(r.state)}, {"taken", r.taken()}};
      if (t) j.update({{"model", t->name}, {"shape", t->shape}, {"buffer", t->buffer}, {"frozen", t->frozen}});
      if (g) j.update({{"file", g->name}, {"file_shape", g->shape}, {"file_type", g->dtype}});
      if (g && !g->problem.empty()) j["problem"] = g->problem;
      print_json(j);
    }
    rows.push_back({t ? t->name : "", t ? size_text(t->shape) : "", t && t->frozen ? "frozen" : "", g ? g->name : "",
                    g ? size_text(g->shape) : "", g ? g->dtype : "", how});
  }
  if (args.json()) {
    nlohmann::json j = {{"taken", map.taken()}, {"tensors", map.model.size()}};
    if (!map.rule.empty()) j.update({{"rule", map.rule}, {"rule_pairs", map.rule_pairs}});
    print_json(j);
    return 0;
  }
  print(table(rows) + map.text() + "\n");
  if (!map.rule.empty())
    print(fmt::format("--set 'init.map={}' would pair {} more by name\n", map.rule, map.rule_pairs));
  if (map.count(WeightState::suggested) > 0) print("--set init.match=shape takes what the shapes suggest\n");
  return 0;
}

const bool registered_weights =
    register_command({"weights",
                      "PROJECT [FILE]",
                      1,
                      2,
                      {{"--set", "KEY=VALUE", "a key of the recipe, such as init.map; may be repeated"},
                       {"--keep", "", "keep FILE and the keys in the project: its next run begins with these weights"},
                       kJson},
                      "which tensors of a file (or of a run) the model of a project would begin with",
                      weight_rows});

}  // namespace
}  // namespace tenon::app
