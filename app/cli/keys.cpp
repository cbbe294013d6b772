// tenon keys: what a recipe may say.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "engine/data/transform.h"
#include "engine/train/recipe.h"
#include "engine/train/recipe_table.h"

namespace tenon::app {
namespace {

/// The definitions one may choose among, with what each is, then every key.
int keys(const Args& args) {
  const std::string prefix = args.words() ? args.word(0) : "";
  std::vector<std::vector<std::string>> chosen = {{"CHOICE", "WHAT"}}, rows = {{"KEY", "DEFAULT", "WHAT"}};
  for (const RecipeGroup& g : recipe_groups())
    for (const auto& m : g.members) {
      const std::string key = g.name + "." + g.selector;
      if (!key.starts_with(prefix)) continue;
      if (args.json()) print_json({{"choice", m.name}, {"key", key}, {"help", m.help}});
      chosen.push_back({key + "=" + m.name, m.help});
    }
  if (std::string key = "data.transforms"; key.starts_with(prefix))
    for (const data::TransformDef& t : data::transforms()) {
      std::string attrs;
      for (const AttrDef& a : t.attrs) attrs += fmt::format(" {}={}", a.name, attr_text(a.fallback));
      if (args.json())
        print_json(
            {{"choice", t.name}, {"key", key}, {"help", t.help}, {"attrs", attrs.empty() ? attrs : attrs.substr(1)}});
      chosen.push_back({key + "=" + t.name + attrs, t.help});
    }
  for (const RecipeKey& k : Recipe::keys()) {
    if (!k.key.starts_with(prefix)) continue;
    if (args.json()) {
      nlohmann::json j = {{"key", k.key}, {"help", k.help}};
      std::visit([&](const auto& v) { j["default"] = v; }, k.fallback);
      if (!k.choices.empty()) j["choices"] = k.choices;
      if (k.min != k.max) j.update({{"min", k.min}, {"max", k.max}});
      print_json(j);
    }
    rows.push_back({k.key, attr_text(k.fallback), k.help});
  }
  if (rows.size() == 1)
    throw Error::usage(fmt::format("a recipe has no keys that begin with \"{}\"", prefix),
                       "`tenon keys` lists all of them");
  if (args.json()) return 0;
  if (chosen.size() > 1) print(table(chosen) + "\n");
  print(table(rows));
  return 0;
}

const bool registered = register_command({"keys",
                                          "[PREFIX]",
                                          0,
                                          1,
                                          {{"--json", "", "JSON lines on standard output"}},
                                          "lists the keys of a recipe, as for --set: tenon keys optimizer",
                                          keys});

}  // namespace
}  // namespace tenon::app
