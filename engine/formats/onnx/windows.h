#pragma once
#include <vector>

#include "engine/formats/onnx/run.h"
#include "engine/kernels/dnnl.h"

namespace tenon::formats {

/// How a window moves over the spatial axes of [n, c, d1, ..]: what Conv, the pools and their relatives say in the same
/// words.
struct Windows {
  std::vector<int64_t> kernel, stride, dilation, before, after;  ///< one an axis; paddings may be negative
  std::vector<int64_t> extra;                                    ///< behind the padding, where ceil_mode rounds up

  /// Reads kernel_shape (or takes `kernel`), strides, dilations, pads, auto_pad and ceil_mode of a node for an input of
  /// `size`.
  Windows(const OnnxCall& c, const Shape& size, std::vector<int64_t> kernel = {});
  int axes() const { return static_cast<int>(kernel.size()); }
  /// [n, c, d..] with the padding filled with `value`.
  Tensor padded(const Tensor& x, double value, bool with_extra = true) const;
  /// [n, c, o.., k..]: a view of all windows of padded(x).
  Tensor of(const Tensor& padded) const;
};

/// x [n, c, d..] cut (negative) or padded with value.
Tensor pad_spatial(const Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
                   double value);
/// Cross-correlation of padded x [n, ic, d..] with w [oc, ic / groups, k..], f32 or f64: [n, oc, o..].
Tensor correlate(const Tensor& x, const Windows& at, const Tensor& w, int64_t groups);

/// Windows of a picture's two axes; of a line's one, which is a picture of one row. Throws Error where one does not
/// fit.
kernels::ConvSizes conv_sizes(const Windows& at, const Shape& x);

}  // namespace tenon::formats
