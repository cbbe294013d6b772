#include "projects/checks/check.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/train/open_data.h"
#include "tracing/record/step_record.h"

namespace tenon::projects {
namespace {

Registry<CheckDef>& registry() {
  static auto& all = *new Registry<CheckDef>("check");
  return all;
}

}  // namespace

const Registry<CheckDef>& checks() { return registry(); }
bool register_check(CheckDef def, Place place) { return registry().add(std::move(def), place); }

Checked::Checked(std::shared_ptr<Project> project, const std::string& run, Progress progress)
    : project_(std::move(project)), progress_(std::move(progress)) {
  if (!run.empty())
    run_ = project_->run(run);
  else if (const std::vector<RunInfo> all = project_->runs(); !all.empty())
    run_ = all.back();
  model_ = run_ ? run_->model : project_->model();
  recipe_ = Recipe::from_json(run_ ? run_->recipe : project_->recipe());
}

const data::Split& Checked::split() {
  if (!split_) {
    Recipe plain = recipe_;
    plain.set("data.transforms", "");
    split_ = open_data(plain);
  }
  return *split_;
}

const data::Survey& Checked::survey() {
  if (!survey_) survey_ = data::survey(split(), progress_);
  return *survey_;
}

const std::vector<MetricPoint>& Checked::metric(const std::string& name) {
  const auto [at, fresh] = metrics_.try_emplace(name);
  if (fresh && run_) at->second = project_->metric(run_->id, name);
  return at->second;
}

std::shared_ptr<const tracing::StepRecord> Checked::last_step() {
  if (!step_ && run_ && run_->steps > 0) step_ = record_step(*project_, run_->id, run_->steps, progress_);
  return step_;
}

const Distributions* Checked::distributions() {
  if (!distributions_ && run_ && run_->steps > 0 && !project_->checkpoints(run_->id).empty())
    distributions_ = projects::distributions(*project_, run_->id, progress_);
  return distributions_ ? &*distributions_ : nullptr;
}

std::vector<CheckResult> check_project(Checked& checked) {
  std::vector<CheckResult> results;
  for (const CheckDef& def : checks()) {
    CheckResult r{def.name, def.title, {}, {}};
    if (def.of_run && (!checked.run() || checked.run()->steps < 1)) {
      r.skipped = "no run has done a step";
    } else {
      try {
        r.complaints = def.look(checked);
      } catch (const Error& e) {
        if (e.message() == "cancelled") throw;
        r.skipped = e.message();
      }
    }
    results.push_back(std::move(r));
  }
  return results;
}

}  // namespace tenon::projects
