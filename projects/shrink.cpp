#include "projects/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/backend.h"
#include "core/error.h"
#include "core/median.h"
#include "core/name_pattern.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/data/dataset.h"
#include "engine/model/graph_module.h"
#include "engine/model/low_rank.h"
#include "engine/nn/module.h"
#include "engine/ops/view.h"
#include "engine/train/recipe.h"
#include "projects/begun_project.h"
#include "projects/finish.h"
#include "tracing/analyses/finding.h"

namespace tenon::projects {
namespace {

std::function<bool(const std::string&)> named_by(const ShrinkOptions& o, const ModelSpec& model) {
  std::string list = o.layers;
  std::replace(list.begin(), list.end(), ',', ';');
  const std::vector<std::string> patterns = split_list(list);
  for (const std::string& p : patterns) {
    std::vector<std::string> names;
    for (const LayerSpec& l : model.layers) names.push_back(l.name);
    if (std::none_of(names.begin(), names.end(), [&](const auto& n) { return fits_pattern(p, n); }))
      throw Error::usage(fmt::format("the model has no layer called \"{}\"", p),
                         near_names(p, names.data(), names.size()));
  }
  return [patterns](const std::string& layer) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const auto& p) { return fits_pattern(p, layer); });
  };
}

double timed(nn::Module& model, const Tensor& x) {
  const auto begin = std::chrono::steady_clock::now();
  model(x);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void time_both(ShrinkReport& r, nn::Module& whole, nn::Module& small, const Tensor& x) {
  constexpr int kWarm = 2, kTimed = 15;
  const NoGrad off;
  whole.eval();
  small.eval();
  std::vector<double> a, b;
  for (int i = 0; i < kWarm + kTimed; ++i) {
    const double whole_took = timed(whole, x), small_took = timed(small, x);
    if (i < kWarm) continue;
    a.push_back(whole_took);
    b.push_back(small_took);
  }
  r.batch = x.size(0);
  r.seconds = median_of(a);
  r.seconds_after = median_of(b);
}

TrainedModel model_of(TrainingSession& session, const RunInfo& run, int64_t step) {
  TrainedModel t{run.name, step, session.spec(), {}};
  const NoGrad off;
  for (const nn::Named& n : session.model().state_dict())
    t.tensors.push_back({n.name, clone(to_host(detach(n.tensor)), Order::contiguous)});
  return t;
}

}  // namespace

std::string ShrinkReport::text() const {
  using tracing::count_text;
  std::string t = fmt::format("{} parameters of {}, {} of {} FLOPs a sample ({:.2f} times fewer)",
                              count_text(small.parameters_after()), count_text(small.parameters()),
                              count_text(static_cast<int64_t>(small.flops_after())),
                              count_text(static_cast<int64_t>(small.flops())), small.flops() / small.flops_after());
  t += fmt::format("\na forward pass of {} samples takes {:.2f} ms instead of {:.2f} ms: {:.2f} times faster",
                   count_text(batch), seconds_after * 1e3, seconds * 1e3, times_faster());
  const std::string metric = "test_" + before.decisive.name;
  t += fmt::format("\n{} before any further training, {} of the whole model ({} test samples)",
                   metric_text(metric, after.decisive.value),
                   metric_text(metric, before.decisive.value).substr(metric.size() + 1), count_text(after.samples));
  t += fmt::format("\nto train it on: tenon train {}", path);
  return t;
}

TrainedModel trained_model(Project& project, const RunInfo& run, int64_t step, const Progress& progress) {
  return model_of(*replay_to(project, run.id, step, progress), run, step);
}

Shrunk plan_shrink(const TrainedModel& trained, const ShrinkOptions& options) {
  const auto named = named_by(options, trained.model);
  if (options.energy > 0) return factor(trained.model, trained.tensors, {options.energy, named});
  return shrink(trained.model, trained.tensors, {options.amount, options.zeros, named});
}

ShrinkReport shrink_run(Project& project, const RunInfo& run, int64_t step, const ShrinkOptions& options,
                        const std::string& path, const Progress& progress) {
  const auto session = replay_to(project, run.id, step, progress);
  ShrinkReport r{.path = path, .run = run.name, .step = step, .options = options};
  r.small = plan_shrink(model_of(*session, run, step), options);
  const Recipe recipe = recipe_to_go_on(session->recipe());
  const RunInfo made =
      create_begun(path, r.small.model, recipe, r.small.tensors, "pruned",
                   fmt::format("{}, {}", export_doc(project, run, step),
                               options.energy > 0 ? "with layers of lower rank" : "with fewer channels"));
  const auto small_project = Project::open(path, true);
  const auto small = replay_to(*small_project, made.id, 0, progress);
  r.before = session->evaluate(progress);
  r.after = small->evaluate(progress);
  const data::Dataset& test = session->test_data();
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < std::min(test.size(), recipe.integer("data.batch_size")); ++i) rows.push_back(i);
  time_both(r, session->model(), small->model(), data::fetch(test, rows).x);
  return r;
}

}  // namespace tenon::projects
