// tenon recipe: what the next run of a project is told.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "engine/templates/templates.h"
#include "engine/train/callback.h"
#include "engine/train/recipe.h"

namespace tenon::app {
namespace {

std::string keys_text(const CallbackRow& c) {
  std::string text;
  for (const std::string& key : c.keys) text += (text.empty() ? "" : " ") + key;
  return text;
}
/// What adds a callback, as it is typed.
std::string adding(const CallbackRow& c, const Recipe& recipe) {
  if (!c.fault.empty()) return c.fault;
  const std::string key = c.keys[0], text = attr_text(with_callback(recipe, c.name).at(key));
  return text.find_first_of(" ;") == text.npos ? fmt::format("--set {}={}", key, text)
                                               : fmt::format("--set '{}={}'", key, text);
}

/// --callbacks: the recipe as what accompanies the run.
void print_callbacks(const Args& args, const Recipe& recipe) {
  std::vector<std::vector<std::string>> on = {{"CALLBACK", "WHAT IT DOES", "WHEN", "KEYS"}},
                                        off = {{"MAY BE ADDED", "WHAT IT DOES", "BY"}};
  for (const CallbackRow& c : callback_rows(recipe)) {
    if (args.json()) {
      nlohmann::json j = {{"callback", c.name}, {"title", c.title}, {"on", c.on}, {"says", c.says}, {"keys", c.keys}};
      if (c.def) j["when"] = moment_text(c.moment);
      if (c.place >= 0) j["place"] = c.place;
      if (!c.fault.empty()) j["fault"] = c.fault;
      print_json(j);
    } else if (c.on) {
      on.push_back({c.title, c.fault.empty() ? c.says : c.fault, c.def ? moment_text(c.moment) : "", keys_text(c)});
    } else {
      off.push_back({c.title, c.says, adding(c, recipe)});
    }
  }
  if (args.json()) return;
  if (on.size() > 1) print(table(on) + "\n");
  print(table(off));
}

int recipe(const Args& args) {
  const auto settings = pairs_of(args, "--set");
  const auto resets = args.all("--reset");
  const bool changes = !settings.empty() || !resets.empty() || args.has("--as") || args.has("--as-template");
  const auto project = changes ? projects::Project::open(args.word(0)) : open_to_read(args.word(0));
  Recipe r = Recipe::from_json(project->recipe());
  if (args.has("--as")) {
    const projects::RunInfo run = project->run(args.text("--as"));
    r = Recipe::from_json(run.recipe_after(run.steps));
  }
  if (args.has("--as-template")) r = trained_as(find_template(args.text("--as-template")), r);
  for (const std::string& key : resets) r.reset(key);
  for (const auto& [key, text] : settings) r.set(key, text);
  for (const auto& [key, text] : settings) r.check_used(key);
  if (changes) project->set_recipe(r.to_json());
  if (args.has("--callbacks")) return print_callbacks(args, r), 0;
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

const bool registered_recipe = register_command(
    {"recipe",
     "PROJECT",
     1,
     1,
     {{"--set", "KEY=VALUE", "a key of the recipe, kept in the project; may be repeated"},
      {"--reset", "KEY", "back to its default; may be repeated"},
      {"--as", "RUN", "the recipe that this run ended with; --reset and --set hold beside it"},
      {"--as-template", "NAME", "how the template of that name trains, on the data of this project"},
      {"--callbacks", "", "what accompanies the run (early stopping, averages, ...), and what else may"},
      {"--all", "", "every key that has a meaning, not only those that were set"},
      {"--json", "", "JSON lines on standard output"}},
     "what the next run of a project is told, and what the last one was",
     recipe});

}  // namespace
}  // namespace tenon::app
