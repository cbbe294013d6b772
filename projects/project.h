#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/spec/model_spec.h"
#include "engine/train/checkpoint.h"
#include "engine/train/watch_hit.h"
#include "projects/epoch_length.h"

namespace tenon::projects {

/// Another recipe in the middle of a run (Note [A recipe that changes]).
struct RecipeChange {
  int64_t step = 0;       ///< after this one
  nlohmann::json recipe;  ///< of all steps from then on
  std::string created;
};

/// Where a branch began (Note [A branch]).
struct BranchOf {
  int64_t run = 0;        ///< its parent; 0: it is no branch
  int64_t step = 0;       ///< it went on from the state after this step of it
  std::string name = {};  ///< of the parent, also where that is deleted
  explicit operator bool() const { return run != 0; }
};

struct RunInfo {
  int64_t id = 0;
  std::string name;
  /// running, paused, finished, stopped, failed; pruned: a sweep ended it, for it fell behind; or interrupted: its
  /// process ended without a word, and it can be resumed
  std::string status;
  std::string created;                ///< ISO 8601, UTC
  int64_t steps = 0;                  ///< done so far
  int64_t total_steps = 0;            ///< when it finishes
  double seconds = 0;                 ///< spent training
  nlohmann::json recipe;              ///< the recipe with which it was started
  std::vector<RecipeChange> changes;  ///< of its recipe, by step
  ModelSpec model;                    ///< the model with which it was started
  nlohmann::json best;                ///< {"metric", "value", "step"}, null before the first evaluation
  EpochLength epoch;                  ///< as its session counted; see epoch_of() for runs of before it was kept
  std::string error;                  ///< why it failed, or was pruned
  std::string note;                   ///< what a person says of it
  std::vector<std::string> tags;      ///< words it is found by
  BranchOf branch;                    ///< its own steps are those after the parent's

  /// The change that was made after exactly this step; null: none.
  const RecipeChange* change_after(int64_t step) const;
  /// The recipe of the step that follows this one.
  const nlohmann::json& recipe_after(int64_t step) const;
};

/// One run of a sweep, as far as it has come.
struct TrialInfo {
  int64_t number = 0;  ///< from 1
  int64_t run = 0;     ///< 0: it has not begun, or could not
  /// open: it was chosen, and trains or waits to be gone on with; finished, pruned, failed: it counts as that, whatever
  /// became of its run later
  std::string state;
  double value = 0;  ///< what it came to; NaN where it came to nothing
  std::string error;
  nlohmann::json settings;  ///< [[key, value], ...], as `--set` takes them
};

/// A search over keys of the recipe, with its trials by number.
struct SweepInfo {
  int64_t id = 0;
  std::string name, created;
  nlohmann::json plan;    ///< SweepPlan::to_json()
  nlohmann::json recipe;  ///< that the trials change
  ModelSpec model;
  std::vector<TrialInfo> trials;
};

/// Which trial of which sweep a run is.
struct TrialOf {
  int64_t sweep = 0, number = 0;  ///< 0: of none
};

struct MetricPoint {
  int64_t step = 0;
  double wall = 0;   ///< seconds of training
  double value = 0;  ///< may be NaN or infinite: those points are kept too
};
struct MetricRow {
  std::string name;
  MetricPoint point;
};

/// What a watch costs: seconds spent on looking, and on the steps that were done meanwhile, which has them.
struct WatchCost {
  std::string watch;  ///< Watch::condition
  double seconds = 0, trained = 0;
};

/// All points of one metric of a run, summed up.
struct MetricSum {
  int64_t run = 0;
  std::string name;
  int64_t points = 0, bad = 0;  ///< all of them, and those that are NaN or infinite
  int64_t last_step = 0;
  double last = 0;
  /// The extremes of the finite values and where each was reached first; NaN where none is finite.
  double low = 0, high = 0;
  int64_t low_step = 0, high_step = 0;
};

struct CheckpointInfo {
  int64_t id = 0, run = 0, step = 0;
  std::string created;
  int64_t bytes = 0;         ///< of its tensors
  int64_t stored_bytes = 0;  ///< that this checkpoint added to the file
  bool best = false;
};

/// Something that a run did on its way, for people.
struct RunEvent {
  int64_t step = 0;  ///< after which it is told
  std::string kind;  ///< "plan", "op by op": what Note [When a step is planned] says
  std::string text;  ///< a sentence
  bool operator==(const RunEvent&) const = default;
};

/// Anything else that belongs to a run: a trace, a memory snapshot, an anomaly, an export.
struct ArtifactInfo {
  int64_t id = 0, run = 0, step = 0;
  std::string kind;  ///< trace, memory, anomaly, export, note
  std::string name, created;
  int64_t bytes = 0;
};

/// One to add.
struct NewArtifact {
  std::string kind, name, bytes;
};

/// A .tenon file: one SQLite database that holds models, recipes, runs, every metric point, checkpoints, artifacts and
/// the window's state. A kill at any instant leaves the old state or the new one. Safe to use from several threads;
/// each call is one transaction. Every function throws Error naming the file: no project, newer version, read-only,
/// damaged, or a full disk (of the kind no_space: nothing has changed, and the same call succeeds once there is room).
class Project {
 public:
  static std::shared_ptr<Project> create(const std::string& path, const ModelSpec& model, const nlohmann::json& recipe);
  static std::shared_ptr<Project> open(const std::string& path, bool read_only = false);
  ~Project();

  const std::string& path() const;
  bool read_only() const;

  /// Another number once somebody else, in this process or another one, has changed the file.
  int64_t version_of_others() const;

  ModelSpec model() const;
  void set_model(const ModelSpec& model);
  nlohmann::json recipe() const;
  void set_recipe(const nlohmann::json& recipe);

  std::vector<RunInfo> runs() const;
  RunInfo run(const std::string& name) const;  ///< throws Error that lists the near names
  RunInfo run(int64_t id) const;
  /// A new run of the given model and recipe; an empty name becomes "<model>-NN", of a branch "<parent>-bN".
  /// As a trial it is that from its first moment; throws where another process has begun that trial. A branch has done
  /// the steps of its parent.
  RunInfo new_run(const std::string& name, const ModelSpec& model, const nlohmann::json& recipe, int64_t total_steps,
                  const TrialOf& trial = {}, const EpochLength& epoch = {}, const BranchOf& branch = {});
  void set_run_status(int64_t run, const std::string& status, const std::string& error = {});
  void set_run_progress(int64_t run, int64_t steps, double seconds);
  /// A run is trained again from `step` on: it is marked as running, and the points, hits of watches and events after
  /// `step`, which will be written again, are dropped. Throws while another process trains it.
  void continue_run(int64_t run, int64_t step, double seconds, const EpochLength& epoch = {});
  void rename_run(int64_t run, const std::string& name);
  /// Hidden; undelete_runs() brings them back. All of them or, where one does not exist, none.
  void delete_runs(const std::vector<int64_t>& runs);
  /// All of them, or none: throws Error where another run has the name of one since.
  void undelete_runs(const std::vector<int64_t>& runs);
  std::vector<RunInfo> deleted_runs() const;
  /// A tag is one word or more; empty ones and doubles are left out.
  void describe_run(int64_t run, const std::string& note, const std::vector<std::string>& tags);

  /// The run has done as many steps as its last point says.
  void append_metrics(int64_t run, const std::vector<MetricRow>& rows);
  /// Drops the points, the hits of watches and the events after `step`: a resumed run writes them again.
  void truncate_metrics(int64_t run, int64_t step);
  std::vector<std::string> metric_names(int64_t run) const;
  std::vector<MetricPoint> metric(int64_t run, const std::string& name) const;
  /// Of every metric that has a point, of one run or (0) of all, by run and name. Kept up with the points: it takes no
  /// longer where a run has many of them.
  std::vector<MetricSum> metric_sums(int64_t run = 0) const;

  /// In the order in which they came; one that is there already is not added.
  void append_events(int64_t run, const std::vector<RunEvent>& events);
  std::vector<RunEvent> events(int64_t run) const;

  /// What the watches of a run saw; a hit that is there already is replaced.
  void append_watch_hits(int64_t run, const std::vector<WatchHit>& hits);
  std::vector<WatchHit> watch_hits(int64_t run) const;  ///< by step
  /// Adds to what each has cost so far.
  void add_watch_costs(int64_t run, const std::vector<WatchCost>& costs);
  std::vector<WatchCost> watch_costs(int64_t run) const;

  /// Tensors are cut into chunks; a chunk already in the file is not written again. Metadata, chunks, the metric rows
  /// up to that step and the run's progress become visible in the same transaction.
  /// Where a recipe was changed after that step, `changed` and the run's new length are kept with it, and changes that
  /// were made later, before the run went back here, are dropped.
  struct ChangedRecipe {
    nlohmann::json recipe;
    int64_t total_steps = 0;
  };
  int64_t save_checkpoint(int64_t run, const Checkpoint& checkpoint, const std::vector<MetricRow>& rows = {},
                          double seconds = 0, const nlohmann::json& best = {}, const ChangedRecipe* changed = nullptr);
  std::vector<CheckpointInfo> checkpoints(int64_t run) const;  ///< by step
  std::vector<CheckpointInfo> all_checkpoints() const;         ///< of every run, by run and step
  Checkpoint load_checkpoint(int64_t id) const;
  /// The last one at or before `step`; throws where there is none.
  Checkpoint checkpoint_before(int64_t run, int64_t step) const;
  void delete_checkpoint(int64_t id);

  int64_t add_artifact(int64_t run, int64_t step, const std::string& kind, const std::string& name,
                       const std::string& bytes);
  /// All of them or none.
  std::vector<int64_t> add_artifacts(int64_t run, int64_t step, const std::vector<NewArtifact>& artifacts);
  std::vector<ArtifactInfo> artifacts(int64_t run = 0, const std::string& kind = {}) const;
  std::string artifact(int64_t id) const;

  std::vector<SweepInfo> sweeps() const;           ///< the oldest first, without those that were deleted
  SweepInfo sweep(const std::string& name) const;  ///< throws Error that lists the near names
  SweepInfo sweep(int64_t id) const;               ///< also a deleted one
  void rename_sweep(int64_t sweep, const std::string& name);
  void delete_sweep(int64_t sweep);  ///< hidden, and its runs are ordinary ones; undelete_sweep() brings it back
  void undelete_sweep(int64_t sweep);
  std::vector<SweepInfo> deleted_sweeps() const;
  /// An empty name becomes "sweep-NN".
  SweepInfo new_sweep(const std::string& name, const nlohmann::json& plan, const ModelSpec& model,
                      const nlohmann::json& recipe);
  /// A trial that was chosen; its run comes with new_run(). Throws where another process has chosen it.
  void add_trial(const TrialOf& trial, const nlohmann::json& settings);
  /// What an open trial counts as from now on; one that is not open stays what it is.
  void end_trial(const TrialOf& trial, const std::string& state, double value, const std::string& error = {});

  nlohmann::json window_state(const std::string& key) const;  ///< null where never set
  void set_window_state(const std::string& key, const nlohmann::json& value);

 private:
  Project();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::projects
