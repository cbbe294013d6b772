#pragma once
#include "core/tensor.h"
#include "engine/ops/pad.h"

namespace tenon {

/// Of a convolution over 1 to 3 axes; every list has one number an axis, or one for all.
struct ConvOptions {
  Dims stride{1}, padding{0}, dilation{1};
  int64_t groups = 1;
  Dims output_padding{0};  ///< of a transposed convolution: added to one end of the result
};
/// Cross-correlation over the axes behind the channels: x [n, ic, (d, (h,)) w], weight [oc, ic / groups, ...], bias
/// [oc] or undefined. One axis runs as an image of height 1, three as sums over the depth of the window of convolutions
/// of images.
Tensor conv_nd(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const ConvOptions& options = {});
/// The gradient of a convolution with respect to its input, as an op: weight [ic, oc / groups, ...].
/// Size: (in - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1.
Tensor conv_transpose_nd(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                         const ConvOptions& options = {});

}  // namespace tenon
