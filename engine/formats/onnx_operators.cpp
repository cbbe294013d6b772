// ONNX operators that are more than a pointwise op of the registry, each in terms of public ops.
#include <algorithm>
#include <fmt/format.h>

#include "core/error.h"
#include "engine/formats/onnx_operator.h"
#include "engine/ops/conv.h"
#include "engine/ops/loss.h"
#include "engine/ops/matmul.h"
#include "engine/ops/norm.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/pool.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

Dims pair_of(const std::vector<int64_t>& v, int64_t fallback) {
  if (v.empty()) return {fallback, fallback};
  if (v.size() != 2) throw Error(fmt::format("{} spatial axes; two are supported", v.size()));
  return {v[0], v[1]};
}

// Symmetric padding, from pads or auto_pad.
Dims padding_of(const OnnxCall& c) {
  std::string automatic = c.node.text("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID") throw Error(fmt::format("auto_pad {} is not supported", automatic));
  std::vector<int64_t> pads = c.node.integers("pads");
  if (pads.empty()) return {0, 0};
  if (pads.size() != 4) throw Error(fmt::format("{} paddings; four are supported", pads.size()));
  if (pads[0] != pads[2] || pads[1] != pads[3]) throw Error("padding that differs between begin and end is not supported");
  return {pads[0], pads[1]};
}

TENON_ONNX(Conv) {
  if (c.input(0).ndim() != 4) throw Error(fmt::format("an input of {} axes; four are supported", c.input(0).ndim()));
  Conv2dOptions o;
  o.stride = pair_of(c.node.integers("strides"), 1);
  o.padding = padding_of(c);
  o.dilation = pair_of(c.node.integers("dilations"), 1);
  o.groups = c.node.integer("group", 1);
  return {contiguous(conv2d(c.input(0), c.input(1), c.has(2) ? c.in[2] : Tensor(), o))};
}

TENON_ONNX(MaxPool) {
  if (c.node.outputs.size() > 1 || c.node.integer("ceil_mode", 0) || c.input(0).ndim() != 4) throw Error("indices, ceil_mode and other than four axes are not supported");
  Dims kernel = pair_of(c.node.integers("kernel_shape"), 1);
  Pool2dOptions o;
  o.kernel = kernel;
  o.stride = pair_of(c.node.integers("strides"), 1);
  o.padding = padding_of(c);
  o.dilation = pair_of(c.node.integers("dilations"), 1);
  return {contiguous(max_pool2d(c.input(0), o))};
}

TENON_ONNX(Gemm) {
  bool ta = c.node.integer("transA", 0), tb = c.node.integer("transB", 0);
  double alpha = c.node.number("alpha", 1), beta = c.node.number("beta", 1);
  if (!ta && tb && alpha == 1 && beta == 1 && (!c.has(2) || c.in[2].ndim() == 1)) return {linear(c.input(0), c.input(1), c.has(2) ? c.in[2] : Tensor())};
  Tensor y = matmul(c.input(0), c.input(1), ta, tb);
  if (alpha != 1) y = mul(y, alpha);
  if (c.has(2)) y = add(y, beta == 1 ? c.in[2] : mul(c.in[2], beta));
  return {y};
}

TENON_ONNX(MatMul) { return {matmul(c.input(0), c.input(1))}; }
TENON_ONNX(Identity) { return {c.input(0)}; }

TENON_ONNX(BatchNormalization) {
  if (c.node.integer("training_mode", 0)) throw Error("training_mode is not supported");
  return {contiguous(batch_norm_inference(c.input(0), c.input(1), c.input(2), c.input(3), c.input(4), c.node.number("epsilon", 1e-5)))};
}

TENON_ONNX(Dropout) {
  if (c.has(2) && item(c.in[2]) != 0) throw Error("training mode is not supported");
  Out out{c.input(0)};
  if (c.node.outputs.size() > 1) out.push_back(ones(c.input(0).size(), DType::boolean));
  return out;
}

TENON_ONNX(Flatten) {
  const Shape& s = c.input(0).size();
  int64_t axis = c.node.integer("axis", 1), rows = 1;
  if (axis < -s.n || axis > s.n) throw Error(fmt::format("axis {} is out of range for {} axes", axis, s.n));
  for (int i = 0; i < (axis < 0 ? axis + s.n : axis); ++i) rows *= s[i];
  return {reshape(c.input(0), {rows, rows ? s.product() / rows : 0})};
}

TENON_ONNX(Reshape) {
  std::vector<int64_t> to = c.list(1, "shape");
  if (!c.node.integer("allowzero", 0))
    for (size_t i = 0; i < to.size(); ++i)
      if (to[i] == 0) {
        if (static_cast<int>(i) >= c.input(0).ndim()) throw Error("size 0 copies an axis that the input does not have");
        to[i] = c.input(0).size(static_cast<int>(i));
      }
  return {reshape(c.input(0), Shape(to))};
}

TENON_ONNX(Transpose) {
  std::vector<int64_t> perm = c.node.integers("perm");
  if (perm.empty())
    for (int i = c.input(0).ndim() - 1; i >= 0; --i) perm.push_back(i);
  return {permute(c.input(0), Dims(perm))};
}

// Before opset 13 the axes from `axis` on are one.
Out softmax_of(const OnnxCall& c, Tensor (*f)(const Tensor&, int)) {
  const Tensor& x = c.input(0);
  int axis = wrap_axis(c.node.integer("axis", c.opset < 13 ? 1 : -1), x.ndim());
  if (c.opset >= 13) return {f(x, axis)};
  int64_t rows = 1;
  for (int i = 0; i < axis; ++i) rows *= x.size(i);
  return {reshape(f(reshape(x, {rows, rows ? x.numel() / rows : 0}), -1), x.size())};
}
TENON_ONNX(Softmax) { return softmax_of(c, softmax); }
TENON_ONNX(LogSoftmax) { return softmax_of(c, log_softmax); }

Dims axes_of(const OnnxCall& c, bool as_input) { return Dims(as_input ? c.list(1, "axes") : c.node.integers("axes")); }

TENON_ONNX(ReduceSum) {
  Dims axes = axes_of(c, c.opset >= 13);
  if (axes.n == 0 && c.node.integer("noop_with_empty_axes", 0)) return {c.input(0)};
  return {cast(sum(c.input(0), axes, c.node.integer("keepdims", 1)), c.input(0).dtype())};
}
TENON_ONNX(ReduceMean) { return {mean(c.input(0), axes_of(c, c.opset >= 18), c.node.integer("keepdims", 1))}; }
TENON_ONNX(ReduceMax) { return {amax(c.input(0), axes_of(c, c.opset >= 18), c.node.integer("keepdims", 1))}; }
TENON_ONNX(ReduceMin) { return {amin(c.input(0), axes_of(c, c.opset >= 18), c.node.integer("keepdims", 1))}; }
TENON_ONNX(ArgMax) {
  if (c.node.integer("select_last_index", 0)) throw Error("select_last_index is not supported");
  return {argmax(c.input(0), static_cast<int>(c.node.integer("axis", 0)), c.node.integer("keepdims", 1))};
}

TENON_ONNX(Squeeze) {
  std::vector<int64_t> axes = c.opset >= 13 ? c.list(1, "axes") : c.node.integers("axes");
  Tensor y = c.input(0);
  int n = y.ndim();
  std::vector<bool> drop(static_cast<size_t>(n));
  if (axes.empty())
    for (int i = 0; i < n; ++i) drop[static_cast<size_t>(i)] = y.size(i) == 1;
  for (int64_t a : axes) drop[static_cast<size_t>(wrap_axis(a, n))] = true;
  for (int i = n - 1; i >= 0; --i)
    if (drop[static_cast<size_t>(i)]) y = squeeze(y, i);
  return {y};
}
TENON_ONNX(Unsqueeze) {
  std::vector<int64_t> axes = c.opset >= 13 ? c.list(1, "axes") : c.node.integers("axes");
  int n = c.input(0).ndim() + static_cast<int>(axes.size());
  for (int64_t& a : axes) a = wrap_axis(a, n);
  std::sort(axes.begin(), axes.end());
  Tensor y = c.input(0);
  for (int64_t a : axes) y = unsqueeze(y, static_cast<int>(a));
  return {y};
}
TENON_ONNX(Expand) {
  Shape to = broadcast_shape(c.input(0).size(), Shape(c.list(1, "")));
  return {expand(c.input(0), to)};
}
TENON_ONNX(Slice) {
  std::vector<int64_t> starts = c.list(1, "starts"), ends = c.list(2, "ends"), axes = c.list(3, "axes"), steps = c.list(4, "steps");
  Tensor y = c.input(0);
  for (size_t i = 0; i < starts.size(); ++i) {
    if (i >= ends.size()) throw Error("fewer ends than starts");
    y = slice(y, static_cast<int>(axes.empty() ? static_cast<int64_t>(i) : axes.at(i)), starts[i], ends[i], steps.empty() ? 1 : steps.at(i));
  }
  return {y};
}
TENON_ONNX(Cast) {
  int64_t to = c.node.integer("to", 0);
  for (int k = 0; k < kDTypes; ++k)
    if (onnx_data_type(static_cast<DType>(k)) == to) return {cast(c.input(0), static_cast<DType>(k))};
  throw Error(fmt::format("data type {} is not supported", to));
}
TENON_ONNX(Constant) {
  const auto* v = c.node.find("value");
  if (!v || !std::holds_alternative<Tensor>(*v)) throw Error("only a tensor as its value is supported");
  return {std::get<Tensor>(*v)};
}

}  // namespace
}  // namespace tenon::formats
