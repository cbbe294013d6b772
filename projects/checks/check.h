#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/registry.h"
#include "engine/data/survey.h"
#include "engine/train/recipe.h"
#include "projects/distributions.h"
#include "projects/project.h"
#include "tracing/checks/check.h"

// What the field's troubleshooting guides warn of, looked for in a project and one of its runs: each thing that is
// found with its evidence and its remedy.
namespace tenon::projects {

/// What checks look at. Each part is worked out when a check first asks for it, and kept for the others.
class Checked {
 public:
  /// `run`: its name; empty: the latest, where there is one. With a run, model and recipe are those it was started
  /// with. `progress` is called now and then by what takes long; returning false throws Error "cancelled".
  Checked(std::shared_ptr<Project> project, const std::string& run, Progress progress);

  Project& project() const { return *project_; }
  const std::optional<RunInfo>& run() const { return run_; }
  const ModelSpec& model() const { return model_; }
  const Recipe& recipe() const { return recipe_; }
  /// Without transforms.
  const data::Split& split();
  /// Every sample read once.
  const data::Survey& survey();
  /// Of the run; empty where there is none.
  const std::vector<MetricPoint>& metric(const std::string& name);
  /// The run's last step, done again with every tensor kept; null where it has done none.
  std::shared_ptr<const tracing::StepRecord> last_step();
  /// How its parameters move; null without a run that has a checkpoint.
  const Distributions* distributions();

 private:
  std::shared_ptr<Project> project_;
  std::optional<RunInfo> run_;
  ModelSpec model_;
  Recipe recipe_;
  Progress progress_;
  std::optional<data::Split> split_;
  std::optional<data::Survey> survey_;
  std::map<std::string, std::vector<MetricPoint>> metrics_;
  std::shared_ptr<const tracing::StepRecord> step_;
  std::optional<Distributions> distributions_;
};

using tracing::CheckResult;
using tracing::Complaint;

/// One check, registered in the file that defines it.
struct CheckDef {
  std::string name;     ///< "data.leak"
  std::string title;    ///< "Samples of the test split are in the training set too"
  bool of_run = false;  ///< it needs a run that has done a step
  std::function<std::vector<Complaint>(Checked&)> look;
};
/// Sorted by name.
const Registry<CheckDef>& checks();
bool register_check(CheckDef def, Place place = Place::current());

/// All checks, by name. What fails for one (data that are gone) is why it was skipped; the others go on.
std::vector<CheckResult> check_project(Checked& checked);

}  // namespace tenon::projects
