#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tracing/record/step_record.h"

namespace tenon::tracing {

/// How far one op's output differs between two records of one step.
struct OpDifference {
  std::string op, module, phase;
  uint32_t a = 0, b = 0;           ///< sequence numbers in the two records
  int64_t total = 0, differs = 0;  ///< elements, and those that differ in a bit (of two types: in value)
  double largest = 0;              ///< of |a - b|; infinite where one of the two alone is not finite
  Dims index;                      ///< of that element
  double value_a = 0, value_b = 0;
  double relative = 0;  ///< norm(a - b) / norm(a), over what is finite in both; 0 where both are 0
  /// Of a node of an exported model: the same where all before it was computed elsewhere, too; below 0: not known.
  double carried = -1;
  std::string why = {};  ///< there are no two values to compare, and that is a difference

  /// `tolerance` is of `relative`; 0: any bit. What is not finite in one of the two alone is beyond it.
  bool beyond(double tolerance) const;
};

/// What differs between two tensors of one size, written into the figures of `d`.
void compare_values(const Tensor& a, const Tensor& b, OpDifference& d);

/// Two records of one step, op by op.
struct StepDifference {
  std::vector<OpDifference> ops;   ///< of ops that are in both with the same size of output, in the order of A
  int64_t only_a = 0, only_b = 0;  ///< ops without a partner
  int64_t unknown = 0;             ///< pairs whose values were not kept
  int64_t first = -1;              ///< index into ops: the first that is beyond the tolerance; -1: none
  bool equal() const;              ///< nothing differs, and nothing is without a partner
};

/// Ops are partners where module, phase and name are the same, in the order in which they come; casts between types are
/// passed over. `tolerance`: see OpDifference::beyond().
StepDifference compare_steps(const StepRecord& a, const StepRecord& b, double tolerance);

}  // namespace tenon::tracing
