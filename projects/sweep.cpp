#include "projects/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "core/error.h"
#include "core/machine_memory.h"
#include "core/pool.h"
#include "engine/train/recipe.h"
#include "projects/search/halving.h"

namespace tenon::projects {
namespace {

constexpr const char* kNoMetric = "it recorded no ";
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::vector<Report> reports(const Project& project, int64_t run, const std::string& metric, int64_t up_to) {
  std::vector<Report> out;
  if (!run) return out;
  for (const MetricPoint& p : project.metric(run, metric))
    if (p.step <= up_to) out.push_back({p.step, p.value});
  return out;
}

/// What an open trial comes to whose run has ended by itself. One whose run is to be gone on with stays open.
void settle(Project& project, const SweepPlan& plan, const TrialOf& of, const RunInfo& run) {
  if (run.status == "failed") {
    return project.end_trial(of, "failed", kNone, run.error);
  }
  if (run.status != "finished" && run.status != "pruned") return;
  double value = kNone;
  for (const MetricPoint& p : project.metric(run.id, plan.metric))
    if (std::isfinite(p.value) && (std::isnan(value) || plan.is_better(p.value, value))) value = p.value;
  const bool pruned = run.status == "pruned";
  if (pruned || !std::isnan(value)) {
    return project.end_trial(of, run.status, value, run.error);
  }
  std::vector<std::string> recorded = project.metric_names(run.id);
  const bool has = std::find(recorded.begin(), recorded.end(), plan.metric) != recorded.end();
  project.end_trial(of, "failed", kNone,
                    has ? fmt::format("its {} never was a finite number", plan.metric)
                        : fmt::format("{}{}, but {}", kNoMetric, plan.metric, fmt::join(recorded, ", ")));
}

/// A name for the run of a trial that no run has yet.
std::string run_name(const std::vector<RunInfo>& runs, const SweepInfo& sweep, const SweepPlan& plan, int64_t number) {
  const std::string name =
      fmt::format("{}-{:0{}}", sweep.name, number, std::max<size_t>(2, std::to_string(plan.runs).size()));
  std::string free = name;
  const auto taken = [&] {
    return std::any_of(runs.begin(), runs.end(), [&](const auto& r) { return r.name == free; });
  };
  for (int i = 2; taken(); ++i) free = fmt::format("{}.{}", name, i);
  return free;
}

Prune pruning(const Project& project, const SweepInfo& sweep, const SweepPlan& plan, int64_t number, int64_t run) {
  if (plan.prune <= 0) return {};
  std::vector<std::vector<Report>> others;
  for (const TrialInfo& t : sweep.trials)
    if (t.number < plan.round_of(number))
      others.push_back(reports(project, t.run, plan.metric, std::numeric_limits<int64_t>::max()));
  auto halving = std::make_shared<Halving>(plan, others);
  // What lies behind the last checkpoint is trained, and reported, again.
  if (run)
    if (const auto kept = project.checkpoints(run); !kept.empty())
      for (const Report& r : reports(project, run, plan.metric, kept.back().step)) halving->take(r);
  return [halving, metric = plan.metric](const std::vector<MetricRow>& rows) {
    for (const MetricRow& row : rows)
      if (row.name == metric) halving->take({row.point.step, row.point.value});
    return halving->verdict();
  };
}

}  // namespace

Prune pruning_of(const Project& project, int64_t run) {
  for (const SweepInfo& s : project.sweeps())
    for (const TrialInfo& t : s.trials)
      if (t.run == run && t.state == "open") {
        const SweepPlan plan = SweepPlan::from_json(s.plan, Recipe::from_json(s.recipe));
        return pruning(project, s, plan, t.number, run);
      }
  return {};
}

namespace {

Trial make_trial(const Project& project, const SweepInfo& sweep, const SweepPlan& plan, int64_t number,
                 const Settings& settings, const std::vector<RunInfo>& runs, const RunInfo* run) {
  Trial t{{sweep.id, number}, settings, {}};
  t.options.obeys_watches = false;
  if (run) {
    t.options.resume = run->name;
  } else {
    t.options.run_name = run_name(runs, sweep, plan, number);
    t.options.trial = std::make_shared<const TrialRun>(TrialRun{t.of, sweep.model, sweep.recipe});
    // Keys of definitions that this trial has not chosen say nothing to it.
    Recipe recipe = Recipe::from_json(sweep.recipe);
    for (const auto& [key, value] : settings) recipe.set(key, value);
    for (const auto& [key, value] : settings) {
      const auto used = recipe.used_keys();
      if (std::any_of(used.begin(), used.end(), [&, k = key](const AttrDef& d) { return d.name == k; }))
        t.options.set.emplace_back(key, value);
    }
  }
  t.options.prune = pruning(project, sweep, plan, number, run ? run->id : 0);
  return t;
}

std::vector<Result> results(const SweepInfo& sweep, bool pruned_too) {
  std::vector<Result> out;
  for (const TrialInfo& t : sweep.trials) {
    Result r{t.number, settings_of(t), {}};
    if (std::isfinite(t.value) && (t.state == "finished" || (pruned_too && t.state == "pruned"))) r.value = t.value;
    out.push_back(std::move(r));
  }
  return out;
}

}  // namespace

SweepPlan plan_of(const SweepInfo& sweep) { return SweepPlan::from_json(sweep.plan, Recipe::from_json(sweep.recipe)); }

Settings settings_of(const TrialInfo& trial) {
  Settings out;
  for (const auto& s : trial.settings) out.emplace_back(s.at(0).get<std::string>(), s.at(1).get<std::string>());
  return out;
}

SweepInfo begin_sweep(Project& project, const std::string& name, const Settings& keys, const std::vector<Attr>& attrs,
                      const Settings& set) {
  Recipe recipe = Recipe::from_json(project.recipe());
  for (const auto& [key, value] : set) recipe.set(key, value);
  for (const auto& [key, value] : set) recipe.check_used(key);
  const SweepPlan plan(keys, attrs, recipe);
  return project.new_sweep(name, plan.to_json(), project.model(), recipe.to_json());
}

void settle_trials(Project& project, int64_t id, const std::set<int64_t>& at_work) {
  const SweepInfo sweep = project.sweep(id);
  const SweepPlan plan = plan_of(sweep);
  const std::vector<RunInfo> runs = project.runs();
  for (const TrialInfo& t : sweep.trials) {
    if (t.state != "open" || !t.run || at_work.contains(t.number)) continue;
    const auto run = std::find_if(runs.begin(), runs.end(), [&](const RunInfo& r) { return r.id == t.run; });
    if (run == runs.end())
      project.end_trial({id, t.number}, "failed", kNone, "its run was deleted");
    else
      settle(project, plan, {id, t.number}, *run);
  }
}

std::optional<Trial> next_trial(Project& project, int64_t id, const std::set<int64_t>& at_work) {
  settle_trials(project, id, at_work);
  const SweepInfo sweep = project.sweep(id);
  const SweepPlan plan = plan_of(sweep);
  const std::vector<RunInfo> runs = project.runs();
  for (const TrialInfo& t : sweep.trials) {
    if (t.state != "open" || at_work.contains(t.number)) continue;
    const auto run = std::find_if(runs.begin(), runs.end(), [&](const RunInfo& r) { return r.id == t.run; });
    return make_trial(project, sweep, plan, t.number, settings_of(t), runs, run == runs.end() ? nullptr : &*run);
  }
  // Not one more is trained for a result that it will not have either.
  if (!sweep.trials.empty() && std::all_of(sweep.trials.begin(), sweep.trials.end(), [](const TrialInfo& t) {
        return t.state == "failed" && t.error.starts_with(kNoMetric);
      }))
    throw Error(fmt::format("sweep {} cannot go on: {}", sweep.name, sweep.trials.front().error),
                "Begin another one with a metric that its runs record.");
  const auto number = static_cast<int64_t>(sweep.trials.size()) + 1;
  for (const TrialInfo& t : sweep.trials)
    if (t.state == "open" && t.number < plan.round_of(number)) return {};
  const auto settings = next_settings(plan, number, results(sweep, true));
  if (!settings) return {};
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [key, value] : *settings) list.push_back({key, value});
  project.add_trial({id, number}, list);
  return make_trial(project, sweep, plan, number, *settings, runs, nullptr);
}

std::unique_ptr<RunDriver> start_trial(const std::shared_ptr<Project>& project, const Trial& trial) {
  try {
    return RunDriver::start(project, trial.options);
  } catch (...) {
    const Error e = caught_error();
    const SweepInfo sweep = project->sweep(trial.of.sweep);
    const bool begun = sweep.trials.at(static_cast<size_t>(trial.of.number) - 1).run != 0;
    if (!trial.options.resume.empty() || begun || e.kind() == Error::Kind::no_space || project->read_only()) throw;
    project->end_trial(trial.of, "failed", kNone, e.message());
    return nullptr;
  }
}

bool room_for_another(const SweepPlan& plan, const std::vector<RunStatus>& at_work) {
  if (at_work.empty()) return true;
  const size_t most =
      std::min<size_t>(static_cast<size_t>(plan.side_by_side), std::max(1u, std::thread::hardware_concurrency()));
  if (at_work.size() >= most) return false;
  if (std::any_of(at_work.begin(), at_work.end(), [](const RunStatus& s) { return s.step < 1; })) return false;
  // Each is counted as what one of those at work has needed at most.
  return pool_stats().peak_bytes / static_cast<int64_t>(at_work.size()) < available_memory();
}

std::set<int64_t> trials_of(const Project& project, int64_t sweep, const std::set<int64_t>& runs) {
  std::set<int64_t> numbers;
  if (runs.empty()) return numbers;
  for (const TrialInfo& t : project.sweep(sweep).trials)
    if (t.run && runs.contains(t.run)) numbers.insert(t.number);
  return numbers;
}

const TrialInfo* best_trial(const SweepInfo& sweep, const SweepPlan& plan) {
  const TrialInfo* best = nullptr;
  for (const TrialInfo& t : sweep.trials)
    if (t.state != "open" && std::isfinite(t.value) && (!best || plan.is_better(t.value, best->value))) best = &t;
  return best;
}

Importance importance_of(const SweepInfo& sweep, const SweepPlan& plan) {
  return importance(plan, results(sweep, false));
}

bool is_over(const SweepInfo& sweep, const SweepPlan& plan) {
  const auto count = static_cast<int64_t>(sweep.trials.size());
  if (std::any_of(sweep.trials.begin(), sweep.trials.end(), [](const TrialInfo& t) { return t.state == "open"; }))
    return false;
  return count >= plan.runs || all_tried(plan, results(sweep, false));
}

}  // namespace tenon::projects
