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

std::vector<MetricRow> read_metrics(const projects::Project& project, int64_t run, const std::atomic<bool>& cancelled) {
  std::vector<MetricRow> rows;
  for (const std::string& name : project.metric_names(run)) {
    if (cancelled) break;
    for (const auto& p : project.metric(run, name)) rows.push_back({name, p});
  }
  return rows;
}

}  // namespace tenon::views
