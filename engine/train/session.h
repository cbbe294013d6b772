#pragma once
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "engine/train/checkpoint.h"

namespace tenon {

class Callback;
class Recipe;
class Replica;
class StepPlan;
struct PlanNews;
class Teacher;
struct GivenTensor;
struct ModelSpec;
struct SurgeryRow;
struct WeightMap;
namespace nn {
class Module;
}
namespace optim {
class Optimizer;
}
namespace data {
class Dataset;
struct Batch;
struct Remark;
struct Split;
}  // namespace data

/// What one training step did.
struct StepResult {
  int64_t step = 0;        ///< its number; steps count from 1
  int64_t epoch = 0;       ///< the epoch it belongs to; epochs count from 0
  int64_t index = 0;       ///< its number within the epoch, from 0
  bool epoch_end = false;  ///< the last step of its epoch
  double loss = 0;         ///< mean over the whole batch, before the update
  /// Share of the targets that were right, over the whole batch, before the update; -1 where they are no classes, or
  /// mixtures of them.
  double accuracy = -1;
  /// Of the loss, before they are weighed: how far the outputs are from a teacher's, and layers from layers of it
  /// (distill.features); NaN where there is no such part.
  double teacher_loss = std::numeric_limits<double>::quiet_NaN();
  double feature_loss = std::numeric_limits<double>::quiet_NaN();
  double lr = 0;         ///< with which it updated
  double grad_norm = 0;  ///< 2-norm over all gradients
  /// In the batch, whoever computed them. 0: all of it is left out (data.without), and the step changed nothing; its
  /// loss is NaN.
  int64_t samples = 0;
  bool finite = true;   ///< neither the loss nor the gradient norm is NaN or infinite
  bool applied = true;  ///< the parameters were written; false for a step that is not finite under on_nan = "stop", for
                        ///< an overflow, and where there are no samples
  double loss_scale = 1;  ///< by which gradients were scaled under amp = "fp16"
  std::string
      overflow;  ///< the first parameter whose scaled gradient overflowed, so that the update was skipped; empty: none
  int64_t targets = 0;        ///< in the batch: tokens, pixels, or samples
  std::vector<int64_t> rows;  ///< rows of the training set that this session computed
};

/// A number that judges a model, by its name in the registry of metrics.
struct Judgement {
  std::string name;
  double value = 0;
  bool higher_is_better = true;
};
struct Evaluation {
  double loss = 0;      ///< mean over the targets
  double accuracy = 0;  ///< share of correct classes, 0..1; -1 where the targets are no classes
  int64_t samples = 0, correct = 0;
  std::vector<Judgement> judgements;  ///< every metric of the task, accuracy included
  Judgement decisive;                 ///< what the best checkpoint is chosen by: one of them, or the loss
};

/// Sees a session from inside. Called on the thread that calls step(), in this order within a step. Tensors may be
/// kept; keep them for a short time only, for they hold memory.
struct TrainingObserver {
  virtual ~TrainingObserver() = default;
  virtual void on_step_begin(int64_t /*step*/) {}
  virtual void on_batch(const data::Batch&) {}
  /// The autograd graph exists now; of a step from a plan there is none, and the gradients are there already.
  virtual void on_forward(const Tensor& /*output*/, const Tensor& /*loss*/) {}
  virtual void on_backward() {}  ///< gradients are in the parameters; nothing written yet
  virtual void on_step_end(const StepResult&) {}
};

/// Where a session works, which changes none of its steps but by the order in which a device or the replicas add up.
struct SessionOptions {
  Device device;               ///< of the model; batches are brought there. cpu: the recipe says which
  Replica* replica = nullptr;  ///< not owned; null: the session is alone
  /// What open_data() gave for this recipe before; null: the session opens it itself.
  std::shared_ptr<const data::Split> data = nullptr;
  /// A state that is looked at, and no step of it done: where the recipe's device is not there, the CPU stands for it.
  /// A step of such a session is an Error: its bits would be another device's.
  bool only_state = false;
};

/// Training one model by one recipe, a step at a time, on the calling thread. It has no threads of its own but the data
/// workers, and is used from one thread at a time. The bits of every step are a function of (ModelSpec, Recipe, data,
/// step number) alone, whatever the number of threads, and whether the session ran through or was saved and loaded
/// anywhere in between.
class TrainingSession {
 public:
  /// Builds data set, model, optimizer and schedule. Throws Error for whatever does not fit: recipe values, missing
  /// data, layers whose shapes do not match, a batch larger than the data set or the memory.
  TrainingSession(const ModelSpec& spec, const Recipe& recipe, const SessionOptions& options = {});
  ~TrainingSession();
  TrainingSession(const TrainingSession&) = delete;

  // Note [What a run begins with]
  // A session begins with the weights that the seed gives. Whoever begins a run whose recipe names others (init.from,
  // init.run) gives them to it before the first step; the run's checkpoint of step 0 has them, so no replay needs the
  // file again. What is frozen (init.freeze) holds in every session: such a parameter wants no gradient, no optimizer
  // knows it, and a layer all of whose buffers are frozen (the running statistics of a norm) uses and keeps what it
  // has, as in evaluation.

  /// Before the first step: takes what fits (Note [What a run begins with]). Throws Error where nothing fits, and under
  /// init.missing = fail where the model has a tensor that the others do not give; the session is then unchanged.
  WeightMap start_from(std::vector<GivenTensor> tensors);

  /// Before the first step of a run or a branch whose recipe names a teacher (Note [A teacher]). Throws Error where the
  /// model's ends are not the student's, or the task has no classes.
  void learn_from(std::unique_ptr<Teacher> teacher);
  /// Whether the recipe names a teacher that nobody has given.
  bool lacks_teacher() const;

  // Note [A branch]
  // A branch goes on from a step of another session of the same model under a recipe of its own, of which anything may
  // differ: rates, seeds, the batch, precision, what is frozen, samples that are left out. It takes what still has a
  // place: weights always, but for those that init.anew names; of optimizer, schedule, callbacks, average and loss
  // scale what the same kind of them kept, and another kind begins. Steps count on. Where the length of an epoch is
  // another one, as with another batch size, the branch goes on with the batch that has the parent's next sample, so
  // every sample of the running epoch is seen (those of one batch at most twice): shift is by how much the number of a
  // batch is then more than that of its step, and epochs, evaluations and schedules count batches. With another seed
  // the rest of the epoch is that of another order. Starting values of init.anew are those of the seed after the
  // branch's own. A branch of the same recipe is the parent, bit for bit. Its first checkpoint has all it took: from
  // there on it is saved, loaded and replayed like any session.

  /// Before the first step: goes on from the state `of` a session with that recipe. Throws Error naming a tensor of the
  /// model that the state lacks or has in another shape; the session is then unchanged.
  void branch(const Checkpoint& state, const Recipe& of);
  /// The same from a session of another model (Note [Surgery]). Returns what became of each tensor.
  std::vector<SurgeryRow> branch(const Checkpoint& state, const Recipe& of, const ModelSpec& before);
  int64_t shift() const;

  int64_t steps_done() const;
  int64_t total_steps() const;  ///< epochs * steps_per_epoch, or max_steps where that is less
  int64_t steps_per_epoch() const;
  int64_t samples_per_epoch() const;
  int64_t epoch() const;  ///< of the next step, from 0
  int64_t epochs() const;
  bool finished() const { return steps_done() >= total_steps(); }
  /// The learning rate of the next step.
  double learning_rate() const;

  // Note [A recipe that changes]
  // A run keeps its model, its data and what its optimizer remembers; of all else of the recipe (rates, decay,
  // clipping, schedule, the loss's settings, how long, how often evaluated) another value may hold from some step on.
  // Bits stay a function of what was said and when: whoever replays such a run changes its recipe after the same steps.

  /// Whether a key of the recipe may be changed in a session that has begun.
  static bool may_change(const std::string& key);
  /// Another recipe from the next step on. Throws Error (usage) naming a key that may not change, or an optimizer whose
  /// memory would not fit; the session is then unchanged. A schedule of another type begins with nothing reported.
  void change(const Recipe& recipe);

  /// batch -> forward -> loss -> backward -> optimizer. Op numbers (Origin::seq) start again at 1. A step that is not
  /// finite counts as done, whether it was applied or not. On an exception from an op or a data worker the session
  /// stays at the step before.
  StepResult step();
  /// Called with (done, total) batches; returning false throws Error "cancelled".
  using EvalProgress = std::function<bool(int64_t done, int64_t total)>;
  /// Over the whole test split, without gradients, in eval mode; with the averaged weights where the recipe keeps and
  /// wants them. Changes no state of the session, but that replicas take the running statistics of rank 0.
  /// Given what was computed of some rows of the test split: scores and answers as a Meter takes them, on the host.
  using EvalObserver =
      std::function<void(const std::vector<int64_t>& rows, const Tensor& scores, const Tensor& answers)>;
  Evaluation evaluate(const EvalProgress& progress = {}, const EvalObserver& observer = {});
  /// The same of the outputs that another program gives for batches of samples, such as the exported model as it runs.
  Evaluation judge(const std::function<Tensor(const Tensor& x)>& program, const EvalProgress& progress = {});
  /// On the dry device: what an evaluation does with its first batch, whose judging on the host is left out.
  void rehearse_evaluation();
  /// Forward and backward of rows of the test split, in eval mode and with the weights of an evaluation: observers see
  /// it as they see a step, and gradients are left in the parameters. Nothing is updated, and no state changes.
  StepResult probe(const std::vector<int64_t>& test_rows);
  /// The loss of the next step's batch at the weights as they are, in eval mode; NaN where all of the batch is left
  /// out. Changes no state.
  double loss_ahead();
  /// What kind of task it is, and how many targets a sample has.
  const std::string& task() const;
  int64_t targets_per_sample() const;
  /// Whether the recipe wants an evaluation now: at the end of every so many epochs, and when the run is finished.
  bool evaluation_due() const;
  /// Tells a schedule that watches the test loss, and callbacks, of it, once for each evaluation that was due; part of
  /// the state.
  void report(const Evaluation& evaluation);
  /// Whether later steps depend on report().
  bool watches_evaluations() const;
  /// Why a callback ends the run here; empty: it goes on.
  const std::string& ending() const;
  /// Those that the recipe lists, in its order.
  std::vector<const Callback*> listed_callbacks() const;
  /// The model computes without what they put into it from here on; steps are none of the run's then.
  void detach_callbacks();
  /// Numbers of the callbacks that a run records behind every step, by the name of the metric: "sparsity".
  std::vector<std::pair<std::string, double>> callback_figures() const;

  /// Everything that later steps depend on. The tensors are copies on the CPU.
  Checkpoint save() const;
  /// Throws Error naming the tensor or key that is missing, left over, or of another shape; the session is then
  /// unchanged.
  void load(const Checkpoint& checkpoint);

  /// Whether the targets are tokens of a text.
  bool is_text() const;
  /// Under compile = true: what plans the steps come from, or why they run op by op (Note [When a step is planned]); of
  /// evaluations, too. A sentence each; empty where nothing is known yet.
  std::vector<std::string> planned() const;
  /// What happened to those plans since the last call: a sentence for each that was made, dropped or refused.
  std::vector<PlanNews> take_plan_news();
  const StepPlan* plan() const;  ///< of the first size of batch that has one; null: none has
  /// Where the model is.
  Device device() const;
  /// What t_state.group is while the session works, on its own thread and on its data workers.
  uint32_t group() const;
  const ModelSpec& spec() const;
  const Recipe& recipe() const;
  nn::Module& model();
  optim::Optimizer& optimizer();
  const data::Dataset& train_data() const;
  const data::Dataset& test_data() const;
  std::shared_ptr<const data::Dataset> share_test_data() const;  ///< for who outlives the session
  /// What a person should know of the data: how their files were read, and what looks wrong in them.
  const std::vector<data::Remark>& remarks() const;
  /// Not owned; called in the order they were added.
  void add_observer(TrainingObserver* observer);
  void remove_observer(TrainingObserver* observer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon
