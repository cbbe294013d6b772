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
// A gradient that somebody still holds when the next step comes would be overwritten: such a graph is recorded anew, as
// one that gives copies. Memory that stays taken is what other work lacks, so a session has one graph at a time and
// lets go of it before it does anything else.

/// A plan whose kernels were recorded. The plan outlives it.
class PlanReplay {
 public:
  /// Whether the device records.
  static bool possible(Device device);
  /// Records; nothing is computed. The plan has run on such a `given` before, so that its kernels are loaded.
  /// `copies`: of all results, not of the first two alone, are given. Throws Error where something in it cannot be
  /// recorded, or no memory is left for it.
  PlanReplay(StepPlan& plan, const std::vector<Tensor>& given, bool copies);
  ~PlanReplay();
  PlanReplay(const PlanReplay&) = delete;

  /// Whether nobody holds what the next run() would overwrite.
  bool free() const;
  /// As StepPlan::run(). It is free().
  std::vector<Tensor> run(const std::vector<Tensor>& given);

 private:
  StepPlan& plan_;
  const bool copies_;
  std::vector<Tensor> given_;  ///< where the graph reads it; undefined: it does not
  StepPlan::Memory memory_;
  void* graph_ = nullptr;
};

}  // namespace tenon
