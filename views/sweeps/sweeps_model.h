#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "projects/run_driver.h"
#include "projects/search/importance.h"
#include "projects/search/sweep_plan.h"
#include "views/shared/project_contents.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// One sweep: its trials as a table, and as a picture of the best so far, of all keys beside each other (parallel
/// coordinates), and of how much each key matters.
class SweepsModel : public StepModel {
 public:
  enum HitKind { none, trial = 1 };  ///< of a trial: its number

  /// The sweep that is shown, with its runs; null: none.
  void set_sweep(const projects::SweepInfo* sweep, const std::vector<projects::RunInfo>& runs);
  /// Of the runs that train, which may be trials of this sweep.
  void set_statuses(std::vector<projects::RunStatus> statuses);
  /// Computed elsewhere, of this sweep as it was.
  void set_importance(projects::Importance importance);
  void set_selection(const Selection& s) override;

  bool empty() const { return !sweep_; }
  int64_t id() const { return sweep_ ? sweep_->id : 0; }
  const projects::SweepInfo* sweep() const { return sweep_ ? &*sweep_ : nullptr; }
  /// Why the sweep cannot be shown (a plug-in that its keys are of is not here); empty: it can.
  const std::string& fault() const { return fault_; }
  const std::optional<projects::SweepPlan>& plan() const { return plan_; }
  const projects::Importance& importance() const { return importance_; }
  bool is_over() const;
  /// "12 of 20 trials · bayes · lowest test loss 0.2130 (sweep-01-07)"
  std::string said() const;

  /// One row a trial.
  Table table() const;

  bool pointer(const PointerEvent& e) override;
  bool key(const KeyEvent& e) override;
  /// With the chosen trial, for who cannot see which it is.
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  struct Range {
    double lo = 0, hi = 1;
    float at(double v) const { return hi > lo ? static_cast<float>((v - lo) / (hi - lo)) : 0.5f; }
  };
  /// Of the values; those that are far worse than the others are left out, and drawn at the edge.
  Range range() const;
  /// What of a trial's run is shown.
  struct Run {
    std::string name, status;
    int64_t steps = 0, total = 0;
  };
  const Run* run_of(const projects::TrialInfo& t) const;
  /// While it trains; else null.
  const projects::RunStatus* live(const projects::TrialInfo& t) const;
  std::string state_of(const projects::TrialInfo& t) const;
  void select_trial(int64_t number);
  const projects::TrialInfo* best() const;
  void draw_progress(Scene& scene, Box box);
  void draw_importance(Scene& scene, Box box);
  void draw_keys(Scene& scene, Box box);
  void draw_axis(Scene& scene, float x, Box area, const std::string& title, const std::string& low,
                 const std::string& high, float width);
  void draw_trial(Scene& scene, const projects::TrialInfo& t, const std::vector<float>& xs, Box area);

  std::optional<projects::SweepInfo> sweep_;
  std::optional<projects::SweepPlan> plan_;
  std::string fault_;
  std::map<int64_t, Run> runs_;  ///< of the trials
  Range range_;
  int64_t best_ = 0;  ///< number of the best trial
  std::vector<projects::RunStatus> statuses_;
  projects::Importance importance_;
  int64_t selected_ = 0;  ///< run
};

}  // namespace tenon::views
