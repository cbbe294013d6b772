// tenon distributions: how weights, gradients and updates are spread along a run.
#include "projects/distributions.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "core/name_pattern.h"
#include "views/distributions/distributions_model.h"

namespace tenon::app {
namespace {

using projects::Distributions;
using projects::ParameterSpreads;
using projects::Spread;

nlohmann::json spread_json(const Spread& s) {
  if (!s.any()) return nullptr;
  nlohmann::json quantiles = nlohmann::json::array();
  for (size_t q = 0; q < s.quantiles.size(); ++q) quantiles.push_back({Spread::kShares[q], s.quantiles[q]});
  return {{"quantiles", quantiles}, {"mean", s.mean},   {"std", s.deviation}, {"norm", s.norm},
          {"count", s.count},       {"zeros", s.zeros}, {"not_finite", s.bad}};
}

nlohmann::json point_json(const Distributions& d, const Distributions::Point& point, size_t parameter) {
  const ParameterSpreads& s = point.parameters[parameter];
  return {{"run", d.run},
          {"step", point.step},
          {"parameter", d.parameters[parameter].name},
          {"elements", d.parameters[parameter].size},
          {"weight", spread_json(s.weight)},
          {"gradient", spread_json(s.gradient)},
          {"update", spread_json(s.update)},
          {"update_by_weight", s.update.any() ? nlohmann::json(s.ratio()) : nlohmann::json()},
          {"cosine", json_number(s.cosine)},
          {"rank", json_number(s.rank)},
          {"all_cosine", json_number(point.cosine)},
          {"noise_scale", json_number(point.noise.scale())}};
}

/// The parameters that the pattern names; all without one.
std::vector<size_t> asked_for(const Args& args, const Distributions& d) {
  const std::string pattern = args.text("--parameter", "*");
  std::vector<size_t> fit;
  std::vector<std::string> names;
  for (size_t i = 0; i < d.parameters.size(); ++i) {
    names.push_back(d.parameters[i].name);
    if (fits_pattern(pattern, names.back())) fit.push_back(i);
  }
  if (!fit.empty()) return fit;
  const std::string near = near_names(pattern, names.data(), names.size());
  throw Error::usage(fmt::format("run {} has no parameter \"{}\"", d.run, pattern),
                     near.empty() ? "A star stands for any text; without --parameter they are listed." : near);
}

void tell_points(const Distributions& d, const std::vector<size_t>& asked, const views::DistributionsModel& model) {
  print(model.headline() + "\n");
  for (const size_t i : asked) {
    const std::string& name = d.parameters[i].name;
    std::vector<bool> right;
    const auto rows = rows_of(model.points(name), right);
    print(fmt::format("\n{}, {} elements\n", name, count_text(d.parameters[i].size)) + table(rows, right));
  }
}

int spread_along(const Args& args) {
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = pick_run(*project, args.text("--run"));
  use_threads(args);
  catch_interrupts();
  Bar bar("replaying");
  const auto d = std::make_shared<const Distributions>(projects::distributions(*project, run.id, bar.progress()));
  bar.clear();
  const std::vector<size_t> asked = asked_for(args, *d);
  if (args.json()) {
    for (const size_t i : asked)
      for (const Distributions::Point& p : d->points) print_json(point_json(*d, p, i));
    return 0;
  }
  views::DistributionsModel model;
  model.set_distributions(d);
  if (args.has("--parameter")) {
    tell_points(*d, asked, model);
    return 0;
  }
  std::vector<bool> right;
  const auto rows = rows_of(model.parameters(), right);
  print(model.headline() + "\nratio: update / weights, by their norms\n\n" + table(rows, right));
  return 0;
}

const bool registered_distributions = register_command(
    {"distributions",
     "PROJECT",
     1,
     1,
     {{"--run", "RUN", "the run (the latest)"},
      {"--parameter", "PATTERN", "those that fit, step by step; a star stands for any text"},
      kThreads,
      kJson},
     "shows how weights, gradients and updates of each parameter are spread along a run, worked out of its checkpoints",
     spread_along});

}  // namespace
}  // namespace tenon::app
