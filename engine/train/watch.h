#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "engine/train/moments.h"
#include "engine/train/watch_hit.h"

// Note [Watches]
// A watch is a condition over what a step computes ("max_abs(grad(layer3*)) > 1e3"), and what is done where it begins
// to hold. It is no callback. A callback may change what a run comes to; it acts within the step and has its state in
// every checkpoint. A watch only looks: it is an observer of the session, attached by whoever trains or replays, so
// that a run with armed watches has the bits, checkpoints and digests of one without. It keeps no state either: what it
// remembers (the last values of a metric, whether it held when it was checked before) is read from what the run has
// recorded. So one that is resumed goes on as if it had never stopped, and any condition can be put to a run that was
// trained without it. A condition over several tensors holds where it holds for one of them. What is no number
// satisfies none; nonfinite(...) counts those.
namespace tenon {

class Recipe;
struct Evaluation;
struct StepResult;

/// What a number is taken of.
/// `memory`: of the process, see kMemoryGrowth. `output`: of an op of a recorded step, see parse_op_condition(); no
/// watch has it.
enum class WatchSubject { metric, weight, gradient, update, activation, memory, output };
/// How many bytes a step the memory of the run has grown by, over its last two epochs, where that goes on: see
/// memory_growth.h. A run looks at it by itself.
inline constexpr const char* kMemoryGrowth = "memory_growth";

/// A number that a tensor comes to, registered in the file that defines it.
struct WatchMeasureDef {
  std::string name;  ///< "max_abs"
  std::string help;  ///< "largest magnitude"
  double (*of)(const Moments& values);
  bool by_weights = false;  ///< divided by the same number of the parameter's weights: of updates alone
};
bool register_watch_measure(WatchMeasureDef def, Place place = Place::current());
/// Sorted by name.
const Registry<WatchMeasureDef>& watch_measures();

/// A subject as it is written, with what it is.
struct WatchSubjectText {
  const char *name, *help;
  WatchSubject subject;
};
/// grad, weight, update, activation.
const std::vector<WatchSubjectText>& watch_subjects();

/// "pause"
const char* watch_action_name(WatchAction a);
/// "is marked, and the run pauses"
const char* watch_action_help(WatchAction a);

/// One watch, read.
struct Watch {
  enum class Relation { above, at_least, below, at_most, outside, inside };

  std::string condition;  ///< as it was typed, without what is done; by it the watch is known in a run
  const WatchMeasureDef* measure = nullptr;  ///< null: the metric itself
  WatchSubject subject = WatchSubject::metric;
  std::string of;  ///< pattern of names, the metric, or kMemoryGrowth
  Relation relation = Relation::above;
  double low = 0, high = 0;    ///< the bounds; of one bound `low`, which multiplies the median where there is one
  std::string median_of = {};  ///< a metric; empty: the bound is a constant
  int64_t median_over = 0;     ///< that many values before this one
  int64_t every = 1;           ///< steps between two looks
  WatchAction action = WatchAction::mark;

  /// Whether it can be told from what a run records, without its tensors.
  bool only_metrics() const { return subject == WatchSubject::metric; }
  /// Whether it is checked when an evaluation was recorded, not with every step.
  bool of_evaluations() const;
  /// The number it takes of the value of its metric.
  double of_metric(double value) const;
  /// Whether a value fulfils it; `median` is that of the metric it names. False where one of them is NaN.
  bool holds(double value, double median) const;
  /// The bound that a value is compared with; of two the nearer one.
  double bound(double value, double median) const;
};

/// "max_abs(grad(layer3*)) > 1e3 every 10: pause". Throws Error (usage) that says at which character what was expected,
/// and lists near names.
Watch parse_watch(const std::string& text);
/// A condition alone. Throws as parse_watch(), also for "every" and for what is to be done.
Watch parse_condition(const std::string& text);
/// A condition over what an op of a step gives, for the names of ops or modules that fit: "max_abs(output(conv2d)) >
/// 1e3", "nonfinite(output(features.*)) > 0". Throws as parse_condition(), and for a median, which a step has not.
Watch parse_op_condition(const std::string& text);
/// The recipe's key: watches separated by ';'. Throws as parse_watch(), and for a condition that is there twice.
std::vector<Watch> parse_watches(const std::string& text);

/// What a step records, by name: "loss", "lr", "grad_norm", "train_accuracy", "loss_scale", of a
/// student "teacher_loss" and "feature_loss". Those that have no value
/// there are left out. `scaled`: under amp = "fp16".
std::vector<std::pair<std::string, double>> step_metrics(const StepResult& r, bool scaled);
/// "test_loss" and "test_" with the name of each metric.
std::vector<std::pair<std::string, double>> evaluation_metrics(const Evaluation& e);
/// Every name that one of them may have.
std::vector<std::string> watched_metrics();
/// What a condition may begin with beside measures: the metrics, and kMemoryGrowth.
std::vector<std::string> watched_numbers();

/// A watch of a recipe, as text.
struct WatchRow {
  std::string text;       ///< as it stands in the key
  std::string condition;  ///< Watch::condition; empty where it cannot be read
  std::string says;       ///< "where the largest magnitude of the gradient of layer3* is above 1000"
  std::string fault;      ///< why it is none; empty: it can be read
  WatchAction action = WatchAction::mark;
};
/// In the order of the key. Never throws.
std::vector<WatchRow> watch_rows(const Recipe& recipe);
/// The recipe with one more. Throws Error (usage) for a text that is none.
Recipe with_watch(const Recipe& recipe, const std::string& text);
/// With another text in the place of one; an empty text takes it away. Throws Error (usage) for a text that is none.
Recipe with_watch_at(const Recipe& recipe, size_t place, const std::string& text);
/// "max_abs(grad(fc1)) > 1e3" and more: one of each kind, to begin with.
std::vector<std::pair<std::string, std::string>> watch_examples();

}  // namespace tenon
