#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/checkpoint.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "projects/spikes/spike.h"
#include "projects/time_travel.h"

// Note [Counterfactual search]
// What made a loss jump is found by doing the steps around it again under another recipe, and looking whether the jump
// is still there. Each such replay is a branch (Note [A branch]) that no run is made of: it goes on from the state
// after a step, differs from the run in keys of the recipe and by nothing else, and is judged by the losses of the
// spike's step and of kAfterSpike steps behind it, so that a jump which is only put off is not taken for one that is
// gone. Losses are the same bits whenever they are computed, and a search is a function of them alone: it finds the
// same twice. Whatever it finds is a step and some keys, which `tenon train --from RUN@STEP --set ...` makes a run of.
namespace tenon::projects {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

/// A replay that differs from the run.
struct Counterfactual {
  int64_t from = 0;  ///< it goes on from the state after this step
  KeyValues set;     ///< under the recipe that held there, with these
  std::string said;  ///< how it differs: "without sample 7 (x.npy, row 7)"
  /// It is long, and learns otherwise: its losses may also be as high as half more than the median of its own before.
  bool long_way = false;
};

/// What came of it.
struct Tried {
  Counterfactual trial;
  std::vector<double> losses;  ///< of the judged steps; NaN of a step all of whose samples were left out
  double highest = 0;          ///< of these; infinite where one was no number
  bool gone = false;           ///< the spike is: all of them lie below its limit
  int64_t steps = 0;           ///< replayed for it
};

/// A run around its spike, for those that look for the cause. Replays are made when they are asked for, each once.
class Inquiry {
 public:
  static constexpr int64_t kWindow = 4;      ///< steps that may have made the spike: its own and those before
  static constexpr int64_t kAfterSpike = 3;  ///< steps behind it that are judged, too

  /// `step`: of the spike; below 0: the one that find_spike() finds. Throws Error where the run has none. `progress` is
  /// told how many steps were replayed, of those that set_total() expects; returning false throws Error "cancelled".
  Inquiry(std::shared_ptr<Project> project, const std::string& run, int64_t step = -1, Progress progress = {});
  ~Inquiry();

  Project& project() const { return *project_; }
  const RunInfo& run() const { return run_; }
  const Spike& spike() const { return spike_; }
  /// The first step that may have made the spike, and the last one that is judged.
  int64_t first() const { return first_; }
  int64_t last() const { return spike_.step + kAfterSpike; }
  /// The recipe of the step that follows.
  Recipe recipe_after(int64_t step) const;
  const std::vector<MetricPoint>& metric(const std::string& name);
  /// The layers that have parameters which are trained, by their module paths, in the order of the model.
  const std::vector<std::string>& layers();
  /// The step of the last checkpoint at or before one.
  int64_t kept_before(int64_t step) const;
  /// Seconds a step took when the run trained.
  double seconds_a_step();

  const data::Dataset& train();
  /// Rows of the training set that a step from first() to last() computed.
  const std::vector<int64_t>& rows_of(int64_t step);
  /// The result lives as long as the inquiry. Throws Error where the recipe does not fit the run.
  const Tried& replay(const Counterfactual& trial);

  /// In the order in which they were made.
  const std::vector<std::unique_ptr<Tried>>& tried() const { return tried_; }
  /// Steps of the run that were replayed, in all: as they were, and otherwise.
  int64_t steps() const { return steps_; }
  void set_total(int64_t steps) { total_ = steps; }
  /// Lets go of the states that replays begin with: what was tried stays.
  void rest() { states_.clear(), looked_ = false; }

 private:
  /// Replays the steps from first() to last() as they were, once, and sees that the spike is there again.
  void look();
  const Checkpoint& state(int64_t after);
  /// Of the run as it was.
  std::unique_ptr<TrainingSession> reach(int64_t step);
  void count(int64_t steps);

  std::shared_ptr<Project> project_;
  RunInfo run_;
  Spike spike_;
  Progress progress_;
  int64_t first_ = 1, steps_ = 0, total_ = 0;
  bool looked_ = false;
  std::map<std::string, std::vector<MetricPoint>> metrics_;
  std::vector<std::string> layers_;
  std::shared_ptr<const data::Split> data_;
  std::map<int64_t, std::vector<int64_t>> rows_;
  std::map<int64_t, Checkpoint> states_;
  std::vector<std::unique_ptr<Tried>> tried_;
};

}  // namespace tenon::projects
