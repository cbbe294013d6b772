#pragma once
#include <vector>

#include "engine/graph/step_plan.h"

namespace tenon {

// Note [A plan as one graph]
// A GPU is given a kernel faster than it takes to call one: of small models a step is mostly calls. Where the device
// can record what it is given (a CUDA graph), the kernels of a plan are recorded once and done as one from then on.
// Their addresses are fixed with that: the batch is copied to where the graph reads it, and the plan's arena, what
// kernels work in and the results stay taken as long as the graph. The numbers a step draws come from a key that is a
// tensor, and what changes otherwise (a learning rate) is not in the plan. The kernels are the plan's, so the bits are.
// A gradient that somebody still holds when the next step comes would be overwritten: the graph is then recorded anew,
// and gives copies from then on.

/// A plan whose kernels were recorded. The plan outlives it.
class PlanReplay {
 public:
  /// Whether the device records.
  static bool possible(Device device);
  /// Records; nothing is computed. The plan has run on such a `given` before, so that its kernels are loaded. Throws
  /// Error where something in it cannot be recorded, or no memory is left for it.
  PlanReplay(StepPlan& plan, const std::vector<Tensor>& given);
  ~PlanReplay();
  PlanReplay(const PlanReplay&) = delete;

  /// As StepPlan::run().
  std::vector<Tensor> run(const std::vector<Tensor>& given);

 private:
  void record();
  void drop();

  StepPlan& plan_;
  std::vector<Tensor> given_;  ///< where the graph reads it; undefined: it does not
  StepPlan::Memory memory_;
  void* graph_ = nullptr;
  bool copies_ = false;  ///< of all results, not of the first two alone, are given
};

}  // namespace tenon
