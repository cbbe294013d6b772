#pragma once
#include <memory>
#include <optional>
#include <string>

#include "core/tensor.h"
#include "engine/nn/loss.h"
#include "engine/train/metric.h"

namespace tenon {

class Readings;
class Recipe;
namespace data {
class Dataset;
}

/// How a model's output meets a data set's target: which sizes belong together, what is minimised, and what judges it.
class Task {
 public:
  /// `input` and `output` are of one sample. Throws Error for ends that do not fit each other, or not the loss.
  Task(const Recipe& recipe, const data::Dataset& set, const Meta& input, const Meta& output);

  const TaskView& view() const { return view_; }
  /// Targets a sample has: tokens of a text, pixels of a mask; 1 for most.
  int64_t targets_per_sample() const { return targets_; }
  /// Whether the loss of a batch is the sum over its targets instead of the mean.
  bool sums() const { return sums_; }
  /// Of an output batch and its targets: a tensor without axes.
  Tensor loss(const Tensor& output, const Tensor& target) const;
  /// T^2 KL(softmax(teacher / T), softmax(output / T)), mean over the targets, or their sum where the loss is one: what
  /// a student loses to its teacher (Note [A teacher]). Of a task with classes alone.
  Tensor distance(const Tensor& output, const Tensor& teacher, double temperature) const;
  /// Whether the output is a score for each class.
  bool picks_classes() const;
  /// How many of a batch's targets the output gets right, as a number of `readings`; none where they are no classes, or
  /// shares of several. It reads the values as they lie and dispatches no op: what watches a step sees nothing of it.
  std::optional<size_t> right(const Tensor& output, const Tensor& target, Readings& readings) const;
  /// The form that meters take; of a binary task logits.
  Tensor scores(const Tensor& output) const;
  Tensor answers(const Tensor& target) const;

 private:
  void check_classes(const std::string& name, const Shape& out, const Shape& target);
  Tensor rows(const Tensor& output) const;

  TaskView view_;
  nn::Loss loss_;
  bool probabilities_ = false;  ///< the output of a binary task is one already, no logit
  bool class_loss_ = true, takes_shares_ = false, sums_ = false;
  int class_axis_ = 1;  ///< of the batch
  int64_t targets_ = 1;
};

}  // namespace tenon
