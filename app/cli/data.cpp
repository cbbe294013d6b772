// tenon data: what a project learns from, looked at before anything is trained on it.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "app/cli/remarks.h"
#include "core/error.h"
#include "core/file.h"
#include "engine/train/open_data.h"
#include "engine/train/recipe.h"
#include "projects/time_travel.h"
#include "views/data/data_look.h"
#include "views/data/transform_look.h"

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

/// A picture a step, numbered in their order: "1-random_crop.png".
void write_steps(const views::TransformLook& look, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (size_t i = 0; i < look.steps.size(); ++i) {
    const views::TransformLook::Step& s = look.steps[i];
    if (s.picture.pixels.empty()) throw Error("samples of this shape are no pictures: " + to_string(s.shape));
    const std::string name = s.text.empty() ? "as-it-is" : s.text.substr(0, s.text.find(' '));
    write_file(fmt::format("{}/{}-{}.png", folder, i, name), data::png_bytes(s.picture));
    if (!s.mask.pixels.empty()) write_file(fmt::format("{}/{}-{}-mask.png", folder, i, name), data::png_bytes(s.mask));
  }
}

int look_at_transforms(const Args& args, Recipe recipe) {
  const Recipe whole = recipe;
  recipe.set("data.transforms", "");
  const views::TransformLook look = views::look_through(
      whole, open_data(recipe), !args.has("--test"), args.integer("--transforms", 0, 0), args.integer("--epoch", 0, 0));
  if (args.has("-o")) write_steps(look, args.text("-o"));
  if (args.json()) {
    for (const views::TransformLook::Step& s : look.steps)
      print_json({{"transform", s.text},
                  {"sample", look.row},
                  {"split", look.train ? "training" : "test"},
                  {"epoch", look.epoch},
                  {"shape", std::vector<int64_t>(s.shape.begin(), s.shape.end())},
                  {"min", json_number(s.min)},
                  {"max", json_number(s.max)},
                  {"mean", json_number(s.mean)}});
    return 0;
  }
  print(views::sample_text(look) + "\n");
  print_table(views::steps_table(look));
  return 0;
}

/// The samples that a step of a run trained on.
int look_at_batch(const Args& args, projects::Project& project) {
  const projects::RunInfo run = pick_run(project, args.text("--run"));
  const int64_t step = pick_step(run, args.text("--step"));
  catch_interrupts();
  Bar bar("replaying");
  const projects::StepBatch batch = projects::batch_of(project, run.id, step, bar.progress());
  bar.clear();
  views::DataLook look = views::look_at(Recipe::from_json(run.recipe_after(step - 1)), 0, batch.rows);
  if (args.json()) {
    for (const views::DataLook::Sample& s : look.samples)
      print_json({{"run", run.name},
                  {"step", batch.step},
                  {"epoch", batch.epoch},
                  {"sample", s.row},
                  {"target", s.target},
                  {"source", source_json(s.source)}});
    return 0;
  }
  print(
      fmt::format("step {} of run {}, epoch {}: {} samples; tenon data PROJECT --transforms ROW --epoch {} shows what "
                  "the run saw of one\n",
                  batch.step, run.name, batch.epoch, batch.rows.size(), batch.epoch));
  print_table(views::samples_table(look));
  return 0;
}

int look_at_data(const Args& args) {
  const auto project = open_to_read(args.word(0));
  if (args.has("--step")) return look_at_batch(args, *project);
  Recipe recipe = Recipe::from_json(project->recipe());
  for (const auto& [key, text] : pairs_of(args, "--set")) recipe.set(key, text);
  if (args.has("--transforms")) return look_at_transforms(args, recipe);
  catch_interrupts();
  Bar bar("reading");
  views::DataLook look = views::look_at(recipe, args.integer("--rows", 0, 0));
  if (!args.has("--quick")) views::read_all(look, bar.progress());
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
      {"--transforms", "ROW", "a sample of the training set as it is and behind each transform, instead"},
      {"--test", "", "with --transforms: of the test split, where nothing is random"},
      {"--epoch", "N", "with --transforms: the epoch, from 0, in which it is drawn"},
      {"--step", "N", "the samples that this step of a run trained on, instead"},
      {"--run", "RUN", "with --step: the run; without, the last one"},
      {"-o", "FOLDER", "with --transforms: writes a picture of each step there"},
      kJson},
     "what a project learns from: how its files were read, and what looks wrong in them, with file and row",
     look_at_data});

}  // namespace
}  // namespace tenon::app
