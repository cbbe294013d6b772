#pragma once
#include "core/tensor.h"

namespace tenon {

struct Pool2dOptions {
  Dims kernel{2, 2}, stride{2, 2}, padding{0, 0},
      dilation{1, 1};  ///< padding is at most half the kernel and never wins
};
/// The largest value of each window: x [n, c, h, w] -> [n, c, oh, ow] in channels-last order, sizes as in conv2d
/// (rounded down). Of equal values the first wins; NaN wins over all. f32 or f64.
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options = {});

}  // namespace tenon
