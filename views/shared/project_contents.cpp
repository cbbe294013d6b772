#include "views/shared/project_contents.h"

namespace tenon::views {

using projects::CheckpointInfo;
using projects::MetricRow;
using projects::RunInfo;

ProjectContents ProjectContents::read(const projects::Project& project) {
  ProjectContents c;
  c.model = project.model();
  try {
    c.recipe = Recipe::from_json(project.recipe());
  } catch (const std::exception& e) {  // of a later version, or without a plug-in: the rest can be looked at
    c.recipe_fault = e.what();
  }
  c.runs = project.runs();
  c.deleted = project.deleted_runs();
  for (const RunInfo& r : c.runs) c.checkpoints.push_back(project.checkpoints(r.id));
  c.artifacts = project.artifacts();
  c.sweeps = project.sweeps();
  return c;
}

const RunInfo* ProjectContents::run(int64_t id) const {
  for (const RunInfo& r : runs)
    if (r.id == id) return &r;
  return nullptr;
}

const CheckpointInfo* ProjectContents::checkpoint(int64_t id) const {
  for (const auto& list : checkpoints)
    for (const CheckpointInfo& c : list)
      if (c.id == id) return &c;
  return nullptr;
}

const projects::SweepInfo* ProjectContents::sweep(int64_t id) const {
  for (const projects::SweepInfo& s : sweeps)
    if (s.id == id) return &s;
  return nullptr;
}

void ProjectContents::follow(const projects::RunStatus& status) {
  for (RunInfo& r : runs) views::follow(r, status);
}

void follow(RunInfo& run, const projects::RunStatus& status) {
  if (run.id != status.run) return;
  run.status = projects::status_word(status.state);
  run.steps = status.step;
  if (status.total_steps > 0) run.total_steps = status.total_steps;
  run.seconds = status.seconds;
  if (!status.error.empty()) run.error = status.error;
}

std::vector<MetricRow> read_metrics(const projects::Project& project, int64_t run, const std::atomic<bool>& cancelled) {
  std::vector<MetricRow> rows;
  for (const std::string& name : project.metric_names(run)) {
    if (cancelled) break;
    for (const auto& p : project.metric(run, name)) rows.push_back({name, p});
  }
  return rows;
}

}  // namespace tenon::views
