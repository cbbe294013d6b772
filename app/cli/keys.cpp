// tenon keys: what a recipe may say.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "engine/data/transform.h"
#include "engine/train/callback.h"
#include "engine/train/recipe.h"
#include "engine/train/recipe_table.h"
#include "engine/train/watch.h"

namespace tenon::app {
namespace {

/// The definitions one may choose among, with what each is, then every key.
int keys(const Args& args) {
  const std::string prefix = args.words() ? args.word(0) : "";
  std::vector<std::vector<std::string>> chosen = {{"CHOICE", "WHAT"}},
                                        rows = {{"KEY", "KIND", "DEFAULT", "MAY BE", "UNIT", "WHAT"}};
  for (const RecipeGroup& g : recipe_groups())
    for (const auto& m : g.members) {
      const std::string key = g.name + "." + g.selector;
      if (!key.starts_with(prefix)) continue;
      if (args.json()) print_json({{"choice", m.name}, {"key", key}, {"help", m.help}});
      chosen.push_back({key + "=" + m.name, m.help});
    }
  const auto listed = [&](const std::string& key, const auto& def) {
    std::string attrs;
    for (const AttrDef& a : def.attrs) {
      std::string value = attr_text(a.fallback);
      std::erase(value, ' ');  // blanks separate settings
      attrs += fmt::format(" {}={}", a.name, value);
    }
    if (args.json())
      print_json(
          {{"choice", def.name}, {"key", key}, {"help", def.help}, {"attrs", attrs.empty() ? attrs : attrs.substr(1)}});
    chosen.push_back({key + "=" + def.name + attrs, def.help});
  };
  if (std::string key = "data.transforms"; key.starts_with(prefix))
    for (const data::TransformDef& t : data::transforms()) listed(key, t);
  if (std::string key = "callbacks"; key.starts_with(prefix))
    for (const CallbackDef& c : callbacks())
      if (c.listed()) listed(key, c);
  if (std::string key = "watches"; key.starts_with(prefix)) {
    const auto part = [&](const std::string& text, const std::string& help) {
      if (args.json()) print_json({{"choice", text}, {"key", key}, {"help", help}});
      chosen.push_back({key + "=" + text, help});
    };
    for (const WatchMeasureDef& m : watch_measures())
      part(fmt::format("{}({}(*)) > 1", m.name, m.by_weights ? "update" : "grad"), m.help);
    for (const WatchSubjectText& s : watch_subjects()) part(fmt::format("norm({}(*)) > 1", s.name), s.help);
    for (const std::string& m : watched_metrics()) part(m + " > 1", "the metric");
    part(std::string(kMemoryGrowth) + " > 1", "bytes a step by which memory grows on");
    for (const WatchAction a : kWatchActions)
      part(fmt::format("loss > 1: {}", watch_action_name(a)), watch_action_help(a));
    part("loss > 3 * median(loss, 50)", "against the median of the 50 values before");
    part("ratio(update(*)) outside 1e-4..1e-2", "not within two bounds");
    part("std(weight(*)) inside 0..1e-6", "within two bounds");
    part("norm(weight(*)) > 100 every 10", "looked at in every tenth step");
  }
  for (const AttrDef& k : Recipe::keys()) {
    if (!k.name.starts_with(prefix)) continue;
    if (args.json()) {
      nlohmann::json j = {{"key", k.name}, {"kind", attr_kind(k.fallback)}, {"default", attr_to_json(k.fallback)}};
      if (!k.choices.empty()) j["choices"] = k.choices;
      if (k.min != k.max) j.update({{"min", k.min}, {"max", k.max}});
      if (!k.unit.empty()) j["unit"] = k.unit;
      j["help"] = k.help;
      print_json(j);
    }
    // The choices of a definition are the table above.
    const bool chooses = chosen.size() > 1 && std::any_of(chosen.begin(), chosen.end(), [&](const auto& row) {
                           return row[0].starts_with(k.name + "=");
                         });
    const std::string may_be = chooses             ? "see above"
                               : k.choices.empty() ? attr_range(k)
                                                   : fmt::format("{}", fmt::join(k.choices, ", "));
    rows.push_back({k.name, attr_kind(k.fallback), attr_text(k.fallback), may_be, k.unit, k.help});
  }
  if (rows.size() == 1)
    throw Error::usage(fmt::format("a recipe has no keys that begin with \"{}\"", prefix),
                       "`tenon keys` lists all of them");
  if (args.json()) return 0;
  if (chosen.size() > 1) print(table(chosen) + "\n");
  print(table(rows));
  return 0;
}

const bool registered_keys = register_command({"keys",
                                               "[PREFIX]",
                                               0,
                                               1,
                                               {{"--json", "", "JSON lines on standard output"}},
                                               "lists the keys of a recipe, as for --set: tenon keys optimizer",
                                               keys});

}  // namespace
}  // namespace tenon::app
