// Operators on values and on how they are laid out, in the words of TorchScript.
#include <algorithm>

#include "core/error.h"
#include "engine/formats/torchscript/rule.h"

namespace tenon::formats {
namespace {

TENON_SCRIPT_AS(Identity, "{0}");
TENON_SCRIPT_AS(Abs, "torch.abs({0})");
TENON_SCRIPT_AS(Neg, "torch.neg({0})");
TENON_SCRIPT_AS(Sign, "torch.sign({0})");
TENON_SCRIPT_AS(Not, "torch.logical_not({0})");
TENON_SCRIPT_AS(IsNaN, "torch.isnan({0})");
TENON_SCRIPT_AS(Floor, "torch.floor({0})");
TENON_SCRIPT_AS(Ceil, "torch.ceil({0})");
TENON_SCRIPT_AS(Round, "torch.round({0})");
TENON_SCRIPT_AS(Reciprocal, "torch.reciprocal({0})");
TENON_SCRIPT_AS(Sqrt, "torch.sqrt({0})");
TENON_SCRIPT_AS(Exp, "torch.exp({0})");
TENON_SCRIPT_AS(Log, "torch.log({0})");
TENON_SCRIPT_AS(Erf, "torch.erf({0})");
TENON_SCRIPT_AS(Sin, "torch.sin({0})");
TENON_SCRIPT_AS(Cos, "torch.cos({0})");
TENON_SCRIPT_AS(Tan, "torch.tan({0})");
TENON_SCRIPT_AS(Asin, "torch.asin({0})");
TENON_SCRIPT_AS(Acos, "torch.acos({0})");
TENON_SCRIPT_AS(Atan, "torch.atan({0})");
TENON_SCRIPT_AS(Sinh, "torch.sinh({0})");
TENON_SCRIPT_AS(Cosh, "torch.cosh({0})");
TENON_SCRIPT_AS(Tanh, "torch.tanh({0})");
TENON_SCRIPT_AS(Asinh, "torch.asinh({0})");
TENON_SCRIPT_AS(Acosh, "torch.acosh({0})");
TENON_SCRIPT_AS(Atanh, "torch.atanh({0})");
TENON_SCRIPT_AS(Relu, "torch.relu({0})");
TENON_SCRIPT_AS(Sigmoid, "torch.sigmoid({0})");
TENON_SCRIPT_AS(Softplus, "torch.softplus({0})");
TENON_SCRIPT_AS(Softsign, "torch.div({0}, torch.add(torch.abs({0}), 1))");
TENON_SCRIPT_AS(HardSwish, "torch.hardswish({0})");
TENON_SCRIPT_AS(Mish, "torch.mish({0})");
TENON_SCRIPT_AS(Selu, "torch.selu({0})");
TENON_SCRIPT_AS(PRelu, "torch.where(torch.lt({0}, 0), torch.mul({0}, {1}), {0})");
TENON_SCRIPT_AS(Equal, "torch.eq({0}, {1})");
TENON_SCRIPT_AS(Less, "torch.lt({0}, {1})");
TENON_SCRIPT_AS(LessOrEqual, "torch.le({0}, {1})");
TENON_SCRIPT_AS(Greater, "torch.gt({0}, {1})");
TENON_SCRIPT_AS(GreaterOrEqual, "torch.ge({0}, {1})");
TENON_SCRIPT_AS(And, "torch.logical_and({0}, {1})");
TENON_SCRIPT_AS(Or, "torch.logical_or({0}, {1})");
TENON_SCRIPT_AS(Xor, "torch.logical_xor({0}, {1})");
TENON_SCRIPT_AS(Where, "torch.where({0}, {1}, {2})");
TENON_SCRIPT_AS(MatMul, "torch.matmul({0}, {1})");

TENON_SCRIPT(Add) { return c.call("add", {c.in(0), c.number_or_tensor(1)}); }
TENON_SCRIPT(Sub) { return c.call("sub", {c.in(0), c.number_or_tensor(1)}); }
TENON_SCRIPT(Mul) { return c.call("mul", {c.in(0), c.number_or_tensor(1)}); }
TENON_SCRIPT(Pow) { return c.call("pow", {c.in(0), c.number_or_tensor(1)}); }
TENON_SCRIPT(Div) {
  if (!is_floating(c.dtype(0))) return c.call("div", {c.in(0), c.in(1), "rounding_mode=\"trunc\""});
  return c.call("div", {c.in(0), c.number_or_tensor(1)});
}
TENON_SCRIPT(Mod) {
  const bool c_rule = is_floating(c.dtype(0)) || c.node().integer("fmod", 0);
  return c.call(c_rule ? "fmod" : "remainder", {c.in(0), c.in(1)});
}
std::string script_fold(ScriptCall& c, const char* function) {
  std::string y = c.in(0);
  for (size_t i = 1; i < c.inputs(); ++i) y = c.call(function, {y, c.in(i)});
  return y;
}
TENON_SCRIPT(Max) { return script_fold(c, "maximum"); }
TENON_SCRIPT(Min) { return script_fold(c, "minimum"); }
TENON_SCRIPT(Sum) { return script_fold(c, "add"); }
TENON_SCRIPT(Clip) {
  if (c.opset() >= 11)
    return c.call("clamp",
                  {c.in(0), c.has(1) ? c.number_or_tensor(1) : "None", c.has(2) ? c.number_or_tensor(2) : "None"});
  return c.call("clamp", {c.in(0), c.node().find("min") ? c.real("min", 0) : "None",
                          c.node().find("max") ? c.real("max", 0) : "None"});
}
TENON_SCRIPT(Elu) { return c.call("elu", {c.in(0), c.real("alpha", 1)}); }
TENON_SCRIPT(Celu) { return c.call("celu", {c.in(0), c.real("alpha", 1)}); }
TENON_SCRIPT(LeakyRelu) { return c.call("leaky_relu", {c.in(0), c.real("alpha", 0.01)}); }
TENON_SCRIPT(ThresholdedRelu) { return c.call("threshold", {c.in(0), c.real("alpha", 1), "0."}); }
TENON_SCRIPT(HardSigmoid) {
  const std::string line = c.call("add", {c.call("mul", {c.in(0), c.real("alpha", 0.2)}), c.real("beta", 0.5)});
  return c.call("clamp", {line, "0.", "1."});
}
TENON_SCRIPT(Shrink) {
  const double edge = c.node().number("lambd", 0.5), step = c.node().number("bias", 0);
  if (step != 0 && step != edge) throw OnnxUnsupported("it moves what is left by another number than its edge");
  return c.call(step == 0 ? "hardshrink" : "softshrink", {c.in(0), script_real(edge)});
}
TENON_SCRIPT(Gelu) { return c.call("gelu", {c.in(0), "approximate=\"" + c.node().text("approximate", "none") + "\""}); }
TENON_SCRIPT(Cast) { return c.call("to", {c.in(0), std::to_string(script_dtype(c.result_dtype()))}); }

/// Sizes of which 0 is that of the input: the code serves any batch.
TENON_SCRIPT(Reshape) {
  const std::vector<int64_t> to = c.list(1, "shape");
  std::string sizes;
  for (size_t i = 0; i < to.size(); ++i)
    sizes += (i ? ", " : "") + (to[i] == 0 ? c.call("size", {c.in(0), std::to_string(i)}) : std::to_string(to[i]));
  return c.call("reshape", {c.in(0), to.empty() ? script_list({}) : "[" + sizes + "]"});
}
TENON_SCRIPT(Flatten) {
  const int n = c.shape(0).n;
  const int64_t axis = c.node().integer("axis", 1), at = axis < 0 ? axis + n : axis;
  if (at != 1) throw OnnxUnsupported(fmt::format("its axis is {}", axis));
  return c.call("flatten", {c.in(0), "1", "-1"});
}
TENON_SCRIPT(Transpose) {
  std::vector<int64_t> perm = c.node().integers("perm");
  for (int i = c.shape(0).n - 1; i >= 0 && !c.node().find("perm"); --i) perm.push_back(i);
  return c.call("permute", {c.in(0), script_list(perm)});
}
TENON_SCRIPT(Squeeze) {
  std::string y = c.in(0);
  const Shape& x = c.shape(0);
  std::vector<int64_t> axes = c.list(1, "axes");
  if (axes.empty()) throw OnnxUnsupported("it names no axes");
  for (int64_t& a : axes) a = wrap_axis(a, x.n);
  std::sort(axes.rbegin(), axes.rend());
  for (int64_t a : axes) y = c.call("squeeze", {y, std::to_string(a)});
  return y;
}
TENON_SCRIPT(Unsqueeze) {
  std::string y = c.in(0);
  std::vector<int64_t> axes = c.list(1, "axes");
  for (int64_t& a : axes) a = wrap_axis(a, c.result_shape().n);
  std::sort(axes.begin(), axes.end());
  for (int64_t a : axes) y = c.call("unsqueeze", {y, std::to_string(a)});
  return y;
}
TENON_SCRIPT(Expand) {
  // An axis that stays as it is has -1 there.
  std::vector<int64_t> to = c.list(1, "");
  const int extra = c.result_shape().n - static_cast<int>(to.size());
  to.insert(to.begin(), static_cast<size_t>(std::max(0, extra)), -1);
  for (int64_t& n : to) n = n == 1 ? -1 : n;
  const int missing = static_cast<int>(to.size()) - c.shape(0).n;
  for (int i = 0; i < missing; ++i) to[static_cast<size_t>(i)] = c.result_shape()[i];
  return c.call("expand", {c.in(0), script_list(to)});
}
TENON_SCRIPT(Slice) {
  const std::vector<int64_t> starts = c.list(1, "starts"), ends = c.list(2, "ends"), steps = c.list(4, "");
  const std::vector<int64_t> axes = c.list(3, "axes");
  std::string y = c.in(0);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t step = steps.empty() ? 1 : steps[i];
    if (step < 1) throw OnnxUnsupported("it goes backwards");
    y = c.call("slice", {y, std::to_string(axes.empty() ? static_cast<int64_t>(i) : axes[i]), std::to_string(starts[i]),
                         std::to_string(ends[i]), std::to_string(step)});
  }
  return y;
}
TENON_SCRIPT(Concat) {
  std::string all;
  for (size_t i = 0; i < c.inputs(); ++i) all += (i ? ", " : "") + c.in(i);
  return c.call("cat", {"[" + all + "]", c.integer("axis", 0)});
}
TENON_SCRIPT(Gather) {
  const Shape &x = c.shape(0), &at = c.shape(1);
  const int axis = wrap_axis(c.node().integer("axis", 0), x.n);
  if (axis == 0 && x.n == 2) return c.call("embedding", {c.in(0), c.in(1), "-1", "False", "False"});
  std::string index = c.in(1);
  if (at.n == 0)
    return c.call("squeeze",
                  {c.call("index_select", {c.in(0), std::to_string(axis), c.call("reshape", {index, "[1]"})}),
                   std::to_string(axis)});
  if (at.n == 1) return c.call("index_select", {c.in(0), std::to_string(axis), index});
  std::string sizes;
  auto add = [&](const std::string& size) { sizes += (sizes.empty() ? "" : ", ") + size; };
  for (int i = 0; i < axis; ++i) add(c.call("size", {c.in(0), std::to_string(i)}));
  for (int i = 0; i < at.n; ++i) add(c.call("size", {c.in(1), std::to_string(i)}));
  for (int i = axis + 1; i < x.n; ++i) add(c.call("size", {c.in(0), std::to_string(i)}));
  const std::string rows = c.call("index_select", {c.in(0), std::to_string(axis), c.call("reshape", {index, "[-1]"})});
  return c.call("reshape", {rows, "[" + sizes + "]"});
}
TENON_SCRIPT(GatherElements) { return c.call("gather", {c.in(0), c.integer("axis", 0), c.in(1)}); }
TENON_SCRIPT(Pad) {
  const std::vector<int64_t> pads = c.list(1, "pads");
  const std::string mode = c.node().text("mode", "constant");
  if (c.has(3) || pads.size() != 2 * static_cast<size_t>(c.shape(0).n))
    throw OnnxUnsupported("its paddings are not of every axis");
  const size_t n = pads.size() / 2;
  std::vector<int64_t> last_first;
  size_t used = 0;
  for (size_t k = n; k-- > 0;) {
    last_first.push_back(pads[k]);
    last_first.push_back(pads[k + n]);
    if (pads[k] || pads[k + n]) used = last_first.size();
  }
  if (mode == "constant")
    return c.call("constant_pad_nd", {c.in(0), script_list(last_first),
                                      script_real(c.has(2) ? c.number(2) : c.node().number("value", 0))});
  if (mode != "reflect" && mode != "edge") throw OnnxUnsupported("its mode is " + mode);
  // As many axes as PyTorch pads of a tensor with so many.
  const size_t axes = std::max<size_t>(n > 2 ? n - 2 : 1, used / 2);
  if (axes > 3) throw OnnxUnsupported("it pads more than three axes");
  last_first.resize(2 * axes);
  return c.call(fmt::format("{}_pad{}d", mode == "edge" ? "replication" : "reflection", axes),
                {c.in(0), script_list(last_first)});
}
TENON_SCRIPT(Tile) { return c.call("repeat", {c.in(0), script_list(c.list(1, ""))}); }
TENON_SCRIPT(DepthToSpace) {
  if (c.node().text("mode", "DCR") != "CRD") throw OnnxUnsupported("its mode is DCR");
  return c.call("pixel_shuffle", {c.in(0), c.integer("blocksize", 1)});
}

}  // namespace
}  // namespace tenon::formats
