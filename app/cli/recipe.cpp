// tenon recipe: what the next run of a project is told.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "engine/train/recipe.h"

namespace tenon::app {
namespace {

int recipe(const Args& args) {
  const auto settings = pairs_of(args, "--set");
  const auto resets = args.all("--reset");
  const bool changes = !settings.empty() || !resets.empty();
  const auto project = changes ? projects::Project::open(args.word(0)) : open_to_read(args.word(0));
  Recipe r = Recipe::from_json(project->recipe());
  for (const std::string& key : resets) r.reset(key);
  for (const auto& [key, text] : settings) r.set(key, text);
  for (const auto& [key, text] : settings) r.check_used(key);
  if (changes) project->set_recipe(r.to_json());
  const auto runs = project->runs();
  std::optional<Recipe> last;
  try {
    if (!runs.empty()) last = Recipe::from_json(runs.back().recipe_after(runs.back().steps));
  } catch (const Error&) {  // of a plug-in that is not here: nothing to compare with
  }
  std::vector<std::vector<std::string>> rows = {{"KEY", "VALUE", "DEFAULT", "LAST RUN", "WHAT"}};
  for (const AttrDef& k : r.used_keys()) {
    const AttrValue &value = r.at(k.name), &usual = r.fallback(k.name);
    if (args.json()) {
      nlohmann::json j = {{"key", k.name}, {"value", attr_to_json(value)}, {"default", attr_to_json(usual)}};
      if (last) j["last_run"] = attr_to_json(last->at(k.name));
      print_json(j);
    }
    const bool other = last && last->at(k.name) != value;
    if (args.has("--all") || value != usual || other)
      rows.push_back({k.name, attr_text(value), value == usual ? "" : attr_text(usual),
                      other ? attr_text(last->at(k.name)) : "", k.help});
  }
  if (args.json()) return 0;
  print(table(rows));
  if (!args.has("--all")) print("The other keys have their defaults: --all lists them.\n");
  return 0;
}

const bool registered_recipe =
    register_command({"recipe",
                      "PROJECT",
                      1,
                      1,
                      {{"--set", "KEY=VALUE", "a key of the recipe, kept in the project; may be repeated"},
                       {"--reset", "KEY", "back to its default; may be repeated"},
                       {"--all", "", "every key that has a meaning, not only those that were set"},
                       {"--json", "", "JSON lines on standard output"}},
                      "what the next run of a project is told, and what the last one was",
                      recipe});

}  // namespace
}  // namespace tenon::app
