// tenon surgery: what a run with another model would begin with.
#include "app/cli/surgery.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/output.h"
#include "core/error.h"
#include "engine/model/examine.h"
#include "engine/spec/submodel.h"
#include "projects/surgery.h"
#include "views/shared/surgery_table.h"

namespace tenon::app {
namespace {

nlohmann::json size_json(const std::optional<Shape>& size) {
  if (!size) return nullptr;
  nlohmann::json j = nlohmann::json::array();
  for (const int64_t s : *size) j.push_back(s);
  return j;
}

/// What is asked for, as it is said to `tenon train`.
std::string words_again(const Args& args) {
  std::string words;
  for (const char* option : {"--insert", "--remove", "--layer"})
    for (const std::string& said : args.all(option)) words += std::string(" ") + option + " " + said;
  if (args.has("--project-model")) words += " --project-model";
  for (const std::string& s : args.all("--set")) words += " --set '" + s + "'";
  return words;
}

int surgery(const Args& args) {
  const auto project = open_to_read(args.word(0));
  const RunStep of = pick_run_step(*project, args.words() > 1 ? args.word(1) : "");
  const auto model = asked_model(*project, args, of);
  if (!model)
    throw Error::usage(
        "what is to change in the model was not said",
        "Say --layer fc1.out_features=96, --insert fc1=ReLU or --remove drop1, or --project-model for the model "
        "that the project has now.");
  use_threads(args);
  catch_interrupts();
  Bar bar("replaying");
  const projects::SurgeryPlan plan =
      projects::plan_surgery(*project, of.run, of.step, *model, pairs_of(args, "--set"), bar.progress());
  bar.clear();
  if (args.json()) {
    nlohmann::json tensors = nlohmann::json::array();
    for (const SurgeryRow& r : plan.rows)
      tensors.push_back({{"tensor", r.tensor},
                         {"before", size_json(r.before)},
                         {"after", size_json(r.after)},
                         {"deed", surgery_word(r.deed)},
                         {"how", r.how}});
    print_json({{"run", plan.run},
                {"step", plan.step},
                {"changes", projects::model_changes(plan.before, plan.model)},
                {"loss", {json_number(plan.loss), json_number(plan.loss_after)}},
                {"keeps_function", plan.keeps_function()},
                {"tensors", tensors}});
    return 0;
  }
  print(fmt::format("{} after step {}: {}\n", plan.run, count_text(plan.step),
                    projects::model_changes(plan.before, plan.model)));
  print_table(views::surgery_table(plan.rows, args.has("--all")));
  print(fmt::format("\n{}\nto train it: tenon train {} --from {}@{}{}\n", plan.text(), args.word(0), plan.run,
                    plan.step, words_again(args)));
  return 0;
}

const bool registered_surgery =
    register_command({"surgery",
                      "PROJECT [RUN[@STEP]]",
                      1,
                      2,
                      {kLayer,
                       kInsert,
                       kRemove,
                       kProjectModel,
                       {"--set", "KEY=VALUE", "a key of the recipe, for the branch: init.anew=fc2.*; may be repeated"},
                       {"--all", "", "tensors that stay as they are, too"},
                       kThreads,
                       kJson},
                      "what a run's weights become in a model with a layer more, less, wider or narrower",
                      surgery});

}  // namespace

std::shared_ptr<const ModelSpec> asked_model(const projects::Project& project, const Args& args, const RunStep& of) {
  const auto changes = pairs_of(args, "--layer"), inserted = pairs_of(args, "--insert");
  const auto removed = args.all("--remove");
  if (changes.empty() && inserted.empty() && removed.empty() && !args.has("--project-model")) return nullptr;
  const ModelSpec before =
      args.has("--project-model") ? project.model() : projects::run_of_step(project, of.run, of.step).model;
  ModelSpec model = before;
  for (const auto& [behind, layer] : inserted) model = projects::with_inserted(std::move(model), behind, layer);
  for (const std::string& name : removed) model = projects::with_removed(model, name);
  for (const auto& [place, value] : changes) model = projects::with_layer(model, place, value);
  if (!mirror_edits(before, model).empty()) forget_idle_shares(model, examine(model, 1));
  return std::make_shared<const ModelSpec>(std::move(model));
}

}  // namespace tenon::app
