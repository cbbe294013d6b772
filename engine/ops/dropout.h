#pragma once
#include "core/tensor.h"
#include "engine/ops/draws.h"

namespace tenon {

/// Each element is 0 with probability p, else divided by 1 - p. p in [0, 1].
Tensor dropout(const Tensor& x, double p, const Draws& draws);

}  // namespace tenon
