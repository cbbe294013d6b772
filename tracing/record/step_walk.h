#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "engine/train/watch.h"
#include "tracing/record/step_record.h"

// A recorded step, op by op: where one goes from an op, where one stops, and what there is at an op. An op is said by
// its sequence number; 0 is the moment before the first.
namespace tenon::tracing {

/// What one goes to from an op.
enum class WalkMove {
  op,      ///< the next op
  module,  ///< the next of the same module
  into,    ///< the next of a module within that of the op
  out,     ///< the next outside the module of the op
};
/// The op, or the one before where `back`; 0: there is none.
uint32_t walk_to(const StepRecord& r, uint32_t from, WalkMove move, bool back);

/// Where one stops.
struct WalkBreak {
  std::string text;  ///< as it was typed
  /// A pattern of module paths, a pattern of op names, or a condition over what an op gives.
  std::string module = {}, op = {};
  std::optional<Watch> condition = {};
};
/// Breaks separated by ';': "module features.*", "op conv2d", or as parse_op_condition() reads it. A pattern of modules
/// holds for what lies below, too. Throws Error (usage).
std::vector<WalkBreak> parse_breaks(const std::string& text);

/// An op at which one stops.
struct WalkStop {
  uint32_t seq = 0;
  size_t which = 0;  ///< of the breaks
  int output = -1;   ///< of a condition: the output that fulfils it
  double value = 0;  ///< and what its measure came to
};
struct WalkRun {
  std::optional<WalkStop> stop;
  int64_t unknown = 0;  ///< outputs of ops on the way that a condition is about and whose values were not kept
};
/// The next op behind `from` (before it, where `back`) at which one of the breaks holds.
WalkRun run_to_break(const StepRecord& r, uint32_t from, const std::vector<WalkBreak>& breaks, bool back);

/// A tensor as an op finds and leaves it.
struct WalkTensor {
  enum class Role { input, output, changed };
  Role role = Role::input;  ///< changed: an input that the op writes over, or its output in the memory of an input
  int tensor = 0;           ///< index into StepRecord::tensors
  Tensor before, after;     ///< undefined: it is not there then, or was not kept
};
/// Inputs, then outputs; a tensor that is both is there once, as changed.
std::vector<WalkTensor> tensors_at(const StepRecord& r, uint32_t seq);

/// From which op to which a tensor's memory is there; both included.
struct TensorLife {
  uint32_t from = 0;  ///< 0: before the first op
  uint32_t to = UINT32_MAX;
  bool at(uint32_t seq) const { return from <= seq && seq <= to; }
};
/// Of every tensor, by what the memory pool was asked for and given back in the step: who gets memory first at an op is
/// its first output.
std::vector<TensorLife> tensor_lives(const StepRecord& r);

}  // namespace tenon::tracing
