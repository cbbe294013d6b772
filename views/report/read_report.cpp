// What a report is made of, read from the project and replayed.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/layout.h"
#include "core/parallel.h"
#include "core/sha256.h"
#include "engine/data/dataset.h"
#include "engine/train/session.h"
#include "projects/surgery.h"
#include "views/report/html_page.h"
#include "views/report/report.h"
#include "views/shared/format.h"
#include "views/shared/project_contents.h"

namespace tenon::views {

namespace {
std::string digest_of(const nlohmann::json& j) {
  const std::string text = j.dump();
  return hex(sha256(text.data(), text.size()));
}
std::string type_of(const Meta& m) { return std::string(name(m.dtype)) + (m.shape.n ? " " + to_string(m.shape) : ""); }
}  // namespace

RunReport read_report(projects::Project& project, const projects::RunInfo& run, int64_t step,
                      const projects::Progress& replaying, const projects::Progress& evaluating) {
  RunReport r;
  r.project = std::filesystem::path(project.path()).filename().string();
  r.run = run;
  r.step = step;
  r.recipe = Recipe::from_json(run.recipe_after(std::max<int64_t>(0, step - 1)));
  const Recipe begun = Recipe::from_json(run.recipe);
  if (run.branch) {  // it begins with its parent's model and recipe, whatever the project has by now
    const projects::RunInfo parent = project.run(run.branch.run);
    r.from_project = differences(Recipe::from_json(parent.recipe_after(run.branch.step)), begun);
    r.surgery = projects::model_changes(parent.model, run.model);
    r.model_changed = !r.surgery.empty() && !(project.model() == run.model);
  } else {
    r.from_project = differences(Recipe::from_json(project.recipe()), begun);
    r.model_changed = !(project.model() == run.model);
  }
  r.batch = r.recipe.integer("data.batch_size");
  r.layers = examine(run.model, r.batch);
  const std::atomic<bool> going_on = false;
  r.metrics = read_series(project, run.id, going_on);
  r.watch_hits = project.watch_hits(run.id);
  r.checkpoints = project.checkpoints(run.id);
  r.model_digest = digest_of(run.model.to_json());
  r.recipe_digest = digest_of(run.recipe);

  const auto session = projects::replay_to(project, run.id, step, replaying);
  r.state_digest = projects::digest(session->save());
  r.input = type_of(session->train_data().input());
  r.target = type_of(session->train_data().target());
  r.train_samples = session->train_data().size();
  r.classes = session->train_data().classes();
  r.targets = session->targets_per_sample();
  r.results = projects::results_of(*session, run, evaluating);
  r.threads = num_threads();
  for (size_t i : r.results.worst_first()) {
    if (r.worst.size() == RunReport::kSeen) break;
    r.worst.push_back({r.results.predictions[i], sight_of(r.results, r.results.predictions[i])});
  }
  return r;
}

std::string write_report(projects::Project& project, const projects::RunInfo& run, int64_t step,
                         const std::string& path, const projects::Progress& replaying,
                         const projects::Progress& evaluating) {
  check_page_name(path);
  const std::string html = report_html(read_report(project, run, step, replaying, evaluating));
  write_file(path, html);
  return fmt::format("{}: the report of {} at step {}, {}", path, run.name, format_grouped(step),
                     format_bytes(static_cast<double>(html.size())));
}

}  // namespace tenon::views
