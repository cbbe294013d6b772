#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/nn/module.h"
#include "engine/op/op.h"
#include "engine/train/tensor_edit.h"

namespace tenon {

/// Makes the edits of one step while it lives (Note [Edits]). Whoever observed the ops of the thread before sees them
/// all the same, with the values that they then have.
class StepEdits : public OpObserver {
 public:
  /// `tensors`: what weight() and grad() may name; `state`: what the optimizer remembers. Makes those that come before
  /// the first op. Both lists outlive it.
  StepEdits(std::vector<TensorEdit> edits, const std::vector<nn::Named>& tensors, const std::vector<nn::Named>& state);

  /// Gradients are complete, and nothing is updated yet. Throws Error for an op of forward or backward that was not
  /// there.
  void on_backward();
  /// Throws Error for an op that the step does not have.
  void on_end() const;

  void before(const Call& call) override;
  void after(const Call& call, int64_t start_ns, int64_t end_ns) override;
  void backward_node(const Node& node) override;

 private:
  void apply(size_t at, const Tensor& to, const std::string& what);
  Tensor named(const TensorEdit& edit) const;

  std::vector<TensorEdit> edits_;
  std::vector<bool> made_;
  const std::vector<nn::Named>& tensors_;
  const std::vector<nn::Named>& state_;
  std::vector<uint32_t> open_;  ///< ops that have begun: one may dispatch others
  OpObserver* outer_;
  ObserveScope scope_;
};

}  // namespace tenon
