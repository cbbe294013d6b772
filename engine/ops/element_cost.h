#pragma once
#include "engine/op/op.h"

namespace tenon::ops {

/// Of a kernel that does as many operations for every element of `counted`: additions, products, comparisons and
/// functions such as exp are one each.
inline Cost element_cost(const Tensor& counted, double operations) {
  return {operations * static_cast<double>(counted.numel())};
}

}  // namespace tenon::ops
