#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "projects/project.h"

namespace tenon {
class Recipe;
class TrainingSession;
struct SessionOptions;
struct StepResult;
}  // namespace tenon
namespace tenon::tracing {
struct StepRecord;
}

namespace tenon::projects {

/// Progress and cancel of a long call: called now and then with done and total; returning false cancels (the call
/// throws Error "cancelled").
using Progress = std::function<bool(int64_t done, int64_t total)>;

/// The session of a run, brought to any of its checkpoints, and on from there as the run went.
class Replayer {
 public:
  explicit Replayer(RunInfo run);
  ~Replayer();
  /// One that was brought somewhere else is brought to this state.
  /// `only_state`: no step is done from here (SessionOptions).
  TrainingSession& load(const Checkpoint& from, bool only_state = false);
  /// One that stands at a step of the run, under the recipe of its next one.
  TrainingSession& take(std::unique_ptr<TrainingSession> session);
  TrainingSession& session() const { return *session_; }
  /// The next step, and what the run did behind it: an evaluation that later steps depend on, a change of its recipe.
  StepResult step();
  /// The second half of that, where the session has done the step already.
  void settle();
  std::unique_ptr<TrainingSession> release();

 private:
  RunInfo run_;
  std::unique_ptr<TrainingSession> session_;
  nlohmann::json recipe_;  ///< of its next step
};

/// A session in the state after step `step` of a run: its nearest earlier checkpoint, replayed. What a branch did
/// before it was one, its parent did.
std::unique_ptr<TrainingSession> replay_to(Project& project, int64_t run, int64_t step, const Progress& progress);
/// The next step as a run does it, with the evaluation that its later steps depend on.
StepResult replay_step(TrainingSession& session);
/// Which samples a step of a run trained on, and in which epoch, by doing it again. Throws Error for a step that the
/// run has not done.
struct StepBatch {
  int64_t step = 0, epoch = 0;
  std::vector<int64_t> rows;  ///< of the training set, in the order of the batch
};
StepBatch batch_of(Project& project, int64_t run, int64_t step, const Progress& progress = {});
/// A session that goes on from a step of a run under another recipe (Note [A branch]), also with another model than
/// the run's (Note [Surgery]).
std::unique_ptr<TrainingSession> branch_from(Project& project, const BranchOf& parent, const ModelSpec& model,
                                             const Recipe& recipe, const Progress& progress,
                                             const SessionOptions& options);

/// Time travel: the state after step `step` of a run, from its nearest earlier checkpoint replayed bit for bit.
/// `threads` does not change a bit.
Checkpoint state_at(Project& project, int64_t run, int64_t step, int threads = 0, const Progress& progress = {});
/// SHA-256 over parameters, optimizer state, random state and data cursor after step `step`.
std::string digest_at(Project& project, int64_t run, int64_t step, int threads = 0, const Progress& progress = {});
std::string digest(const Checkpoint& checkpoint);
/// Steps `from` to `to` of a run (from 1), each with its values alone (RecordOptions::clocks); `take` gets them in
/// order. What a branch did before it was one, its parent did.
void record_values(Project& project, int64_t run, int64_t from, int64_t to,
                   const std::function<void(const tracing::StepRecord&)>& take, const Progress& progress = {});
/// Replays to just before `step` and runs that step with every instrument on.
std::shared_ptr<const tracing::StepRecord> record_step(Project& project, int64_t run, int64_t step,
                                                       const Progress& progress = {});
/// Finds the step in which a run first stopped being finite, replays it with full checks and says where. Null where the
/// run is clean.
std::shared_ptr<const tracing::StepRecord> find_nan(Project& project, int64_t run, const Progress& progress = {});

}  // namespace tenon::projects
