#include "engine/ops/conv_nd.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "engine/ops/conv.h"
#include "engine/ops/join.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

Dims per_axis(const Dims& d, int axes, const char* what) {
  if (d.n == axes) return d;
  if (d.n == 1) return Dims::filled(axes, d[0]);
  throw Error(std::string("convolution: ") + what + " has " + std::to_string(d.n) + " numbers for " +
              std::to_string(axes) + " axes");
}
ConvOptions per_axis(const ConvOptions& o, int axes) {
  return {per_axis(o.stride, axes, "stride"), per_axis(o.padding, axes, "padding"),
          per_axis(o.dilation, axes, "dilation"), o.groups, per_axis(o.output_padding, axes, "output_padding")};
}
int conv_axes(const char* what, const Tensor& x, const Tensor& w) {
  int axes = w.ndim() - 2;
  if (axes < 1 || axes > 3 || x.ndim() != w.ndim())
    throw Error(std::string(what) + ": an input of size " + to_string(x.size()) + " does not fit a weight of size " +
                to_string(w.size()) + ": [batch, channels, 1 to 3 axes] both");
  return axes;
}
Dims last_two(const Dims& d) { return {d[d.n - 2], d[d.n - 1]}; }
Dims in_front(int64_t v, const Dims& d) { return {v, d[0]}; }
Conv2dOptions planes(const ConvOptions& o) {
  return {last_two(o.stride), last_two(o.padding), last_two(o.dilation), o.groups};
}
Conv2dOptions plane_options(const ConvOptions& o) {
  return {in_front(1, o.stride), in_front(0, o.padding), in_front(1, o.dilation), o.groups};
}

Tensor channel_bias(const Tensor& bias, int ndim) {
  Shape s = Dims::filled(ndim, 1);
  s[1] = bias.numel();
  return view(bias, s);
}

// Volumes are [n, d, c, h, w] here, so that slices of the depth are batches of images in channels-last order.
Tensor depth_first(const Tensor& x) { return permute(x, {0, 2, 1, 3, 4}); }
/// Slices start, start + step, ... of the depth, as one batch of images.
Tensor images(const Tensor& x, int64_t start, int64_t step, int64_t count) {
  Tensor s = slice(x, 1, start, start + (count - 1) * step + 1, step);
  return reshape(s, {s.size(0) * count, s.size(2), s.size(3), s.size(4)});
}
/// The batch as volumes again, [n, c, d, h, w].
Tensor volumes(const Tensor& y, int64_t n) {
  return permute(reshape(y, {n, y.size(0) / n, y.size(1), y.size(2), y.size(3)}), {0, 2, 1, 3, 4});
}

Tensor conv3d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& o) {
  int64_t depth = x.size(2), taps = w.size(2), reach = o.dilation[0] * (taps - 1) + 1;
  if (o.stride[0] < 1 || o.dilation[0] < 1 || o.padding[0] < 0)
    throw Error("conv3d: stride and dilation are at least 1, padding at least 0");
  if (depth + 2 * o.padding[0] < reach)
    throw Error("conv3d: a window of " + std::to_string(reach) + " does not fit depth " + std::to_string(depth) +
                    " with padding " + std::to_string(o.padding[0]),
                "use more padding or a smaller kernel");
  int64_t count = (depth + 2 * o.padding[0] - reach) / o.stride[0] + 1;
  Tensor v = depth_first(pad(x, {0, 0, 0, 0, o.padding[0], o.padding[0]})), y;
  for (int64_t k = 0; k < taps; ++k) {
    Tensor part =
        conv2d(images(v, k * o.dilation[0], o.stride[0], count), select(w, 2, k), k == 0 ? bias : Tensor(), planes(o));
    y = y ? add(y, part) : part;
  }
  return volumes(y, x.size(0));
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& w, const ConvOptions& o, const Dims& size) {
  int64_t n = x.size(0), depth = x.size(2), taps = w.size(2),
          full = (depth - 1) * o.stride[0] + o.dilation[0] * (taps - 1) + 1;
  Tensor v = depth_first(x), flat_x = reshape(v, {n * depth, v.size(2), v.size(3), v.size(4)}), y;
  for (int64_t k = 0; k < taps; ++k) {
    Tensor part = volumes(conv2d_transposed(flat_x, select(w, 2, k), size[1], size[2], planes(o)), n);
    if (o.stride[0] > 1) {  // zeros between the slices
      Tensor apart = unsqueeze(part, 3);
      apart = pad(apart, {0, 0, 0, 0, 0, o.stride[0] - 1});
      part = reshape(apart, {n, part.size(1), depth * o.stride[0], size[1], size[2]});
    }
    int64_t front = k * o.dilation[0];
    part = pad(part, {0, 0, 0, 0, front, full - front - part.size(2)});
    y = y ? add(y, part) : part;
  }
  int64_t after = size[0] - (full - o.padding[0]);
  return pad(y, {0, 0, 0, 0, -o.padding[0], after});
}

}  // namespace

Tensor conv_nd(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& given) {
  int axes = conv_axes("convolution", x, weight);
  ConvOptions o = per_axis(given, axes);
  if (axes == 2) return conv2d(x, weight, bias, planes(o));
  if (axes == 1) return squeeze(conv2d(unsqueeze(x, 2), unsqueeze(weight, 2), bias, plane_options(o)), 2);
  return conv3d(x, weight, bias, o);
}

Tensor conv_transpose_nd(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& given) {
  int axes = conv_axes("transposed convolution", x, weight);
  ConvOptions o = per_axis(given, axes);
  Dims size;
  for (int i = 0; i < axes; ++i) {
    if (o.output_padding[i] < 0 || o.output_padding[i] >= std::max(o.stride[i], o.dilation[i]))
      throw Error("transposed convolution: output_padding " + std::to_string(o.output_padding[i]) +
                  " must be below stride " + std::to_string(o.stride[i]) + " or dilation " +
                  std::to_string(o.dilation[i]));
    size.push_back((x.size(i + 2) - 1) * o.stride[i] - 2 * o.padding[i] + o.dilation[i] * (weight.size(i + 2) - 1) +
                   o.output_padding[i] + 1);
  }
  Tensor y;
  if (axes == 2)
    y = conv2d_transposed(x, weight, size[0], size[1], planes(o));
  else if (axes == 1)
    y = squeeze(conv2d_transposed(unsqueeze(x, 2), unsqueeze(weight, 2), 1, size[0], plane_options(o)), 2);
  else
    y = conv_transpose3d(x, weight, o, size);
  return bias ? add(y, channel_bias(bias, y.ndim())) : y;
}

}  // namespace tenon
