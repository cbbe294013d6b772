// tenon cache: what is kept in the user's cache folder and can be made again.
#include "core/cache_folder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/output.h"

namespace tenon::app {
namespace {

int show_cache(const Args& args) {
  const bool empties = args.has("--empty");
  const cache::Held gone = empties ? cache::empty() : cache::Held();
  const auto kinds = cache::held();
  const cache::Held all = cache::held_in_all();
  if (args.json()) {
    nlohmann::json j = {{"folder", cache::folder()},
                        {"limit", cache::limit()},
                        {"files", all.files},
                        {"bytes", all.bytes},
                        {"kinds", nlohmann::json::object()}};
    for (const auto& [kind, held] : kinds) j["kinds"][kind] = {{"files", held.files}, {"bytes", held.bytes}};
    if (empties) j["removed"] = {{"files", gone.files}, {"bytes", gone.bytes}};
    print_json(j);
    return 0;
  }
  if (empties) print(fmt::format("removed: {} in {} files\n", bytes_text(gone.bytes), count_text(gone.files)));
  print(fmt::format("{}: {} of {}\n", cache::folder(), bytes_text(all.bytes), bytes_text(cache::limit())));
  std::vector<std::vector<std::string>> rows = {{"KIND", "FILES", "BYTES"}};
  for (const auto& [kind, held] : kinds) rows.push_back({kind, count_text(held.files), bytes_text(held.bytes)});
  if (rows.size() > 1) print(table(rows, {false, true, true}));
  return 0;
}

const bool registered_cache = register_command(
    {"cache",
     "",
     0,
     0,
     {{"--empty", "", "remove all of it but what a process has open"}, kJson},
     "what is kept in the cache folder to open large files again at once, and the tokens of texts: how much it is, and "
     "how much it may be (`tenon settings --set cache_limit=4`); all of it can be made again",
     show_cache});

}  // namespace
}  // namespace tenon::app
