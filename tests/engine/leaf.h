#pragma once
#include "engine/autograd/autograd.h"
#include "engine/ops/create.h"

namespace tenon {

/// A tensor of one value, in double precision, that requires a gradient.
inline Tensor leaf(double value, const Shape& size = {}) {
  Tensor t = full(size, value, DType::f64);
  return set_requires_grad(t);
}

}  // namespace tenon
