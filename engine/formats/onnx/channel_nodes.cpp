// Nodes of images whose channels lie innermost, and norms of rows: fused_nodes.h.
#include <algorithm>
#include <optional>

#include "engine/formats/onnx/fused_nodes.h"
#include "engine/formats/onnx/operator.h"
#include "engine/formats/onnx/windows.h"
#include "engine/kernels/channel_pool.h"
#include "engine/kernels/layer_norm.h"
#include "engine/kernels/scratch.h"
#include "engine/ops/dense.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

Items as_it_was(const OnnxNode& n, const OnnxCall& c) {
  Items out;
  for (Tensor& t : run_onnx_node(n, c.in, c.opset)) out.emplace_back(std::move(t));
  return out;
}
bool is_images(const Tensor& t) { return t && !t.is_meta() && t.dtype() == DType::f32 && t.ndim() == 4; }
/// Small images, as [n, c, 1, 1], lie one way and the other: only what has pixels says how a model's images lie.
bool has_channels_innermost(const Tensor& t) { return is_images(t) && t.layout().is_channels_last(); }

std::optional<kernels::ChannelPool> channel_pool(const OnnxCall& c, const OnnxNode& n) {
  if (c.in.size() != 1 || !is_images(c.in[0])) return {};
  const OnnxCall as_node{n, {}, c.opset, {}};
  const Shape& size = c.in[0].size();
  const Windows at(as_node, size);
  if (at.axes() != 2 || std::min({at.before[0], at.before[1], at.after[0], at.after[1]}) < 0) return {};
  Shape reached = size;
  for (size_t i = 0; i < 2; ++i) reached[static_cast<int>(i) + 2] += at.extra[i];
  kernels::ConvSizes s = conv_sizes(at, reached);
  s.ih = size[2], s.iw = size[3];
  return kernels::ChannelPool{
      s, size[1], at.kernel[0], at.kernel[1], at.stride[0], at.stride[1], at.dilation[0], at.dilation[1]};
}

/// Whether pixels lie one after the other, each with its channels side by side; what lies between is skipped.
bool has_pixels(const Tensor& t) {
  const Dims& s = t.stride();
  const int64_t pixel = s[3];
  return (t.size(1) == 1 || s[1] == 1) && (t.size(2) == 1 || s[2] == pixel * t.size(3)) &&
         (t.size(0) == 1 || s[0] == pixel * t.size(3) * t.size(2)) && t.size(3) > 1;
}

}  // namespace

OnnxOperator max_pool_of_channels(const OnnxNode& node) {
  return [node](const OnnxCall& c) -> Items {
    const auto p = channel_pool(c, node);
    if (!p || p->size.oh < 1 || p->size.ow < 1) return as_it_was(node, c);
    const Tensor x = with_channels_innermost(c.in[0]);
    Tensor y = empty_strided(Layout::channels_last({p->size.n, p->channels, p->size.oh, p->size.ow}), DType::f32);
    if (x.numel() && y.numel()) kernels::max_of_channels(*p, x.data<float>(), y.data<float>());
    return {y};
  };
}

OnnxOperator average_pool_of_channels(const OnnxNode& node) {
  return [node](const OnnxCall& c) -> Items {
    const auto p = channel_pool(c, node);
    if (!p || p->size.oh < 1 || p->size.ow < 1) return as_it_was(node, c);
    const Tensor x = with_channels_innermost(c.in[0]);
    Tensor y = empty_strided(Layout::channels_last({p->size.n, p->channels, p->size.oh, p->size.ow}), DType::f32);
    if (x.numel() && y.numel())
      kernels::mean_of_channels(*p, node.integer("count_include_pad", 0) != 0, x.data<float>(), y.data<float>());
    return {y};
  };
}

OnnxOperator image_means(const OnnxNode& node, bool keep) {
  return [node, keep](const OnnxCall& c) -> Items {
    if (!has_channels_innermost(c.in[0]) || c.in[0].numel() == 0) return as_it_was(node, c);
    const Tensor& x = c.in[0];
    Tensor y = empty(keep ? Shape{x.size(0), x.size(1), 1, 1} : Shape{x.size(0), x.size(1)});
    kernels::image_means(x.size(0), x.size(2) * x.size(3), x.size(1), x.data<float>(), y.data<float>());
    return {y};
  };
}

OnnxOperator join_of_channels(const OnnxNode& node) {
  return [node](const OnnxCall& c) -> Items {
    const bool images = std::all_of(c.in.begin(), c.in.end(), is_images);
    if (!images || std::none_of(c.in.begin(), c.in.end(), has_channels_innermost)) return as_it_was(node, c);
    Shape size = c.in[0].size();
    size[1] = 0;
    for (const Tensor& t : c.in) {
      for (int axis : {0, 2, 3})
        if (t.size(axis) != size[axis]) return as_it_was(node, c);
      size[1] += t.size(1);
    }
    Tensor y = empty_strided(Layout::channels_last(size), DType::f32);
    int64_t at = 0;
    for (const Tensor& t : c.in) {
      const int64_t each = t.size(1);
      if (t.numel() && has_pixels(t))
        kernels::copy_runs(size[0] * size[2] * size[3], each, t.data<float>(), t.stride()[3], y.data<float>() + at,
                           size[1]);
      else if (t.numel())
        copy_(narrow(y, 1, at, each), t);
      at += each;
    }
    return {y};
  };
}

OnnxOperator shuffle_of_channels(FusedNodes fused, int64_t groups) {
  return [f = std::move(fused), groups](const OnnxCall& c) -> Items {
    if (!has_channels_innermost(c.in[0]) || c.in[0].size(1) % groups) {
      Tensor t = c.in[0];
      for (const OnnxNode& n : f.nodes) {
        std::vector<Tensor> in{t};
        for (size_t i = 1; i < n.inputs.size(); ++i) in.push_back(f.constants.at(n.inputs[i]));
        t = run_onnx_node(n, in, c.opset)[0];
      }
      return {t};
    }
    const Tensor& x = c.in[0];
    Tensor y = empty_strided(Layout::channels_last(x.size()), DType::f32);
    if (x.numel())
      kernels::shuffle_channels(x.numel() / x.size(1), groups, x.size(1) / groups, x.data<float>(), y.data<float>());
    return {y};
  };
}

OnnxOperator row_norm(const OnnxNode& node, const Tensor& scale, const Tensor& shift) {
  const Tensor g = contiguous(scale), b = shift ? contiguous(shift) : Tensor();
  const auto eps = static_cast<float>(node.number("epsilon", 1e-5));
  return [node, g, b, eps](const OnnxCall& c) -> Items {
    const Tensor& given = c.in[0];
    if (given.dtype() != DType::f32 || given.is_meta() || given.ndim() < 1 || given.size(-1) != g.numel())
      return as_it_was(node, {node, b ? std::vector<Tensor>{given, g, b} : std::vector<Tensor>{given, g}, c.opset, {}});
    const Tensor x = ops::dense(given);
    Tensor y = empty(x.size());
    if (!x.numel()) return {y};
    const int64_t rows = x.numel() / g.numel();
    const kernels::Scratch<float> mean(rows), rstd(rows);
    kernels::layer_norm_forward<float>(rows, g.numel(), false, eps, x.data<float>(), g.data<float>(),
                                       b ? b.data<float>() : nullptr, y.data<float>(), mean.data(), rstd.data());
    return {y};
  };
}

}  // namespace tenon::formats
