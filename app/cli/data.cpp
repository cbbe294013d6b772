// tenon data: what a project learns from, looked at before anything is trained on it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "app/cli/remarks.h"
#include "engine/train/recipe.h"
#include "views/data/data_look.h"

namespace tenon::app {
namespace {

nlohmann::json part_json(const data::Survey::Part& p) {
  return {{"samples", p.samples},
          {"values", p.values},
          {"not_finite", p.not_finite},
          {"min", json_number(p.min)},
          {"max", json_number(p.max)},
          {"mean", json_number(p.mean)},
          {"deviation", json_number(p.deviation)}};
}

nlohmann::json look_json(const views::DataLook& look) {
  nlohmann::json j = {{"dataset", look.dataset},
                      {"dir", look.dir},
                      {"task", look.task},
                      {"input", look.input},
                      {"target", look.target},
                      {"train_samples", look.train_samples},
                      {"test_samples", look.test_samples},
                      {"remarks", remarks_json(look.remarks)}};
  if (!look.survey) return j;
  j["train"] = part_json(look.survey->train);
  j["test"] = part_json(look.survey->test);
  j["duplicates"] = look.survey->duplicates;
  j["conflicts"] = look.survey->conflicts;
  j["leaks"] = look.survey->leaks;
  for (const ClassCount& c : look.classes)
    j["classes"].push_back({{"name", c.name}, {"train", c.train}, {"test", c.test}, {"weight", c.weight}});
  return j;
}

int look_at_data(const Args& args) {
  const auto project = open_to_read(args.word(0));
  Recipe recipe = Recipe::from_json(project->recipe());
  for (const auto& [key, text] : pairs_of(args, "--set")) recipe.set(key, text);
  catch_interrupts();
  Bar bar("reading");
  const views::DataLook look =
      views::look_at(recipe, args.has("--quick") ? views::Reading::opened : views::Reading::all,
                     args.integer("--rows", 0, 0), bar.progress());
  bar.clear();
  if (args.json()) {
    print_json(look_json(look));
    for (const views::DataLook::Sample& s : look.samples)
      print_json({{"sample", s.row},
                  {"split", s.train ? "training" : "test"},
                  {"target", s.target},
                  {"source", source_json(s.source)}});
    return 0;
  }
  print(views::data_text(look) + "\n");
  print_table(views::splits_table(look));
  print("\n" + remarks_text(look.remarks));
  if (!look.classes.empty()) print(class_counts_text(look.classes) + "\n");
  if (!look.samples.empty()) print_table(views::samples_table(look));
  return 0;
}

const bool registered_data = register_command(
    {"data",
     "PROJECT",
     1,
     1,
     {{"--quick", "", "only opens the data: does not read every sample"},
      {"--rows", "N", "lists the first samples of each split, with the file and the place each comes from"},
      {"--set", "KEY=VALUE", "a key of the recipe, such as data.dir; may be repeated"},
      kJson},
     "what a project learns from: how its files were read, and what looks wrong in them, with file and row",
     look_at_data});

}  // namespace
}  // namespace tenon::app
