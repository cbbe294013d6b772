#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/session.h"
#include "projects/project.h"

namespace tenon::projects {

/// Asked, on the training thread, before the first step (without rows) and after each step and evaluation with what was
/// recorded. Not empty: why the run ends here, as pruned.
using Prune = std::function<std::string(const std::vector<MetricRow>&)>;

/// A run that is a trial of a sweep has the sweep's model and recipe, not those of the project.
struct TrialRun {
  TrialOf of;
  ModelSpec model;
  nlohmann::json recipe;
};

struct TrainOptions {
  std::string run_name;  ///< empty: the next free one
  std::string resume;    ///< name of a run to go on with, from its last checkpoint
  /// A branch: a new run that goes on from the state after a step of this one, with its model, under the recipe that
  /// held there and `set` (Note [A branch]). With another seed the samples that are generated stay those of the parent.
  std::string from;
  int64_t from_step = 0;
  /// Of a branch: its model, where that is not the parent's (Note [Surgery]).
  std::shared_ptr<const ModelSpec> model;
  /// Values that are changed (Note [Edits]), beside those of the recipe; of a branch at its first step where they name
  /// none. They are tried before the branch begins.
  std::vector<std::string> edits;
  std::string without;  ///< training samples that are left out, too, as named_samples() reads them
  /// Recipe keys: {"optimizer.lr", "0.01"}. With `resume` they hold from the next step on (Note [A recipe that
  /// changes]).
  std::vector<std::pair<std::string, std::string>> set;
  int64_t epochs = -1, max_steps = -1;  ///< -1: the recipe's
  int threads = 0;                      ///< 0: every core
  bool start_paused = false;
  /// Where it trains. Of several replicas each has a driver of its own, all with the same options; the one of rank 0
  /// alone writes into the project, and decides when to pause. A stop of any of them ends all. start() returns when all
  /// have started.
  SessionOptions session;
  std::function<bool(int64_t done, int64_t total)> replaying;  ///< of a branch, on its way to the step
  std::shared_ptr<const TrialRun> trial;                       ///< of a new run; null: it is none
  Prune prune;                                                 ///< none: it goes on to its end
  /// False where nobody would go on with it (the trials of a sweep): pause and stop of a watch are only marks.
  bool obeys_watches = true;
};

struct RunStatus {
  enum class State { starting, running, paused, finished, stopped, failed, pruned };
  State state = State::starting;
  int64_t run = 0, parent = 0;  ///< parent: the run that it is a branch of; 0: of none
  std::string name;
  int64_t step = 0, total_steps = 0, steps_per_epoch = 0, epoch = 0, epochs = 0;
  double loss = 0, lr = 0, samples_per_second = 0, seconds = 0;
  int64_t live_bytes = 0, peak_bytes = 0;  ///< memory of tensors
  bool nan = false;                        ///< the loss or a gradient stopped being finite; see nan_step
  int64_t nan_step = 0;
  int64_t skipped = 0,
          skipped_step = 0;  ///< updates left out because a scaled gradient overflowed (amp = fp16); the last one
  std::string skipped_for;   ///< the parameter whose gradient it was
  std::string error;         ///< why it failed, was pruned, or was stopped by a watch, in words
  /// Not empty while the disk is full: what could not be saved. Training is held meanwhile, with its state (`paused`),
  /// and goes on by itself as soon as there is room, unless the user has paused it too. The hint says what is free and
  /// what is needed.
  std::string blocked, blocked_hint;
  int64_t changes = 0;  ///< how often the recipe was changed since start()
  std::string refused;  ///< why the last change was not made; empty once one is
  /// Not empty while the run is paused by a watch: what it saw. The run goes on by resume() or step_once().
  std::string paused_by;
  /// Under compile = true, once it has ended: TrainingSession::planned().
  std::vector<std::string> planned;
  int64_t hits = 0;   ///< how often the condition of a watch began to hold since start()
  int64_t tries = 0;  ///< how often saving was tried again, or for the first time in vain
};

/// A state as the project file calls it: "running", "pruned".
inline const char* status_word(RunStatus::State state) {
  constexpr const char* kWords[] = {"running", "running", "paused", "finished", "stopped", "failed", "pruned"};
  return kWords[static_cast<int>(state)];
}
/// It has not ended.
inline bool is_active(RunStatus::State state) { return state <= RunStatus::State::paused; }

/// One training run of a project on its own thread: the session, with recorders that write metrics and checkpoints into
/// the project. The command line and the window drive training through this and nothing else. All functions may be
/// called from any thread and return at once. While the disk is full (RunStatus::blocked) resume(), step_once() and
/// checkpoint() look for room at once instead of in a few seconds; what they ask for, and pause(), holds as soon as
/// there is room.
class RunDriver {
 public:
  /// Throws Error for what can be known beforehand (unknown recipe key, batch size 0, shapes that do not fit, missing
  /// data).
  static std::unique_ptr<RunDriver> start(std::shared_ptr<Project> project, const TrainOptions& options);
  ~RunDriver();  ///< stops cleanly and waits

  void pause();
  void resume();
  void step_once();  ///< one step, then paused
  /// After the current step, with a checkpoint. While the disk is full: one more try to save, and where that fails too
  /// the run has failed; its error says which steps are not in the file.
  void stop();
  void checkpoint();  ///< after the current step
  void retry();       ///< looks for room on a full disk at once; changes nothing else
  /// Other values of keys of the recipe from the next step on, kept with the run, so that every replay does the same.
  /// Throws Error (usage) for a key that may not change in a run that has begun, and for values that do not fit it;
  /// what only the training thread can find out (rules that fit no parameter) comes as RunStatus::refused.
  void change(const std::vector<std::pair<std::string, std::string>>& set);
  /// The recipe that holds now, with what was asked for and not yet done.
  Recipe recipe() const;

  RunStatus status() const;
  /// What a person should know of the data it trains on.
  const std::vector<data::Remark>& remarks() const;
  /// Metric points since the last call, in order; never waits for the training thread.
  void drain(std::vector<MetricRow>& out);
  /// The same of what its watches saw.
  void drain(std::vector<WatchHit>& out);
  void drain(std::vector<RunEvent>& out);  ///< and of what it did on its way
  void wait();                             ///< until finished, stopped or failed

 private:
  RunDriver();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::projects
