// tenon memory predict: what the next run of a project will need, before its first step.
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/op/cuda_device.h"
#include "engine/train/open_data.h"
#include "views/recipe/memory_needs.h"

namespace tenon::app {
namespace {

nlohmann::json by_category(const BytesByCategory& bytes) {
  nlohmann::json j = nlohmann::json::object();
  for (size_t c = 0; c < bytes.size(); ++c)
    if (bytes[c] != 0) j[name(static_cast<Category>(c))] = bytes[c];
  return j;
}

nlohmann::json forecast_json(const MemoryForecast& f) {
  return {{"batch", f.batch},
          {"peak_bytes", f.peak_bytes},
          {"evaluation_bytes", f.evaluation_bytes},
          {"held_with_evaluation_bytes", f.held_with_evaluation},
          {"held_bytes", f.held_bytes},
          {"checkpoint_bytes", f.checkpoint_bytes},
          {"needed_bytes", f.needed_bytes()},
          {"at_peak", by_category(f.at_peak)},
          {"most", by_category(f.most)},
          {"moment", {{"step", f.step}, {"phase", name(f.phase)}, {"layer", f.layer}, {"op", f.op}}},
          {"flops", f.flops},
          {"moved_bytes", f.moved_bytes},
          {"seconds_at_least", f.seconds}};
}

void print_as_json(const views::MemoryNeeds& needs, const std::vector<MemoryProposal>& proposals) {
  nlohmann::json j = forecast_json(needs.now);
  j["limit_bytes"] = needs.limit;
  j["fits"] = needs.fits();
  j["largest_batch"] = needs.largest.batch;
  j["largest_batch_is_all_data"] = needs.largest.whole_data;
  print_json({{"forecast", j}});
  for (const LayerMemory& l : needs.now.layers)
    print_json({{"layer", l.layer}, {"at_peak", by_category(l.at_peak)}, {"largest_workspace", l.largest_workspace}});
  for (const MemoryProposal& p : proposals) {
    nlohmann::json set = nlohmann::json::object();
    for (const auto& [key, text] : p.set) set[key] = text;
    print_json({{"proposal", views::proposal_title(p)},
                {"set", set},
                {"saved_bytes", p.saved_bytes},
                {"time", p.time},
                {"same_steps", p.same_steps},
                {"then", forecast_json(p.then)}});
  }
}

int predict(const Args& args) {
  use_threads(args);
  const auto project = open_to_read(args.word(0));
  Recipe recipe = Recipe::from_json(project->recipe());
  const auto settings = pairs_of(args, "--set");
  for (const auto& [key, text] : settings) recipe.set(key, text);
  for (const auto& [key, text] : settings) recipe.check_used(key);
  const double given = args.number("--limit-gb", 0, 0);
  const int64_t limit = given > 0 ? static_cast<int64_t>(given * (1 << 30)) : memory_limit_of(recipe.text("device"));
  const ModelSpec model = project->model();
  const auto data = std::make_shared<const data::Split>(open_data(recipe));
  const Cancelled cancelled = [] { return interrupted(); };
  const views::MemoryNeeds needs = views::memory_needs(model, recipe, data, limit, cancelled);
  const auto proposals = memory_proposals(model, recipe, data, needs.now, cancelled);
  if (args.json()) return print_as_json(needs, proposals), 0;
  print(views::memory_line(needs) + "\n" + views::memory_moment(needs) + "\n");
  print_table(views::memory_layers(needs.now));
  if (proposals.empty()) return 0;
  print_table(views::memory_proposals_table(proposals, limit));
  return 0;
}

const bool registered_memory_predict =
    register_command({"memory predict",
                      "PROJECT",
                      1,
                      1,
                      {{"--set", "KEY=VALUE", "a key of the recipe, for this forecast alone; may be repeated"},
                       {"--limit-gb", "X", "what a run may take (the memory of the machine or its control group)"},
                       kThreads,
                       kJson},
                      "what the next run will need: by layer, the largest batch, and what would save memory",
                      predict});

}  // namespace
}  // namespace tenon::app
