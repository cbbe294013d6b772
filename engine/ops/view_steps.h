#pragma once
#include <vector>

#include "core/tensor.h"
#include "engine/spec/view_chain.h"

namespace tenon {

/// A tensor read by the steps of a chain that was made of its layout (view_chain()): the same memory, or a copy where a
/// step takes one. Nothing is recorded.
Tensor viewed(const Tensor& x, const std::vector<ViewStep>& steps);

}  // namespace tenon
