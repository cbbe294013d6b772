// Operators that are layers of PyTorch, in the words of TorchScript.
#include <algorithm>

#include "core/error.h"
#include "engine/formats/torchscript/rule.h"

namespace tenon::formats {
namespace {

TENON_SCRIPT(Gemm) {
  const bool ta = c.node().integer("transA", 0), tb = c.node().integer("transB", 0);
  const double alpha = c.node().number("alpha", 1), beta = c.node().number("beta", 1);
  const bool plain_bias = !c.has(2) || c.shape(2).n == 1;
  if (!ta && tb && alpha == 1 && beta == 1 && plain_bias) return c.call("linear", {c.in(0), c.in(1), c.in(2)});
  auto turned = [&](size_t i, bool turn) { return turn ? c.call("t", {c.in(i)}) : c.in(i); };
  std::string y = c.call("matmul", {turned(0, ta), turned(1, tb)});
  if (alpha != 1) y = c.call("mul", {y, script_real(alpha)});
  if (!c.has(2)) return y;
  return c.call("add", {y, beta == 1 ? c.in(2) : c.call("mul", {c.in(2), script_real(beta)})});
}

/// What convolutions and pools have in common.
struct ScriptWindow {
  size_t space;
  std::vector<int64_t> stride, dilation, pad;  ///< the same before and behind
  std::string x;                               ///< padded where it is not the same
};
ScriptWindow window_of(ScriptCall& c, double padding) {
  const int space = c.shape(0).n - 2;
  if (space < 1 || space > 3) throw OnnxUnsupported(fmt::format("it has {} axes of space", space));
  if (const std::string pads = c.node().text("auto_pad", "NOTSET"); pads != "NOTSET" && pads != "VALID")
    throw OnnxUnsupported("its padding is " + pads);
  const auto n = static_cast<size_t>(space);
  const std::vector<int64_t> ones(n, 1), pads = c.node().integers("pads", std::vector<int64_t>(2 * n, 0));
  ScriptWindow w{n,
                 c.node().integers("strides", ones),
                 c.node().integers("dilations", ones),
                 {pads.begin(), pads.begin() + space},
                 c.in(0)};
  if (std::equal(w.pad.begin(), w.pad.end(), pads.begin() + space)) return w;
  std::vector<int64_t> last_first;
  for (size_t k = n; k-- > 0;) {
    last_first.push_back(pads[k]);
    last_first.push_back(pads[k + n]);
  }
  w.x = c.keep(c.call("constant_pad_nd", {c.in(0), script_list(last_first), script_real(padding)}));
  w.pad.assign(n, 0);
  return w;
}
TENON_SCRIPT(Conv) {
  const ScriptWindow w = window_of(c, 0);
  return c.call(fmt::format("conv{}d", w.space), {w.x, c.in(1), c.in(2), script_list(w.stride), script_list(w.pad),
                                                  script_list(w.dilation), c.integer("group", 1)});
}
TENON_SCRIPT(ConvTranspose) {
  const ScriptWindow w = window_of(c, 0);
  if (w.x != c.in(0)) throw OnnxUnsupported("its paddings before and behind differ");
  const std::vector<int64_t> more = c.node().integers("output_padding", std::vector<int64_t>(w.space, 0));
  return c.call(fmt::format("conv_transpose{}d", w.space),
                {w.x, c.in(1), c.in(2), script_list(w.stride), script_list(w.pad), script_list(more),
                 c.integer("group", 1), script_list(w.dilation)});
}
std::string truth_word(bool b) { return b ? "True" : "False"; }
TENON_SCRIPT(MaxPool) {
  const ScriptWindow w = window_of(c, -INFINITY);
  return c.call(fmt::format("max_pool{}d", w.space),
                {w.x, script_list(c.node().integers("kernel_shape")), script_list(w.stride), script_list(w.pad),
                 script_list(w.dilation), truth_word(c.node().integer("ceil_mode", 0))});
}
TENON_SCRIPT(AveragePool) {
  const ScriptWindow w = window_of(c, 0);
  const bool counts = c.node().integer("count_include_pad", 0);
  if (w.x != c.in(0) && !counts) throw OnnxUnsupported("its paddings before and behind differ and do not count");
  if (std::any_of(w.dilation.begin(), w.dilation.end(), [](int64_t d) { return d != 1; }))
    throw OnnxUnsupported("its windows have gaps");
  return c.call(fmt::format("avg_pool{}d", w.space),
                {w.x, script_list(c.node().integers("kernel_shape")), script_list(w.stride), script_list(w.pad),
                 truth_word(c.node().integer("ceil_mode", 0)), truth_word(counts)});
}

std::vector<int64_t> space_axes(const ScriptCall& c) {
  std::vector<int64_t> axes;
  for (int i = 2; i < c.shape(0).n; ++i) axes.push_back(i);
  return axes;
}
TENON_SCRIPT(GlobalAveragePool) { return c.call("mean", {c.in(0), script_list(space_axes(c)), "True"}); }
TENON_SCRIPT(GlobalMaxPool) { return c.call("amax", {c.in(0), script_list(space_axes(c)), "True"}); }

TENON_SCRIPT(BatchNormalization) {
  return c.call("batch_norm", {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), "False", "0.10000000000000001",
                               c.real("epsilon", 1e-5), "True"});
}
TENON_SCRIPT(LayerNormalization) {
  const Shape& x = c.shape(0);
  std::vector<int64_t> over;
  for (int i = wrap_axis(c.node().integer("axis", -1), x.n); i < x.n; ++i) over.push_back(x[i]);
  return c.call("layer_norm", {c.in(0), script_list(over), c.in(1), c.in(2), c.real("epsilon", 1e-5), "True"});
}
TENON_SCRIPT(InstanceNormalization) {
  return c.call("instance_norm",
                {c.in(0), c.in(1), c.in(2), "None", "None", "True", "0.", c.real("epsilon", 1e-5), "True"});
}
TENON_SCRIPT(GroupNormalization) {
  if (c.shape(1).product() != c.shape(0)[1]) throw OnnxUnsupported("its scale is one of groups");
  return c.call("group_norm", {c.in(0), c.integer("num_groups", 1), c.in(1), c.in(2), c.real("epsilon", 1e-5), "True"});
}
TENON_SCRIPT(Softmax) { return c.call("softmax", {c.in(0), c.integer("axis", -1)}); }
TENON_SCRIPT(LogSoftmax) { return c.call("log_softmax", {c.in(0), c.integer("axis", -1)}); }

/// Over the axes of the node; `each`: what is done with the elements first.
std::string script_reduced(ScriptCall& c, int64_t axes_input_since, const std::string& function,
                           const std::string& each = "{0}") {
  std::vector<int64_t> axes = c.opset() >= axes_input_since ? c.list(1, "") : c.node().integers("axes");
  if (axes.empty() && c.node().integer("noop_with_empty_axes", 0)) return c.in(0);
  for (int i = 0; axes.empty() && i < c.shape(0).n; ++i) axes.push_back(i);
  for (int64_t& a : axes) a = wrap_axis(a, c.shape(0).n);
  const std::string keep = truth_word(c.node().integer("keepdims", 1));
  if (function != "prod") return c.call(function, {c.as(each), script_list(axes), keep});
  std::sort(axes.rbegin(), axes.rend());
  std::string y = c.as(each);
  for (int64_t a : axes) y = c.call("prod", {y, std::to_string(a), keep});
  return y;
}
TENON_SCRIPT(ReduceSum) { return script_reduced(c, 13, "sum"); }
TENON_SCRIPT(ReduceMean) { return script_reduced(c, 18, "mean"); }
TENON_SCRIPT(ReduceMax) { return script_reduced(c, 18, "amax"); }
TENON_SCRIPT(ReduceMin) { return script_reduced(c, 18, "amin"); }
TENON_SCRIPT(ReduceProd) { return script_reduced(c, 18, "prod"); }
TENON_SCRIPT(ReduceL1) { return script_reduced(c, 18, "sum", "torch.abs({0})"); }
TENON_SCRIPT(ReduceSumSquare) { return script_reduced(c, 18, "sum", "torch.mul({0}, {0})"); }
TENON_SCRIPT(ReduceL2) { return c.call("sqrt", {script_reduced(c, 18, "sum", "torch.mul({0}, {0})")}); }
TENON_SCRIPT(ArgMax) {
  return c.call("argmax", {c.in(0), c.integer("axis", 0), truth_word(c.node().integer("keepdims", 1))});
}
TENON_SCRIPT(ArgMin) {
  return c.call("argmin", {c.in(0), c.integer("axis", 0), truth_word(c.node().integer("keepdims", 1))});
}
TENON_SCRIPT(CumSum) {
  if (c.node().integer("exclusive", 0) || c.node().integer("reverse", 0))
    throw OnnxUnsupported("it is exclusive or goes backwards");
  return c.call("cumsum", {c.in(0), std::to_string(static_cast<int64_t>(c.number(1)))});
}

TENON_SCRIPT(Resize) {
  const std::string mode = c.node().text("mode", "nearest"),
                    place = c.node().text("coordinate_transformation_mode", "half_pixel");
  const int space = c.shape(0).n - 2;
  if (c.opset() < 11 || space < 1 || space > 3 || c.node().integer("antialias", 0) ||
      c.shape(0)[1] != c.result_shape()[1])
    throw OnnxUnsupported("it resizes more than one to three axes of space");
  std::vector<int64_t> to;
  for (int i = 2; i < c.shape(0).n; ++i) to.push_back(c.result_shape()[i]);
  if (mode == "nearest") {
    if (place != "asymmetric" || c.node().text("nearest_mode", "round_prefer_floor") != "floor")
      throw OnnxUnsupported("its nearest elements are not PyTorch's");
    return c.call(fmt::format("upsample_nearest{}d", space), {c.in(0), script_list(to)});
  }
  const bool corners = place == "align_corners";
  if (!corners && place != "half_pixel" && place != "pytorch_half_pixel")
    throw OnnxUnsupported("its coordinates are " + place);
  static constexpr const char* linear[] = {"upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"};
  if (mode == "cubic" && space != 2) throw OnnxUnsupported("it is cubic in other than two axes");
  return c.call(mode == "cubic" ? "upsample_bicubic2d" : linear[space - 1],
                {c.in(0), script_list(to), truth_word(corners)});
}

}  // namespace
}  // namespace tenon::formats
