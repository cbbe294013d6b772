#include "projects/search/sweep_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/registry.h"
#include "engine/train/metric.h"
#include "engine/train/recipe.h"

namespace tenon::projects {
namespace {

constexpr const char* kMethods[] = {"grid", "random", "bayes"};
constexpr int64_t kUsualRuns = 20;

std::vector<AttrDef> make_attrs() {
  std::vector<std::string> recorded = {"test_loss", "loss"};
  for (const MetricDef& m : metrics()) recorded.push_back("test_" + m.name);
  return {
      {"method",
       "bayes",
       0,
       0,
       "how the next trial is chosen: every point of a grid, at random, or where a Gaussian process of the results so "
       "far expects the most",
       {std::begin(kMethods), std::end(kMethods)}},
      {"metric", "test_loss", 0, 0, "what a trial is judged by: the best value that its run recorded", recorded},
      {"goal",
       "auto",
       0,
       0,
       "which values are better; auto: low ones of a loss, high ones of an accuracy",
       {"auto", "min", "max"}},
      {"runs", int64_t{0}, 0, 100000, "how many trials; 0: by the method", {}, {}},
      {"seed", int64_t{0}, 0, 2147483647, "of the choices; the same seed chooses the same trials"},
      {"prune",
       int64_t{0},
       0,
       2000000000,
       "a trial is compared with those before it once it was judged after so many steps, and ends there where it is "
       "behind; "
       "0: never",
       {},
       "steps"},
      {"prune_factor", int64_t{3}, 2, 100,
       "one trial in so many goes on; the next comparison comes after so many times as many steps"},
      {"side_by_side", int64_t{1}, 1, 256,
       "trials of a round, chosen without each other's results and trained at the same time, as far as there are cores "
       "and memory for each"},
  };
}

}  // namespace

const char* name(SweepPlan::Method m) { return kMethods[static_cast<int>(m)]; }

const std::vector<AttrDef>& SweepPlan::attrs() {
  static auto& cache = *new MadeOfRegistries<std::vector<AttrDef>>(make_attrs);
  return cache.get();
}

SweepPlan::SweepPlan(const Settings& keys, const std::vector<Attr>& given, const Recipe& base) : space(keys, base) {
  const AttrValues values(attrs(), given, "a sweep");
  const std::string& wanted = values.text("method");
  method = static_cast<Method>(std::find(std::begin(kMethods), std::end(kMethods), wanted) - std::begin(kMethods));
  metric = values.text("metric");
  const std::string& goal = values.text("goal");
  direction = goal == "max" ? 1 : goal == "min" ? -1 : better(metric);
  if (direction == 0)
    throw Error::usage(fmt::format("{} has no better and worse of its own", metric), "Say which: goal min or max.");
  seed = static_cast<uint64_t>(values.integer("seed"));
  prune = values.integer("prune");
  prune_factor = values.integer("prune_factor");
  side_by_side = values.integer("side_by_side");
  runs = values.integer("runs");
  if (method == Method::grid) {
    const int64_t all = space.grid_size();
    if (runs == 0 && all > 100000)
      throw Error::usage("a grid over these keys has more than 100,000 points",
                         "Give ranges fewer points (log:1e-4..1e-1:3), say how many runs, or take the method random.");
    runs = runs == 0 ? all : std::min(runs, all);
  } else if (runs == 0) {
    runs = kUsualRuns;
  }
}

SweepPlan SweepPlan::from_json(const nlohmann::json& j, const Recipe& base) {
  Settings keys;
  for (const auto& k : j.at("keys")) keys.emplace_back(k.at(0).get<std::string>(), k.at(1).get<std::string>());
  std::vector<Attr> given;
  for (const auto& [key, value] : j.items())
    if (key != "keys") given.push_back({key, attr_from_json(value, key)});
  return SweepPlan(keys, given, base);
}

nlohmann::json SweepPlan::to_json() const {
  nlohmann::json keys = nlohmann::json::array();
  for (const auto& [key, text] : space.texts()) keys.push_back({key, text});
  return {{"keys", keys},
          {"method", name(method)},
          {"metric", metric},
          {"goal", direction > 0 ? "max" : "min"},
          {"runs", runs},
          {"seed", seed},
          {"prune", prune},
          {"prune_factor", prune_factor},
          {"side_by_side", side_by_side}};
}

}  // namespace tenon::projects
