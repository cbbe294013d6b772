#pragma once
#include <cstdint>

#include "core/tensor.h"

namespace tenon {

/// Each element is 0 with probability p, else divided by 1 - p. Which ones is a pure function of (seed, stream, offset)
/// and the element's place, so nothing is kept for the backward pass. p in [0, 1].
Tensor dropout(const Tensor& x, double p, uint64_t seed, uint64_t stream, uint64_t offset);

}  // namespace tenon
