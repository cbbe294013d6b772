// tenon data: what a project learns from, looked at before anything is trained on it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "app/cli/remarks.h"
#include "core/error.h"
#include "core/file.h"
#include "engine/templates/templates.h"
#include "engine/train/model_fit.h"
#include "engine/train/open_data.h"
#include "engine/train/own_data.h"
#include "engine/train/recipe.h"
#include "projects/time_travel.h"
#include "views/data/data_fit.h"
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

/// What is asked of the project: other data, and a model that suits them. A line for each thing that was done.
std::vector<std::string> change_project(const Args& args) {
  if (!args.has("--take") && !args.has("--fit") && !args.has("--begin")) return {};  // who only looks writes nothing
  const auto project = projects::Project::open(args.word(0));
  std::vector<std::string> done;
  if (args.has("--take")) {
    const std::string path = std::filesystem::absolute(args.text("--take")).string();
    const Recipe before = Recipe::from_json(project->recipe());
    const Recipe recipe = with_own_data(before, path, pairs_of(args, "--set")).recipe;
    project->set_recipe(recipe.to_json());
    std::string with_it;
    for (const char* key : {"loss.type", "data.batch_size"})
      if (recipe.at(key) != before.at(key)) with_it += fmt::format("; {} = {}", key, attr_text(recipe.at(key)));
    done.push_back(
        fmt::format("the next run learns from {}, read as {}{}", path, recipe.text("data.dataset"), with_it));
  }
  if (!args.has("--fit") && !args.has("--begin")) return done;
  const Recipe recipe = Recipe::from_json(project->recipe());
  Recipe untransformed = recipe;
  untransformed.set("data.transforms", "");
  const data::Split raw = open_data(untransformed);
  if (args.has("--begin")) {
    const Beginning b = begin_with(find_template(args.text("--begin")), recipe, raw);
    project->set_model(b.model);
    project->set_recipe(b.recipe.to_json());
    done.push_back(fmt::format("the model is that of {} for these data", args.text("--begin")));
    return done;
  }
  const ModelFit fit = fit_model(project->model(), recipe, *transformed_as(recipe, raw).train);
  if (fit.problem.empty()) {
    done.push_back("the model suits these data as it is");
  } else if (fit.changes.empty() || fit.bare) {
    throw Error("no change that is known makes the model suit these data: " + fit.problem,
                "begin with another: --begin NAME; `tenon data` names those that suit them");
  } else {
    project->set_model(fit.mended);
    done.push_back("the model was changed: " + fit.changes_text());
  }
  return done;
}

nlohmann::json fit_json(const views::DataFit& f) {
  nlohmann::json j = {{"fits", f.fit.problem.empty()}, {"problem", f.fit.problem}, {"begin_with", f.templates}};
  for (const ModelFit::Change& c : f.fit.changes)
    j["changes"].push_back({{"layer", c.layer}, {"attr", c.attr}, {"from", c.from}, {"to", c.to}});
  return j;
}

/// How the model meets the data, and the words that would mend it.
std::string fit_lines(const std::string& project, const views::DataFit& f) {
  std::string text = views::fit_text(f) + "\n";
  if (!f.fit.changes.empty() && !f.fit.bare)
    text += fmt::format("tenon data {} --fit would change {}\n", project, f.fit.changes_text());
  if (f.open() && !f.templates.empty())
    text += fmt::format("tenon data {} --begin NAME takes another model: {}\n", project, fmt::join(f.templates, ", "));
  return text;
}

int look_at_data(const Args& args) {
  for (const std::string& done : change_project(args))
    if (!args.json()) print(done + "\n");
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
  const views::DataFit fit = views::fit_of(project->model(), recipe, *look.split);
  if (args.json()) {
    nlohmann::json j = look_json(look);
    j["model"] = fit_json(fit);
    print_json(j);
    for (const views::DataLook::Sample& s : look.samples)
      print_json({{"sample", s.row},
                  {"split", s.train ? "training" : "test"},
                  {"target", s.target},
                  {"source", source_json(s.source)}});
    return 0;
  }
  print(views::data_text(look) + "\n" + fit_lines(args.word(0), fit));
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
     {{"--take", "PATH", "the next runs learn from this file or folder: what kind of data it is, it says itself"},
      {"--fit", "", "changes the model's ends so that it suits the data"},
      {"--begin", "TEMPLATE", "the template's model, for these data, takes the place of the project's"},
      {"--quick", "", "only opens the data: does not read every sample"},
      {"--rows", "N", "lists the first samples of each split, with the file and the place each comes from"},
      {"--set", "KEY=VALUE", "a key of the recipe, such as data.dir; with --take it stays; may be repeated"},
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
