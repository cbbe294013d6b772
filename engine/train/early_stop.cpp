#include "engine/train/early_stop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "engine/train/metric.h"
#include "engine/train/recipe.h"

namespace tenon {

void check_recorded(const std::string& key, const std::string& metric, int64_t eval_every, const TaskView& task) {
  if (eval_every == 0)
    throw Error::usage(fmt::format("{} = {} needs evaluations, and eval_every is 0", key, metric),
                       fmt::format("set eval_every to 1, or leave {} out", key));
  std::string known = "test_loss";
  for (const MetricDef& m : metrics())
    if (std::find(m.tasks.begin(), m.tasks.end(), task.task) != m.tasks.end()) known += ", test_" + m.name;
  if ((", " + known + ",").find(", " + metric + ",") == std::string::npos)
    throw Error::usage(fmt::format("{} = {}: no evaluation of a {} task records it", key, metric, task.task),
                       "it records " + known);
}

void check_early_stop(const Recipe& recipe, const TaskView& task) {
  const std::string& metric = recipe.text("stop.metric");
  if (metric != "none") check_recorded("stop.metric", metric, recipe.integer("eval_every"), task);
}

std::string reason_to_stop(const Recipe& recipe, const std::vector<Judged>& evaluations) {
  const std::string &metric = recipe.text("stop.metric"), &mode = recipe.text("stop.mode");
  if (metric == "none") return {};
  const double sign = mode == "max" || (mode == "auto" && better(metric) > 0) ? 1 : -1;
  const double least = recipe.number("stop.min_delta");
  const int64_t patience = recipe.integer("stop.patience");
  const Judged* best = nullptr;
  int64_t waited = 0;
  for (const Judged& e : evaluations) {
    if (std::isfinite(e.value) && (!best || sign * (e.value - best->value) > least)) {
      best = &e;
      waited = 0;
    } else if (++waited >= patience) {
      const std::string what = fmt::format("stop.patience = {}", patience);
      if (!best) return fmt::format("{} was never finite in {} evaluations ({})", metric, waited, what);
      return fmt::format("{} was best at step {} ({:.6g}) and did not become better{} in {} ({})", metric, best->step,
                         best->value, least > 0 ? fmt::format(" by more than {:g}", least) : "",
                         waited == 1 ? "the next evaluation" : fmt::format("the {} evaluations since", waited), what);
    }
  }
  return {};
}

}  // namespace tenon
