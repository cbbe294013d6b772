#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "engine/spec/attr.h"

// Note [Callbacks]
// A callback accompanies the steps of a run: it changes gradients, averages weights, keeps checkpoints, ends the run.
// What a run has of them its recipe says, and nothing else does: the list of callbacks is a picture of the recipe.
// There are two kinds. A switch is what keys of the recipe say (stop.metric, average.type, ...). A listed one stands,
// with settings of its own, in the key "callbacks" as "gradient_noise std=0.1; centralize"; whoever registers one needs
// nothing else to have it trained, shown, edited and kept. They act in the order of their moments, listed ones of the
// same moment in the order of the key.
// Bits stay a function of the recipe: a callback draws random numbers from the run's seed and the step alone, and what
// later steps depend on is its state(), which every checkpoint has. So whoever resumes or replays finds it.
namespace tenon {

class Recipe;
struct Evaluation;
struct ModelSpec;
struct TaskView;
namespace nn {
struct Named;
class Module;
}  // namespace nn
namespace formats {
struct TrainedGrids;
}

/// When a callback acts, in the order of a step.
enum class Moment {
  rate,        ///< the learning rate of the step is decided
  samples,     ///< the batch is drawn
  loss,        ///< the loss is computed
  check,       ///< gradients are there; whether they are written is decided
  gradients,   ///< before they are clipped
  clipping,    ///< before the update
  update,      ///< the weights are written
  evaluation,  ///< the test split was evaluated
  verdict,     ///< what the evaluation means for the run
  checkpoint   ///< the state is kept
};
/// "before the update": what a person reads.
const char* moment_text(Moment m);

/// A listed callback at work. Called on the thread that steps, without history of autograd.
class Callback {
 public:
  virtual ~Callback() = default;
  /// The model that is trained, once, before the first step: one that changes what layers compute hooks into them, and
  /// leaves them as they were when it goes. True: it did, which several processes cannot share.
  virtual bool attach(const std::shared_ptr<nn::Module>& /*model*/) { return false; }
  /// Leaves the layers as they were.
  virtual void detach() {}
  /// Gradients of the whole batch are in the parameters that are trained; steps count from 1. Only for a step that will
  /// be written. One whose moment is `gradients` may change them. Some parameters may have no gradient.
  virtual void on_gradients(const std::vector<nn::Named>& /*trained*/, int64_t /*step*/) {}
  /// The weights are written, and may be changed.
  virtual void on_update(const std::vector<nn::Named>& /*trained*/, int64_t /*step*/) {}
  /// After an evaluation that was due; of those whose moment is `evaluation` or `verdict`, for whose sake replays
  /// evaluate too. Not empty: why the run ends here.
  virtual std::string on_evaluation(const Evaluation&, int64_t /*step*/) { return {}; }
  /// Numbers that a run records behind every step, by the name of the metric.
  virtual std::vector<std::pair<std::string, double>> figures() const { return {}; }
  /// The grids that a quantized model takes from it; null: it has none (yet).
  virtual const formats::TrainedGrids* trained_grids() const { return nullptr; }
  /// What later steps depend on; null for one that keeps nothing.
  virtual nlohmann::json state() const;
  /// Throws Error for a state that is not its own.
  virtual void load(const nlohmann::json& state);
  /// After load(), of a session of another model: drops what it keeps of tensors that are none of these, or of their
  /// size no more.
  virtual void forget_others(const std::vector<nn::Named>& /*trained*/) {}
};

/// The run that a callback is made for.
struct CallbackRun {
  uint64_t seed = 0;
  int64_t steps_per_epoch = 1, eval_every = 1;
  const TaskView* task = nullptr;
  const ModelSpec* model = nullptr;
};

/// One callback, registered in the file that defines it.
struct CallbackDef {
  std::string name;   ///< "gradient_noise"
  std::string title;  ///< "Gradient noise"
  std::string help;   ///< what it does, in a sentence without its end
  Moment moment = Moment::update;

  // Of a listed one.
  std::vector<AttrDef> attrs = {};
  std::unique_ptr<Callback> (*make)(const AttrValues& values, const CallbackRun& run) = nullptr;

  // Of a switch.
  std::vector<std::string> keys = {};            ///< the first one switches it, the others are its settings
  AttrValue on = {}, off = {};                   ///< what the first one is set to
  bool any = false;                              ///< on with every value but `off`; otherwise with `on` alone
  std::string (*says)(const Recipe&) = nullptr;  ///< what it does where it is on, with its values

  bool listed() const { return make != nullptr; }
};
bool register_callback(CallbackDef def, Place place = Place::current());
/// Sorted by name.
const Registry<CallbackDef>& callbacks();

/// A callback beside a recipe.
struct CallbackRow {
  std::string name, title;
  std::string says;               ///< what it does here; where it is off, what it would do
  std::string fault;              ///< why it cannot work, or cannot be added, with this recipe; empty: it can
  std::vector<std::string> keys;  ///< of the recipe, that say so
  Moment moment = Moment::update;
  bool on = false;
  int64_t place = -1;                ///< among those that the key "callbacks" lists; -1: none of them
  const CallbackDef* def = nullptr;  ///< null: no definition has this name, a plug-in is missing
  AttrValues values;                 ///< of a listed one that is on
};
/// Those that are on, in the order in which they act; then all that may be added, by their titles. Never throws: a
/// "callbacks" that cannot be read is one row with its fault.
std::vector<CallbackRow> callback_rows(const Recipe& recipe);
/// The recipe with it; a listed one is added at the end. Throws Error (usage) for a name that is none, and for one that
/// this recipe cannot have.
Recipe with_callback(const Recipe& recipe, const std::string& name);
/// Without the one of a row of callback_rows() that is on.
Recipe without_callback(const Recipe& recipe, const CallbackRow& row);
/// With a listed one `by` places earlier or later; as it is where there is no such place.
Recipe with_callback_moved(const Recipe& recipe, int64_t place, int64_t by);
/// With a setting of a listed one. Throws Error (usage) for a value that does not fit.
Recipe with_callback_setting(const Recipe& recipe, int64_t place, const std::string& attr, const AttrValue& value);
/// Whether with_callback_moved() changes anything that a run would notice: neighbours of one moment change places.
bool callback_moves(const std::vector<CallbackRow>& rows, const CallbackRow& row, int64_t by);

/// The listed callbacks of a recipe, made, in the order in which they act.
class CallbackList {
 public:
  CallbackList() = default;
  /// Throws Error (usage) for a name or a setting that is none, and for what does not fit the run.
  CallbackList(const Recipe& recipe, const CallbackRun& run);
  bool empty() const { return all_.empty(); }
  /// Callback::attach() and detach() of all.
  bool attach(const std::shared_ptr<nn::Module>& model);
  void detach();
  std::vector<const Callback*> members() const;
  /// Whether one of them may change gradients.
  bool changes_gradients() const;
  /// Whether one of them is told of evaluations.
  bool watches_evaluations() const;
  void on_gradients(const std::vector<nn::Named>& trained, int64_t step);
  void on_update(const std::vector<nn::Named>& trained, int64_t step);
  void on_evaluation(const Evaluation& evaluation, int64_t step);
  /// Callback::figures() of all; of those of one name the first.
  std::vector<std::pair<std::string, double>> figures() const;
  /// Why the run ends, since the last evaluation; empty: it goes on.
  const std::string& ending() const { return ending_; }
  /// Null where nothing is kept.
  nlohmann::json state() const;
  /// Throws Error where the state is of other callbacks.
  void load(const nlohmann::json& state);
  /// Takes over what callbacks of the same names and places keep in `old`.
  void take_over(const CallbackList& old);
  void forget_others(const std::vector<nn::Named>& trained);

 private:
  struct Item {
    const CallbackDef* def;
    std::unique_ptr<Callback> it;
  };
  std::vector<Item> all_;
  std::string ending_;
};

}  // namespace tenon
