// Which layer stands for which ONNX operator: one definition an operator.
#include <algorithm>
#include <cmath>

#include "engine/formats/onnx/import_rule.h"
#include "engine/ops/pointwise.h"

namespace tenon::formats::importing {
namespace {

// Activations.

TENON_IMPORT(Relu) { return one_layer(m, "ReLU"); }
TENON_IMPORT(Sigmoid) { return one_layer(m, "Sigmoid"); }
TENON_IMPORT(Tanh) { return one_layer(m, "Tanh"); }
TENON_IMPORT(HardSwish) { return one_layer(m, "Hardswish"); }
TENON_IMPORT(Mish) { return one_layer(m, "Mish"); }
TENON_IMPORT(Softsign) { return one_layer(m, "Softsign"); }
TENON_IMPORT(Softplus) { return one_layer(m, "Softplus"); }
TENON_IMPORT(Elu) { return one_layer(m, "ELU", {{"alpha", m.node().number("alpha", 1)}}); }
TENON_IMPORT(LeakyRelu) { return one_layer(m, "LeakyReLU", {{"negative_slope", m.node().number("alpha", 0.01)}}); }
TENON_IMPORT(Gelu) { return one_layer(m, "GELU", {{"approximate", m.node().text("approximate", "none")}}); }
TENON_IMPORT(HardSigmoid) {
  return near(m.node().number("alpha", 0.2), 1.0 / 6) && near(m.node().number("beta", 0.5), 0.5) &&
         one_layer(m, "Hardsigmoid");
}
TENON_IMPORT(Clip) {
  const bool given = m.opset() >= 11;
  const double low = given ? (m.has(1) ? m.number(1).value_or(NAN) : -INFINITY) : m.node().number("min", -INFINITY);
  const double high = given ? (m.has(2) ? m.number(2).value_or(NAN) : INFINITY) : m.node().number("max", INFINITY);
  if (low == 0 && high == 6) return one_layer(m, "ReLU6");
  if (low == 0 && high >= 1e9) return one_layer(m, "ReLU");
  return std::abs(low) < 1e9 && std::abs(high) < 1e9 && one_layer(m, "Hardtanh", {{"min_val", low}, {"max_val", high}});
}
TENON_IMPORT(PRelu) {
  if (!m.dynamic(0) || !m.constant(1)) return false;
  const Tensor slope = flat(m.in(1).tensor);
  const Shape& x = m.in(0).shape();
  if (slope.numel() != 1 && (x.n < 2 || slope.numel() != x[1])) return false;
  m.result(m.add("PReLU", {{"num_parameters", slope.numel()}}, {m.in(0)}, {{"weight", slope}}));
  return true;
}
bool soft(Importer& m, const char* type) {
  const int axes = m.in(0).shape().n;
  const int64_t axis = wrapped(m.node().integer("axis", m.opset() < 13 ? 1 : -1), axes);
  if (m.opset() < 13 && axis != axes - 1) return false;  // over all axes from there on
  return one_layer(m, type, {{"dim", axis}});
}
TENON_IMPORT(Softmax) { return soft(m, "Softmax"); }
TENON_IMPORT(LogSoftmax) { return soft(m, "LogSoftmax"); }
TENON_IMPORT(Dropout) {
  const double p = m.opset() >= 12 ? (m.has(1) ? m.number(1).value_or(0.5) : 0.5) : m.node().number("ratio", 0.5);
  return one_layer(m, "Dropout", {{"p", p}});
}

// Convolutions and windows.

/// Elements added at the beginning and end of each axis of a window's input.
struct Padding {
  Ints begin, end;
  bool even() const { return begin == end; }
};
Padding padding_of(const Importer& m, const Ints& kernel, const Ints& stride, const Ints& dilation) {
  const size_t axes = kernel.size();
  const std::string automatic = m.node().text("auto_pad", "NOTSET");
  Ints pads = m.node().integers("pads", Ints(2 * axes, 0));
  if (pads.size() != 2 * axes) throw Error("pads of another number of axes");
  Padding p{{pads.begin(), pads.begin() + static_cast<int64_t>(axes)},
            {pads.begin() + static_cast<int64_t>(axes), pads.end()}};
  if (automatic == "NOTSET" || automatic.empty()) return p;
  p.begin = p.end = Ints(axes, 0);
  if (automatic == "VALID") return p;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t size = m.in(0).shape()[static_cast<int>(i) + 2], out = (size + stride[i] - 1) / stride[i];
    const int64_t all = std::max<int64_t>(0, (out - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1 - size);
    p.begin[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
    p.end[i] = all - p.begin[i];
  }
  return p;
}
/// The node's first input with zeros around it where a layer's own padding, the same at both ends, does not do.
Value padded(Importer& m, Padding& p) {
  if (p.even()) return m.in(0);
  Ints around;
  for (size_t i = p.begin.size(); i-- > 0;) around.insert(around.end(), {p.begin[i], p.end[i]});
  p.begin = p.end = Ints(p.begin.size(), 0);
  return m.add(by_axes({"ZeroPad1d", "ZeroPad2d", "ZeroPad3d"}, static_cast<int>(p.begin.size())),
               {{"padding", around}}, {m.in(0)});
}

bool conv(Importer& m, bool transposed) {
  if (!m.dynamic(0) || !m.constant(1) || m.dynamic(2)) return false;
  const Tensor& w = m.in(1).tensor;
  const int axes = w.ndim() - 2;
  const Ints ones(static_cast<size_t>(std::max(axes, 0)), 1), zeros(ones.size(), 0);
  const char* type = transposed ? by_axes({"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"}, axes)
                                : by_axes({"Conv1d", "Conv2d", "Conv3d"}, axes);
  const Ints kernel(w.size().begin() + 2, w.size().end()), stride = m.node().integers("strides", ones),
                                                           dilation = m.node().integers("dilations", ones);
  const int64_t groups = m.node().integer("group", 1);
  if (transposed && (m.node().find("output_shape") || m.node().text("auto_pad", "NOTSET") != "NOTSET")) return false;
  Padding p = padding_of(m, kernel, stride, dilation);
  if (transposed && !p.even()) return false;
  const Value x = padded(m, p);
  std::vector<Attr> attrs = {{"out_channels", transposed ? w.size(1) * groups : w.size(0)}, {"kernel_size", kernel}};
  if (stride != ones) attrs.push_back({"stride", stride});
  if (p.begin != zeros) attrs.push_back({"padding", p.begin});
  if (dilation != ones) attrs.push_back({"dilation", dilation});
  if (groups != 1) attrs.push_back({"groups", groups});
  if (!m.has(2)) attrs.push_back({"bias", false});
  if (const Ints more = m.node().integers("output_padding", zeros); more != zeros)
    attrs.push_back({"output_padding", more});
  Weights weights = {{"weight", w}};
  if (m.has(2)) weights.push_back({"bias", m.in(2).tensor});
  m.result(m.add(type, std::move(attrs), {x}, std::move(weights)));
  return true;
}
TENON_IMPORT(Conv) { return conv(m, false); }
TENON_IMPORT(ConvTranspose) { return conv(m, true); }

bool pool_layer(Importer& m, bool max) {
  const Ints kernel = m.node().integers("kernel_shape"), ones(kernel.size(), 1);
  const Ints stride = m.node().integers("strides", ones), dilation = m.node().integers("dilations", ones);
  const Padding p = padding_of(m, kernel, stride, dilation);
  const int axes = static_cast<int>(kernel.size());
  if (!p.even() || (!max && dilation != ones) || m.node().outputs.size() > 1) return false;
  std::vector<Attr> attrs = {{"kernel_size", kernel}, {"stride", stride}};
  if (p.begin != Ints(kernel.size(), 0)) attrs.push_back({"padding", p.begin});
  if (dilation != ones) attrs.push_back({"dilation", dilation});
  if (m.node().integer("ceil_mode", 0)) attrs.push_back({"ceil_mode", true});
  if (!max && !m.node().integer("count_include_pad", 0)) attrs.push_back({"count_include_pad", false});
  return one_layer(m,
                   max ? by_axes({"MaxPool1d", "MaxPool2d", "MaxPool3d"}, axes)
                       : by_axes({"AvgPool1d", "AvgPool2d", "AvgPool3d"}, axes),
                   std::move(attrs));
}
TENON_IMPORT(MaxPool) { return pool_layer(m, true); }
TENON_IMPORT(AveragePool) { return pool_layer(m, false); }
TENON_IMPORT(GlobalAveragePool) {
  const int axes = m.in(0).shape().n - 2;
  return one_layer(m, by_axes({"AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d"}, axes),
                   {{"output_size", Ints(static_cast<size_t>(axes), 1)}});
}
TENON_IMPORT(GlobalMaxPool) {
  const int axes = m.in(0).shape().n - 2;
  return one_layer(m, by_axes({"AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d"}, axes),
                   {{"output_size", Ints(static_cast<size_t>(axes), 1)}});
}

bool resize_layer(Importer& m, size_t scales_at, size_t sizes_at) {
  const Shape& x = m.in(0).shape();
  const std::string how = m.node().text("coordinate_transformation_mode", m.opset() < 11 ? "asymmetric" : "half_pixel");
  const std::string mode = m.node().text("mode", "nearest");
  const bool nearest = mode == "nearest", aligned = how == "align_corners";
  if (x.n < 3 || m.node().integer("antialias", 0) || m.node().find("axes")) return false;
  if (nearest &&
      !(how == "asymmetric" && (m.opset() < 11 || m.node().text("nearest_mode", "round_prefer_floor") == "floor")))
    return false;
  if (!nearest && (mode != "linear" || (!aligned && how != "half_pixel" && how != "pytorch_half_pixel"))) return false;
  Ints size;
  if (sizes_at && m.has(sizes_at)) {
    size = m.sizes_behind_batch(sizes_at);
  } else {
    if (!m.constant(scales_at)) return false;
    const Tensor scales = contiguous(cast(m.in(scales_at).tensor, DType::f64));
    for (int64_t i = 0; i < scales.numel(); ++i)
      size.push_back(
          static_cast<int64_t>(std::floor(static_cast<double>(x[static_cast<int>(i)]) * scales.data<double>()[i])));
  }
  if (static_cast<int>(size.size()) != x.n || size[0] != x[0] || size[1] != x[1]) return false;
  size.erase(size.begin(), size.begin() + 2);
  return one_layer(m, "Upsample",
                   {{"size", size},
                    {"mode", std::string(nearest ? "nearest" : by_axes({"linear", "bilinear", "trilinear"}, x.n - 2))},
                    {"align_corners", aligned}});
}
TENON_IMPORT(Resize) { return m.opset() < 11 ? resize_layer(m, 1, 0) : resize_layer(m, 2, 3); }
TENON_IMPORT(Upsample) { return m.opset() >= 9 && resize_layer(m, 1, 0); }

// Norms.

TENON_IMPORT(BatchNormalization) {
  if (!m.dynamic(0) || m.node().integer("training_mode", 0)) return false;
  const int axes = m.in(0).shape().n;
  Weights weights;
  const char* names[] = {"weight", "bias", "running_mean", "running_var"};
  for (size_t i = 0; i < 4; ++i) {
    if (!m.constant(i + 1)) return false;
    weights.push_back({names[i], m.in(i + 1).tensor});
  }
  m.result(m.add(by_axes({"BatchNorm1d", "BatchNorm2d", "BatchNorm3d"}, std::max(axes - 2, 1)),
                 {{"eps", m.node().number("epsilon", 1e-5)}}, {m.in(0)}, std::move(weights)));
  return true;
}
TENON_IMPORT(InstanceNormalization) {
  if (!m.dynamic(0) || !m.constant(1) || !m.constant(2)) return false;
  m.result(m.add(by_axes({"InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"}, m.in(0).shape().n - 2),
                 {{"eps", m.node().number("epsilon", 1e-5)}, {"affine", true}}, {m.in(0)},
                 {{"weight", m.in(1).tensor}, {"bias", m.in(2).tensor}}));
  return true;
}
TENON_IMPORT(LayerNormalization) {
  if (!m.dynamic(0) || !m.constant(1) || m.dynamic(2)) return false;
  const Shape& x = m.in(0).shape();
  const int64_t axis = wrapped(m.node().integer("axis", -1), x.n);
  const Tensor& scale = m.in(1).tensor;
  if (scale.ndim() != x.n - axis) return false;
  m.result(m.add("LayerNorm",
                 {{"normalized_shape", Ints(x.begin() + axis, x.end())}, {"eps", m.node().number("epsilon", 1e-5)}},
                 {m.in(0)}, {{"weight", scale}, {"bias", m.has(2) ? m.in(2).tensor : sub(scale, scale)}}));
  return true;
}

}  // namespace
}  // namespace tenon::formats::importing
