#pragma once
#include "core/tensor.h"

namespace tenon::formats {

/// NumPy's matmul: vectors on either side, batch axes broadcast, integers too.
Tensor numpy_matmul(const Tensor& a, const Tensor& b);

}  // namespace tenon::formats
