// Operators of PyTorch that are layers: products, convolutions, windows, norms.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/formats/aten/rule.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

constexpr const char* kInTraining = "it was exported in training mode: call model.eval() first";

std::string turned_matrix(AtenCall& c, const std::string& matrix) {
  return c.add("Transpose", {matrix}, {{"perm", AtenInts{1, 0}}});
}
TENON_ATEN(linear) {
  if (c.rank("weight") != 2) c.refuse("its weight is no matrix");
  if (c.rank("input") == 2)
    return c.result(c.add("Gemm", {c.in("input"), c.in("weight"), c.in("bias")}, {{"transB", int64_t{1}}}));
  std::string y = c.add("MatMul", {c.in("input"), turned_matrix(c, c.in("weight"))});
  if (c.has("bias")) y = c.add("Add", {y, c.in("bias")});
  c.result(y);
}
TENON_ATEN(matmul) { c.result(c.add("MatMul", {c.in("self"), c.in("other")})); }
TENON_ATEN(mm) { c.result(c.add("MatMul", {c.in("self"), c.in("mat2")})); }
TENON_ATEN(bmm) { c.result(c.add("MatMul", {c.in("self"), c.in("mat2")})); }
TENON_ATEN(addmm) {
  c.result(c.add("Gemm", {c.in("mat1"), c.in("mat2"), c.in("self")},
                 {{"alpha", c.number("alpha")}, {"beta", c.number("beta")}}));
}
TENON_ATEN(baddbmm) {
  const DType t = c.dtype("self");
  std::string x = c.in("self"), y = c.add("MatMul", {c.in("batch1"), c.in("batch2")});
  if (c.number("alpha") != 1) y = c.add("Mul", {y, c.scalar_of(c.number("alpha"), t)});
  if (c.number("beta") != 1) x = c.add("Mul", {x, c.scalar_of(c.number("beta"), t)});
  c.result(c.add("Add", {x, y}));
}
TENON_ATEN(einsum) {
  if (c.has("path")) c.refuse("it says a way through its products");
  c.result(c.add("Einsum", c.in_list("tensors"), {{"equation", c.text("equation")}}));
}

// Convolutions and windows.

size_t window_axes(const AtenCall& c, const char* input) {
  const int64_t axes = c.rank(input) - 2;
  if (axes < 1 || axes > 3) c.refuse(fmt::format("its input has {} axes", axes + 2));
  return static_cast<size_t>(axes);
}
AtenInts twice(const AtenInts& v) {
  AtenInts both = v;
  both.insert(both.end(), v.begin(), v.end());
  return both;
}
struct AtenWindow {
  size_t axes;
  AtenInts stride, padding, dilation, more;
  bool transposed = false;
};
void converted_window(AtenCall& c, const AtenWindow& w, AtenInts pads = {}) {
  if (static_cast<size_t>(c.rank("weight")) != w.axes + 2) c.refuse("its input has no axis of samples");
  AtenInts kernel;
  for (size_t i = 0; i < w.axes; ++i) kernel.push_back(c.size("weight", static_cast<int64_t>(i) + 2));
  if (pads.empty()) pads = twice(w.padding);
  std::vector<OnnxAttribute> attributes = {{"kernel_shape", kernel},
                                           {"strides", w.stride},
                                           {"pads", pads},
                                           {"dilations", w.dilation},
                                           {"group", c.integer("groups")}};
  if (w.transposed) attributes.push_back({"output_padding", w.more});
  c.result(c.add(w.transposed ? "ConvTranspose" : "Conv", {c.in("input"), c.in("weight"), c.in("bias")}, attributes));
}
void plain_conv(AtenCall& c) {
  const size_t n = window_axes(c, "input");
  const AtenInts stride = c.window("stride", n), dilation = c.window("dilation", n);
  if (c.overload() != "padding") return converted_window(c, {n, stride, c.window("padding", n), dilation, {}});
  if (c.text("padding") == "valid") return converted_window(c, {n, stride, AtenInts(n, 0), dilation, {}});
  AtenInts pads(2 * n, 0);  // "same": what is odd goes behind
  for (size_t i = 0; i < n; ++i) {
    const int64_t all = dilation[i] * (c.size("weight", static_cast<int64_t>(i) + 2) - 1);
    pads[i] = all / 2;
    pads[n + i] = all - all / 2;
  }
  converted_window(c, {n, stride, {}, dilation, {}}, pads);
}
TENON_ATEN(conv1d) { plain_conv(c); }
TENON_ATEN(conv2d) { plain_conv(c); }
TENON_ATEN(conv3d) { plain_conv(c); }
void conv_transposed(AtenCall& c) {
  const size_t n = window_axes(c, "input");
  converted_window(c, {n, c.window("stride", n), c.window("padding", n), c.window("dilation", n),
                       c.window("output_padding", n), true});
}
TENON_ATEN(conv_transpose1d) { conv_transposed(c); }
TENON_ATEN(conv_transpose2d) { conv_transposed(c); }
TENON_ATEN(conv_transpose3d) { conv_transposed(c); }
TENON_ATEN(convolution) {
  const size_t n = window_axes(c, "input");
  converted_window(c, {n, c.window("stride", n), c.window("padding", n), c.window("dilation", n),
                       c.window("output_padding", n), c.truth("transposed")});
}

void pooled(AtenCall& c, bool max) {
  const size_t n = window_axes(c, "self");
  const AtenInts kernel = c.window("kernel_size", n);
  const AtenInts stride = c.integers("stride").empty() ? kernel : c.window("stride", n);
  std::vector<OnnxAttribute> attributes = {{"kernel_shape", kernel},
                                           {"strides", stride},
                                           {"pads", twice(c.window("padding", n))},
                                           {"ceil_mode", int64_t{c.truth("ceil_mode")}}};
  if (max) {
    attributes.push_back({"dilations", c.window("dilation", n)});
  } else {
    if (c.knows("divisor_override") && c.has("divisor_override")) c.refuse("it divides by a number of its own");
    attributes.push_back({"count_include_pad", int64_t{c.truth("count_include_pad")}});
  }
  c.result(c.add(max ? "MaxPool" : "AveragePool", {c.in("self")}, attributes));
}
TENON_ATEN(max_pool1d) { pooled(c, true); }
TENON_ATEN(max_pool2d) { pooled(c, true); }
TENON_ATEN(max_pool3d) { pooled(c, true); }
TENON_ATEN(max_pool2d_with_indices) { pooled(c, true); }
TENON_ATEN(max_pool3d_with_indices) { pooled(c, true); }
TENON_ATEN(avg_pool1d) { pooled(c, false); }
TENON_ATEN(avg_pool2d) { pooled(c, false); }
TENON_ATEN(avg_pool3d) { pooled(c, false); }

/// Rows of weights: what each of `to` windows over `from` elements has of them.
Tensor window_shares(int64_t from, int64_t to) {
  Tensor t = zeros({to, from});
  for (int64_t i = 0; i < to; ++i) {
    const int64_t begin = i * from / to, end = ((i + 1) * from + to - 1) / to;
    for (int64_t k = begin; k < end; ++k) t.data<float>()[i * from + k] = 1 / static_cast<float>(end - begin);
  }
  return t;
}
void pooled_to(AtenCall& c, bool max) {
  constexpr int64_t kMostShares = 1 << 20;
  const size_t n = window_axes(c, "self");
  const AtenInts to = c.window("output_size", n);
  if (std::all_of(to.begin(), to.end(), [](int64_t k) { return k == 1; }))
    return c.result(c.add(max ? "GlobalMaxPool" : "GlobalAveragePool", {c.in("self")}));
  AtenInts from, kernel;
  bool even = true;
  for (size_t i = 0; i < n; ++i) {
    if (to[i] < 1) c.refuse(fmt::format("it makes a size of {}", to[i]));
    from.push_back(c.size("self", static_cast<int64_t>(i) + 2));
    even = even && from[i] % to[i] == 0;
    kernel.push_back(from[i] / to[i]);
  }
  if (even)
    return c.result(
        c.add(max ? "MaxPool" : "AveragePool", {c.in("self")}, {{"kernel_shape", kernel}, {"strides", kernel}}));
  if (max || n != 2 || c.dtype("self") != DType::f32) c.refuse("its windows are of different sizes");
  for (size_t i = 0; i < n; ++i)
    if (from[i] < 1 || from[i] > kMostShares / to[i]) c.refuse("it has too many windows");
  const std::string rows = c.add("MatMul", {c.constant(window_shares(from[0], to[0])), c.in("self")});
  c.result(c.add("MatMul", {rows, c.constant(contiguous(transpose(window_shares(from[1], to[1]), 0, 1)))}));
}
TENON_ATEN(adaptive_avg_pool1d) { pooled_to(c, false); }
TENON_ATEN(adaptive_avg_pool2d) { pooled_to(c, false); }
TENON_ATEN(adaptive_avg_pool3d) { pooled_to(c, false); }
TENON_ATEN(_adaptive_avg_pool2d) { pooled_to(c, false); }
TENON_ATEN(_adaptive_avg_pool3d) { pooled_to(c, false); }
TENON_ATEN(adaptive_max_pool1d) { pooled_to(c, true); }
TENON_ATEN(adaptive_max_pool2d) { pooled_to(c, true); }
TENON_ATEN(adaptive_max_pool3d) { pooled_to(c, true); }

// Norms.

/// A weight that may be left out, of so many numbers then.
std::string weight_or(AtenCall& c, const char* name, const Shape& size, double value, DType t) {
  constexpr int64_t kMostNumbers = 1 << 24;
  if (c.has(name)) return c.in(name);
  if (size.product() > kMostNumbers) c.refuse("its size is too large");
  return c.constant(full(size, value, t));
}
void normed_by_running(AtenCall& c) {
  if (!c.has("running_mean") || !c.has("running_var")) c.refuse("it has no running statistics");
  const Shape size{c.size("running_mean", 0)};
  const DType t = c.dtype("running_mean");
  c.result(c.add("BatchNormalization",
                 {c.in("input"), weight_or(c, "weight", size, 1, t), weight_or(c, "bias", size, 0, t),
                  c.in("running_mean"), c.in("running_var")},
                 {{"epsilon", c.number("eps")}}));
}
TENON_ATEN(batch_norm) {
  if (c.truth("training")) c.refuse(kInTraining);
  normed_by_running(c);
}
TENON_ATEN(_native_batch_norm_legit_no_training) { normed_by_running(c); }

/// By the mean and variance of the batch itself.
TENON_ATEN(_native_batch_norm_legit) {
  AtenInts axes;
  for (int64_t i = 0; i < c.rank("input"); ++i)
    if (i != 1) axes.push_back(i);
  const DType t = c.dtype("input");
  AtenInts beside(static_cast<size_t>(c.rank("input")), 1);
  beside.at(1) = -1;
  const std::string over = c.whole(axes), x = c.in("input"), m = c.add("ReduceMean", {x, over}),
                    d = c.add("Sub", {x, m}), v = c.add("ReduceMean", {c.add("Mul", {d, d}), over});
  std::string y = c.add("Div", {d, c.add("Sqrt", {c.add("Add", {v, c.scalar_of(c.number("eps"), t)})})});
  const auto spread = [&](const char* name) { return c.add("Reshape", {c.in(name), c.whole(beside)}); };
  if (c.has("weight")) y = c.add("Mul", {y, spread("weight")});
  c.result(c.has("bias") ? c.add("Add", {y, spread("bias")}) : y);
}

void normed_layer(AtenCall& c, const char* type) {
  Shape size;
  const AtenInts over = c.integers("normalized_shape");
  if (over.empty() || static_cast<int64_t>(over.size()) > c.rank("input")) c.refuse("it is over no axes");
  for (int64_t n : over) {
    if (n < 0) c.refuse(fmt::format("it is over a size of {}", n));
    size.push_back(n);
  }
  const DType t = c.dtype("input");
  const bool root = std::string(type) == "RMSNormalization";
  std::vector<std::string> in = {c.in("input"), weight_or(c, "weight", size, 1, t)};
  if (!root && c.has("bias")) in.push_back(c.in("bias"));
  const double eps = c.has("eps") ? c.number("eps") : static_cast<double>(std::numeric_limits<float>::epsilon());
  c.result(c.add(type, in, {{"axis", -static_cast<int64_t>(over.size())}, {"epsilon", eps}}));
}
TENON_ATEN(layer_norm) { normed_layer(c, "LayerNormalization"); }
TENON_ATEN(native_layer_norm) { normed_layer(c, "LayerNormalization"); }
TENON_ATEN(rms_norm) { normed_layer(c, "RMSNormalization"); }
void normed_groups(AtenCall& c, const char* groups) {
  const Shape size{c.size("input", 1)};
  const DType t = c.dtype("input");
  c.result(c.add("GroupNormalization",
                 {c.in("input"), weight_or(c, "weight", size, 1, t), weight_or(c, "bias", size, 0, t)},
                 {{"num_groups", c.integer(groups)}, {"epsilon", c.number("eps")}}));
}
TENON_ATEN(group_norm) { normed_groups(c, "num_groups"); }
TENON_ATEN(native_group_norm) { normed_groups(c, "group"); }
TENON_ATEN(instance_norm) {
  if (!c.truth("use_input_stats")) return normed_by_running(c);
  if (c.rank("input") < 3) c.refuse("its input has no axis of samples");
  const Shape size{c.size("input", 1)};
  const DType t = c.dtype("input");
  c.result(c.add("InstanceNormalization",
                 {c.in("input"), weight_or(c, "weight", size, 1, t), weight_or(c, "bias", size, 0, t)},
                 {{"epsilon", c.number("eps")}}));
}

TENON_ATEN(embedding) { c.result(c.add("Gather", {c.in("weight"), c.in("indices")}, {{"axis", int64_t{0}}})); }
TENON_ATEN(dropout) {
  if (c.truth("train") && c.number("p") > 0) c.refuse(kInTraining);
  c.result(c.in("input"));
}
TENON_ATEN(native_dropout) {
  if (c.truth("train") && c.number("p") > 0) c.refuse(kInTraining);
  c.result(c.in("input"));
}

// Other sizes of pictures.

void resized(AtenCall& c, std::vector<OnnxAttribute> how) {
  const char* input = c.knows("self") ? "self" : "input";
  const size_t n = window_axes(c, input);
  AtenInts to;
  if (c.has("output_size")) {
    to = c.integers("output_size");
  } else {
    const std::vector<double> factors = c.numbers("scale_factors");
    for (size_t i = 0; i < n && i < factors.size(); ++i) {
      const double exact = static_cast<double>(c.size(input, static_cast<int64_t>(i) + 2)) * factors[i];
      if (!(exact >= 1 && exact < 1e9) || exact != std::floor(exact)) c.refuse("its sizes are no multiples");
      to.push_back(static_cast<int64_t>(exact));
    }
  }
  if (to.size() != n) c.refuse("it says no sizes");
  if (c.knows("align_corners"))
    how.push_back(
        {"coordinate_transformation_mode", std::string(c.truth("align_corners") ? "align_corners" : "half_pixel")});
  const std::string sizes =
      c.add("Concat", {c.add("Shape", {c.in(input)}, {{"end", int64_t{2}}}), c.whole(to)}, {{"axis", int64_t{0}}});
  c.result(c.add("Resize", {c.in(input), "", "", sizes}, std::move(how)));
}
bool resizes(const char* op, const char* mode) {
  return register_aten(op, [mode](AtenCall& c) {
    if (mode == std::string("nearest"))
      return resized(c, {{"mode", std::string(mode)},
                         {"coordinate_transformation_mode", std::string("asymmetric")},
                         {"nearest_mode", std::string("floor")}});
    resized(c, {{"mode", std::string(mode)}, {"cubic_coeff_a", -0.75}});
  });
}
const bool converted_resizes[] = {resizes("upsample_nearest1d", "nearest"), resizes("upsample_nearest2d", "nearest"),
                                  resizes("upsample_nearest3d", "nearest"), resizes("upsample_linear1d", "linear"),
                                  resizes("upsample_bilinear2d", "linear"), resizes("upsample_trilinear3d", "linear"),
                                  resizes("upsample_bicubic2d", "cubic")};

}  // namespace
}  // namespace tenon::formats
