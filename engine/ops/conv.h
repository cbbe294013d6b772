#pragma once
#include "core/tensor.h"

namespace tenon {

struct Conv2dOptions {
  Dims stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
};
/// Cross-correlation: x [n, ic, h, w], weight [oc, ic / groups, kh, kw], bias [oc] or undefined -> [n, oc, oh, ow] in
/// channels-last order, oh = (h + 2 padding - dilation (kh - 1) - 1) / stride + 1. All of one floating type. An input
/// that is not channels-last is copied into that order.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});
/// Its gradient with respect to x as a function of its own: x [n, oc, oh, ow], weight [oc, ic / groups, kh, kw] -> [n,
/// ic, h, w] with the given height and width, which the options must lead to oh and ow.
Tensor conv2d_transposed(const Tensor& x, const Tensor& weight, int64_t height, int64_t width,
                         const Conv2dOptions& options = {});

}  // namespace tenon
