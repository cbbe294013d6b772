#include "views/shared/project_contents.h"

#include <utility>

#include "projects/surgery.h"

namespace tenon::views {

using projects::CheckpointInfo;
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
  c.deleted_sweeps = project.deleted_sweeps();
  c.checkpoints.resize(c.runs.size());
  auto run = c.runs.begin();  // both in the order of their numbers
  for (CheckpointInfo& k : project.all_checkpoints()) {
    while (run != c.runs.end() && run->id < k.run) ++run;
    if (run != c.runs.end() && run->id == k.run) c.checkpoints[run - c.runs.begin()].push_back(std::move(k));
  }
  c.artifacts = project.artifacts();
  c.sweeps = project.sweeps();
  return c;
}

const RunInfo* ProjectContents::run(int64_t id) const {
  for (const RunInfo& r : runs)
    if (r.id == id) return &r;
  return nullptr;
}

std::string ProjectContents::surgery_of(const RunInfo& r) const {
  const RunInfo* parent = r.branch ? run(r.branch.run) : nullptr;
  return parent && !(parent->model == r.model) ? projects::model_changes(parent->model, r.model) : std::string();
}

bool ProjectContents::has_another_model(const RunInfo& r) const {
  if (r.model == model) return false;
  const auto bare = [](ModelSpec m) {
    m.name.clear();
    for (LayerSpec& l : m.layers) l.x = l.y = 0, l.comment.clear();
    return m;
  };
  return !(bare(r.model) == bare(model));
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

std::map<std::string, Series> read_series(const projects::Project& project, int64_t run,
                                          const std::atomic<bool>& cancelled) {
  std::map<std::string, Series> all;
  for (const std::string& name : project.metric_names(run)) {
    if (cancelled) break;
    const auto points = project.metric(run, name);
    if (points.empty()) continue;
    Series& s = all[name];
    for (const projects::MetricPoint& p : points) s.append(p.step, p.value, p.wall);
  }
  return all;
}

}  // namespace tenon::views
