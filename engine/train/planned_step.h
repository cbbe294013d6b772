#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "engine/graph/plan_replay.h"
#include "engine/graph/step_plan.h"
#include "engine/nn/module.h"

namespace tenon {

// Note [When a step is planned]
// Forward and backward of a batch run op by op twice while they are traced; where both traces are the same, a third
// time beside the plan that was made of the second: the plan stays if output, loss, gradients and whatever else the
// step writes (running statistics) have the same bits. Batches of another size have a plan of their own. Steps that
// somebody looks at (a profile, a recorder, a history of memory, a debugger, hooks on layers) run op by op, planned or
// not: the bits are the same, so nobody has to know. Layers that were given other memory are planned anew, unless
// that happens again and again.
// On a device that records, the kernels of a plan are done as one graph: Note [A plan as one graph].
// What cannot be planned runs op by op, and told() says why: a value that is read on the way (item()), attributes and
// constants that are others in the second step. A layer that keeps a number beside its tensors and computes something
// else by it in a later step alone is not seen at first, and what it does beside its ops (it prints) is done in no step
// from a plan; such state belongs into a buffer, as for going back to a step. So a plan is proven again
// after 10, 100, 1,000 ... steps, and one that lost its ops' bits is told with the steps that came from it.

/// What happened to a plan: a sentence.
struct PlanNews {
  std::string text;
  bool op_by_op = false;  ///< it says why steps come from none
};

/// Forward and backward of a session's steps, from plans where there are some.
class PlannedStep {
 public:
  struct Values {
    Tensor output, loss;
  };
  /// Computes them op by op and leaves the gradients in the parameters, which have none before. Where nothing is
  /// `trained` (an evaluation) there is no backward.
  using Eager = std::function<Values()>;

  /// `model` outlives this. `called`: what told() counts.
  explicit PlannedStep(nn::Module& model, const char* called = "steps", StepPlan::Keep keep = StepPlan::Keep::all)
      : model_(model), called_(called), keep_(keep) {}
  /// Whether somebody looks at this step: it runs op by op, whatever is planned.
  static bool looked_at();
  /// The same from a plan or by `eager`. `factor` is what the loss is multiplied by before backward. Throws what either
  /// throws.
  Values run(const Tensor& x, const Tensor& target, double factor, const std::vector<nn::Named>& trained,
             const Eager& eager);

  /// Between steps, before other work and after it: memory that only a plan can use goes back to the system, or to the
  /// device's pool.
  void rest() const;
  /// Lets go of what a device holds for plans that were recorded; they are recorded anew when they are run again.
  void drop_graphs() const;
  /// For a step that is not given to run().
  void stay_eager(const std::string& why);
  /// "a plan of 57 kernels ...", or why there is none: a line for all forms of batches that have plans, and one for
  /// each that has none.
  std::vector<std::string> told() const;
  /// What happened to the plans since the last call: a sentence for each that is made, dropped or refused. A reason is
  /// told once.
  std::vector<PlanNews> take_news() { return std::exchange(news_, {}); }
  /// The first plan, for people; null: there is none yet.
  const StepPlan* plan() const;

 private:
  /// What a plan is for.
  struct Kind {
    Meta x, target;
    Dims x_stride, target_stride;
    double factor = 1;
    uint64_t drawn = 0;  ///< random numbers of the step that were used before
    size_t trained = 0;
    bool operator==(const Kind& o) const;
  };
  struct Entry {
    Kind kind;
    std::optional<StepTrace> first = {};
    std::unique_ptr<StepPlan> plan = {};
    std::unique_ptr<PlanReplay> replay = {};  ///< after the plan, which outlives it
    bool recorded = false;                    ///< there was one
    bool held = false;                        ///< somebody holds gradients over a step
    std::string no_graph = {};                ///< why it failed
    std::string why = {};                     ///< it is not planned; empty: it is, or will be
    int64_t planned_steps = 0;                ///< of this plan
    int64_t last_proof = 0;                   ///< so many of them came before the last proof
    int64_t next_proof = 0;
    int64_t used = 0;           ///< steps_ when it was asked for last
    int64_t earlier_steps = 0;  ///< of plans before it
    int dropped = 0;            ///< plans that did not last, one after the other
    std::string form() const;   ///< "batches of f32 [64, 784]"
    std::string way() const;    ///< in which a device does the plan, behind what it is made of
  };
  Entry* entry_of(Kind kind);
  void drop(Entry& e);
  void refuse(Entry& e, std::string why);
  std::vector<Tensor> run_plan(Entry& e, const std::vector<Tensor>& given);
  Values trace(Entry& e, const std::vector<Tensor>& given, const std::vector<nn::Named>& trained, const Eager& eager);
  Values prove(Entry& e, const std::vector<Tensor>& given, const std::vector<nn::Named>& trained, const Eager& eager);

  nn::Module& model_;
  const char* called_;
  const StepPlan::Keep keep_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<const Tensor*> places_;  ///< of the model's parameters and buffers
  std::vector<std::string> why_;       ///< some steps ran op by op, each reason once
  std::vector<PlanNews> news_;
  int64_t steps_ = 0;       ///< that were given to run()
  int64_t forgotten_ = 0;   ///< of them from plans of forms that are no longer kept
  bool after_ops_ = false;  ///< the step before ran op by op beside its plan, and its memory is still there
};

}  // namespace tenon
