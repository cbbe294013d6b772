#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/state.h"
#include "engine/data/loader.h"
#include "engine/model/graph_module.h"
#include "engine/nn/random_state.h"
#include "engine/ops/readings.h"
#include "engine/optim/grad_scaler.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/schedule.h"
#include "engine/optim/weight_average.h"
#include "engine/train/callback.h"
#include "engine/train/feature_match.h"
#include "engine/train/planned_step.h"
#include "engine/train/recipe.h"
#include "engine/train/replica.h"
#include "engine/train/session.h"
#include "engine/train/surgery.h"
#include "engine/train/task.h"
#include "engine/train/teacher.h"
#include "engine/train/tensor_edit.h"
#include "engine/train/weight_map.h"

namespace tenon {

class StepEdits;

/// On the dry device, parts of a batch that are computed: of more, which are alike, the first ones and the last.
inline constexpr int64_t kDryParts = 64;

struct TrainingSession::Impl {
  ModelSpec spec;
  Recipe recipe;
  data::Split data;
  std::shared_ptr<GraphModule> model;
  std::optional<Task> task;
  std::unique_ptr<PlannedStep> planned, planned_evaluation;  ///< the recipe asks for them
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Schedule> schedule;
  std::optional<optim::GradScaler> scaler;
  std::optional<optim::WeightAverage> average;
  std::unique_ptr<Teacher> teacher;
  std::optional<FeatureMatch> features;  ///< Note [Features]
  double teacher_weight = 0, feature_weight = 0, temperature = 1;
  CallbackList callbacks;  ///< that the recipe lists
  std::unique_ptr<data::Loader> loader;
  std::vector<TrainingObserver*> observers;
  std::vector<nn::Named> trained;    ///< the parameters that are not frozen
  std::vector<nn::Module*> at_rest;  ///< layers whose buffers are frozen
  bool stop_on_nan = true, target_is_input = false;
  std::optional<DType> low;  ///< of mixed precision
  double clip_norm = 0, clip_value = 0;
  int64_t micro_batches = 1;
  std::vector<TensorEdit> edits;         ///< Note [Edits]
  std::vector<data::Batch> dry_batches;  ///< on the dry device: those that the loader's workers would have ready
  const uint32_t group = new_group();
  uint64_t seed = 0;
  int64_t per_epoch = 0, total = 0;
  Device device;
  Replica* replica = nullptr;
  std::vector<Tensor> leaves;                                       ///< what is trained, where there is a replica
  std::shared_ptr<bool> last_part = std::make_shared<bool>(false);  ///< the step's last micro-batch is under way

  // The state beside the tensors and what the parts above keep.
  int64_t done = 0;
  int64_t shift = 0;  ///< Note [A branch]
  double base_lr = 0;

  Impl(const ModelSpec& s, const Recipe& r, const SessionOptions& o)
      : spec(s), recipe(r), data(o.data ? *o.data : data::Split{}), device(device_for(r, o)), replica(o.replica) {}
  /// The CPU stands for a device that is not there.
  bool stands_in() const { return device == Device{} && recipe.text("device") != "cpu"; }
  static Device device_for(const Recipe& r, const SessionOptions& o);
  void build();
  // What a recipe says of a run whose model and data stand.
  void take_limits();
  /// Throws Error (usage) for a name that the model and the optimizer do not have.
  void take_edits();
  std::unique_ptr<optim::Optimizer> make_optimizer(const Recipe& r) const;
  std::unique_ptr<optim::Schedule> make_schedule(const Recipe& r) const;
  /// With `view`, of a task that need not be the session's yet.
  CallbackList make_callbacks(const Recipe& r, const TaskView& view) const;
  int64_t steps_of(const Recipe& r) const;
  /// Rows of the training set, sorted.
  std::vector<int64_t> left_out(const Recipe& r) const;
  /// The number of the next batch, through all epochs.
  int64_t place() const { return done + shift; }
  /// Brings the loader there.
  void seek() { loader->seek(place() / per_epoch, place() % per_epoch); }
  void branch(const Checkpoint& c, const Recipe& of);
  /// Its count of steps, of all parameters and of those of which nothing was `taken`.
  void go_on_with_optimizer(const nlohmann::json& state, const std::set<std::string>& taken);
  std::vector<SurgeryRow> branch(const Checkpoint& c, const Recipe& of, const ModelSpec& before);
  /// Gives batch norms the gain and shift of the next batch, so that they undo themselves there.
  void undo_norms(const std::vector<std::string>& layers);
  void change(const Recipe& r);
  void freeze();
  void start_training();
  WeightMap start_from(std::vector<GivenTensor> tensors);
  void learn_from(std::unique_ptr<Teacher> given);
  /// What the forward passes of a step leave to be read: numbers of `readings`, with the share of the batch that they
  /// are of.
  struct Terms {
    struct Part {
      size_t number;
      double share;
    };
    Readings& readings;
    std::vector<Part> loss;
    std::vector<Part> outputs, features;  ///< what the teacher adds to it, before that is weighed
    std::vector<size_t> right;
    bool judged = true;           ///< false: nothing is right or wrong here
    std::optional<double> total;  ///< the loss, where it has been read
    /// The sum of parts, times their shares.
    double sum(const std::vector<Part>& parts) const;
  };
  /// The loss of a part of a batch, the teacher's share with it, of which `told` learns.
  Tensor loss_of(const Tensor& x, const Tensor& output, const Tensor& answer, Terms* told = nullptr, double share = 1);
  void build_average();
  void join_replicas();
  /// Gives every rank the weights of rank 0.
  void share_weights();
  /// Gives every rank the running statistics of rank 0.
  void share_buffers();
  bool on_all(bool mine) const { return replica ? replica->all_of(mine) : mine; }
  /// To where the model is. While `known` lives, its targets can be read without waiting.
  void bring(data::Batch& batch, std::optional<KnownOnHost>& known) const;
  /// Samples without values, on the dry device.
  data::Batch dry_batch(const data::Dataset& set, int64_t n) const;
  /// A batch on the dry device, and as many behind it as a run has ready while it computes.
  data::Batch next_dry_batch();
  StepResult step();
  /// The step itself; `made`: its edits, null: it has none.
  StepResult step(StepEdits* made);
  /// Forward and backward of a batch at the parameters as they are; gradients are left in them. With a `step`, which is
  /// then the one that is taken, observers are told. `may_plan`: nobody works within it.
  void pass(const data::Batch& batch, StepResult* step, Terms& terms, bool may_plan = false);
  /// Reads what a pass left: the loss, and what `step` is to know beside it.
  double settle(const data::Batch& batch, StepResult* step, const Terms& terms) const;
  /// pass() and settle().
  double gradients(const data::Batch& batch, StepResult* step);
  bool plans(int64_t parts);
  /// Begins with no plan, where the recipe asks for any.
  void plan_steps();
  /// What both kinds of plans say, that of evaluations marked so.
  std::vector<std::string> of_plans(const std::function<std::vector<std::string>(PlannedStep&)>& ask) const;
  void apply(StepResult& r, const data::Batch& batch, Terms& terms);
  void average_weights(const StepResult& r);
  nn::RandomState random_state() const;
  /// Of the model, or of another `program` in its place.
  Evaluation evaluate(const EvalProgress& progress, const EvalObserver& observer,
                      const std::function<Tensor(const Tensor& x)>& program = {});
  /// How many samples of the test split an evaluation looks at together.
  int64_t evaluation_batch() const;
  void rehearse_evaluation();
  StepResult probe(const std::vector<int64_t>& rows);
  double loss_ahead();
  std::vector<nn::Named> tensors() const;
  /// What a state says of Optimizer::begun(), by parameter. Throws Error where that cannot be.
  std::vector<int64_t> begun_of(const nlohmann::json& state, int64_t steps) const;
  const Tensor& target_of(const data::Batch& batch) const { return target_is_input ? batch.x : batch.y; }
  template <class F>
  void tell(const F& f) {
    for (TrainingObserver* o : observers) f(*o);
  }
};

}  // namespace tenon
