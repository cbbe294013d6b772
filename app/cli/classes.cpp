// tenon classes: how often each class is a target of a project's data.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "engine/train/class_balance.h"
#include "engine/train/open_data.h"
#include "engine/train/recipe.h"

namespace tenon::app {
namespace {

int list_classes(const Args& args) {
  const auto project = open_to_read(args.word(0));
  Recipe recipe = Recipe::from_json(project->recipe());
  for (const auto& [key, text] : pairs_of(args, "--set")) recipe.set(key, text);
  const std::vector<ClassCount> all = count_classes(open_data(recipe));
  std::vector<std::vector<std::string>> rows = {{"CLASS", "NAME", "TRAIN", "TEST", "BALANCED WEIGHT"}};
  for (size_t i = 0; i < all.size(); ++i) {
    const ClassCount& c = all[i];
    if (args.json())
      print_json({{"class", i}, {"name", c.name}, {"train", c.train}, {"test", c.test}, {"weight", c.weight}});
    rows.push_back({std::to_string(i), c.name, count_text(c.train), count_text(c.test), value_text(c.weight)});
  }
  if (args.json()) return 0;
  if (!all.empty()) print(table(rows, {true, false, true, true, true}));
  print(class_counts_text(all) + "\n");
  return 0;
}

const bool registered_classes =
    register_command({"classes",
                      "PROJECT",
                      1,
                      1,
                      {{"--set", "KEY=VALUE", "a key of the recipe, such as data.dir; may be repeated"}, kJson},
                      "how many samples each class of a project's data has, and the weights that loss.weight=balanced "
                      "gives them",
                      list_classes});

}  // namespace
}  // namespace tenon::app
