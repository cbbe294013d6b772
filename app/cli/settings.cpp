// tenon settings: what holds for a person and not for one project.
#include "views/shared/settings.h"

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/cache_folder.h"

namespace tenon::app {
namespace {

namespace settings = views::settings;

int show_settings(const Args& args) {
  // Everything is checked before anything is set.
  std::vector<std::pair<std::string, AttrValue>> sets;
  for (const auto& [name, text] : pairs_of(args, "--set"))
    sets.emplace_back(name, parse_attr(settings::find_def(name), text, name));
  const auto resets = args.all("--reset");
  for (const std::string& name : resets) settings::find_def(name);
  for (const std::string& name : resets) settings::reset(name);
  for (const auto& [name, value] : sets) settings::set(name, value);
  if (!sets.empty() || !resets.empty()) {
    cache::set_limit(settings::cache_bytes());
    cache::make_room();
  }

  std::vector<std::vector<std::string>> rows = {{"SETTING", "VALUE", "DEFAULT", "WHAT"}};
  for (const AttrDef& def : settings::defs()) {
    const AttrValue value = settings::get(def.name);
    if (args.json())
      print_json({{"setting", def.name},
                  {"value", attr_to_json(value)},
                  {"default", attr_to_json(def.fallback)},
                  {"allowed", attr_allowed(def)}});
    rows.push_back({def.name, attr_text(value), value == def.fallback ? "" : attr_text(def.fallback), def.help});
  }
  if (!args.json()) print(table(rows));
  return 0;
}

const bool registered_settings =
    register_command({"settings",
                      "",
                      0,
                      0,
                      {{"--set", "NAME=VALUE", "a setting; may be repeated"},
                       {"--reset", "NAME", "back to its default; may be repeated"},
                       kJson},
                      "what holds for you in every project: the window's theme and size of letters, threads",
                      show_settings});

}  // namespace
}  // namespace tenon::app
