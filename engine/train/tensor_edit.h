#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"

// Note [Edits]
// An edit changes values of one tensor within one step: of what an op has just given, of weights, of a gradient, of
// what the optimizer remembers. Edits stand in the recipe (key "edits"), so whoever replays or resumes the run makes
// them at the same op of the same step, and bits stay a function of model, recipe, data and step. Values are written
// into the memory of the tensor: whatever shares it (a view, or what an op saved of it for backward) has them, too.
// Autograd is not told: backward goes on as though the op itself had given them. An edit is no op and takes no number,
// so one that writes what is there already leaves every bit of the run as it was.
namespace tenon {

/// One edit, read.
struct TensorEdit {
  enum class Target { output, weight, gradient, state };
  enum class How { set, add, scale, clamp };

  int64_t step = 0;  ///< steps count from 1
  uint32_t seq = 0;  ///< made when this op has run; 0: before the first, of a gradient when backward is done
  Target target = Target::output;
  int output = 0;    ///< of Target::output
  std::string name;  ///< of the others: a parameter or buffer, the parameter of a gradient, or "fc1.weight/momentum"
  std::optional<Dims> element = {};  ///< nothing: every one
  How how = How::set;
  double a = 0, b = 0;  ///< clamp: its bounds; else `a` alone

  double of(double value) const;
};

/// "120 #14: output[3, 4] = 0.5", "120: weight(fc1.weight) * 0.1", "120: grad(fc1.weight) clamp -1..1". Where no step
/// is said ("weight(fc1.weight) * 0.1") it is `step`; 0: one has to be. Throws Error (usage) that says at which
/// character what was expected.
TensorEdit parse_edit(const std::string& text, int64_t step = 0);
/// The recipe's key: edits separated by ';'.
std::vector<TensorEdit> parse_edits(const std::string& text);
/// As parse_edit() reads it, with the step; numbers are told exactly.
std::string edit_text(const TensorEdit& edit);

/// Changes the values of a tensor of any device, dtype and layout, without an op. Throws Error naming an element that
/// the tensor does not have. Its version counts the write.
void apply_edit(const TensorEdit& edit, const Tensor& to);

}  // namespace tenon
