#pragma once
#include <cstring>

#include "core/tensor.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/view.h"

namespace tenon {

/// Equal in size, dtype and every bit of every element, wherever in memory those lie.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = contiguous(detach(a)), y = contiguous(detach(b));
  return x.size() == y.size() && x.dtype() == y.dtype() && std::memcmp(x.raw(), y.raw(), x.nbytes()) == 0;
}

}  // namespace tenon
