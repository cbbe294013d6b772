#pragma once
#include <vector>

#include "core/tensor.h"

namespace tenon {

enum class PadMode : uint8_t { constant, reflect, replicate, circular };
/// "constant" ("zeros"), "reflect", "replicate" or "circular"; throws Error for another.
PadMode pad_mode(const std::string& name);
/// Adds elements at the ends of the last axes: amounts = {before, after} of the last axis, then of the one before it,
/// ... (PyTorch's order). Negative amounts take elements away (constant alone). Reflection leaves out the border and
/// needs amounts below the axis' size, circular amounts up to it. All dtypes.
Tensor pad(const Tensor& x, const std::vector<int64_t>& amounts, PadMode mode = PadMode::constant, double value = 0);

}  // namespace tenon
