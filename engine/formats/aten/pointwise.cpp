// Operators of PyTorch that make element of element.
#include <algorithm>
#include <cmath>

#include "engine/formats/aten/rule.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// Those that mean the same under another name. Whole numbers become fractions first, as they do there.
bool same_in_onnx(const char* op, const char* type, bool of_fractions) {
  return register_aten(op, [type, of_fractions](AtenCall& c) {
    const DType t = c.dtype("self");
    const std::string x = of_fractions && !is_floating(t) ? c.cast_to(c.in("self"), t, DType::f32) : c.in("self");
    c.result(c.add(type, {x}));
  });
}
const bool converted_by_name[] = {same_in_onnx("abs", "Abs", false),
                                  same_in_onnx("neg", "Neg", false),
                                  same_in_onnx("sign", "Sign", false),
                                  same_in_onnx("relu", "Relu", false),
                                  same_in_onnx("ceil", "Ceil", true),
                                  same_in_onnx("floor", "Floor", true),
                                  same_in_onnx("round", "Round", true),
                                  same_in_onnx("acos", "Acos", true),
                                  same_in_onnx("acosh", "Acosh", true),
                                  same_in_onnx("asin", "Asin", true),
                                  same_in_onnx("asinh", "Asinh", true),
                                  same_in_onnx("atan", "Atan", true),
                                  same_in_onnx("atanh", "Atanh", true),
                                  same_in_onnx("cos", "Cos", true),
                                  same_in_onnx("cosh", "Cosh", true),
                                  same_in_onnx("erf", "Erf", true),
                                  same_in_onnx("exp", "Exp", true),
                                  same_in_onnx("log", "Log", true),
                                  same_in_onnx("reciprocal", "Reciprocal", true),
                                  same_in_onnx("sigmoid", "Sigmoid", true),
                                  same_in_onnx("sin", "Sin", true),
                                  same_in_onnx("sinh", "Sinh", true),
                                  same_in_onnx("sqrt", "Sqrt", true),
                                  same_in_onnx("tan", "Tan", true),
                                  same_in_onnx("tanh", "Tanh", true),
                                  same_in_onnx("mish", "Mish", true),
                                  same_in_onnx("hardswish", "HardSwish", true),
                                  same_in_onnx("selu", "Selu", true),
                                  same_in_onnx("isnan", "IsNaN", true)};

std::string as_fractions(AtenCall& c) {
  const DType t = c.dtype("self");
  return c.cast_to(c.in("self"), t, is_floating(t) ? t : DType::f32);
}
DType fraction_type(const AtenCall& c) { return is_floating(c.dtype("self")) ? c.dtype("self") : DType::f32; }

TENON_ATEN(log1p) { c.result(c.add("Log", {c.add("Add", {as_fractions(c), c.scalar_of(1, fraction_type(c))})})); }
TENON_ATEN(expm1) { c.result(c.add("Sub", {c.add("Exp", {as_fractions(c)}), c.scalar_of(1, fraction_type(c))})); }
TENON_ATEN(log2) {
  c.result(c.add("Mul", {c.add("Log", {as_fractions(c)}), c.scalar_of(1 / std::log(2.0), fraction_type(c))}));
}
TENON_ATEN(rsqrt) { c.result(c.add("Reciprocal", {c.add("Sqrt", {as_fractions(c)})})); }
TENON_ATEN(square) { c.result(c.add("Mul", {c.in("self"), c.in("self")})); }
TENON_ATEN(trunc) {
  const std::string x = c.in("self");
  c.result(c.add("Mul", {c.add("Sign", {x}), c.add("Floor", {c.add("Abs", {x})})}));
}
TENON_ATEN(logical_not) { c.result(c.add("Not", {c.operand("self", DType::boolean)})); }
TENON_ATEN(bitwise_not) {
  if (c.dtype("self") != DType::boolean) c.refuse("it is of bits of numbers");
  c.result(c.add("Not", {c.in("self")}));
}

// Activations.

std::string clipped(AtenCall& c, double low, double high) {
  const DType t = c.dtype("self");
  return c.add("Clip", {c.in("self"), c.scalar_of(low, t), c.scalar_of(high, t)});
}
TENON_ATEN(relu6) { c.result(clipped(c, 0, 6)); }
TENON_ATEN(hardtanh) { c.result(clipped(c, c.number("min_val"), c.number("max_val"))); }
TENON_ATEN(hardsigmoid) { c.result(c.add("HardSigmoid", {c.in("self")}, {{"alpha", 1.0 / 6}, {"beta", 0.5}})); }
TENON_ATEN(silu) {
  const std::string x = c.in("self");
  c.result(c.add("Mul", {x, c.add("Sigmoid", {x})}));
}
TENON_ATEN(log_sigmoid) { c.result(c.add("Neg", {c.add("Softplus", {c.add("Neg", {c.in("self")})})})); }
TENON_ATEN(softplus) {
  const double beta = c.number("beta");
  std::string x = c.in("self");
  if (beta == 1) return c.result(c.add("Softplus", {x}));
  const std::string factor = c.scalar_of(beta, c.dtype("self"));
  c.result(c.add("Div", {c.add("Softplus", {c.add("Mul", {x, factor})}), factor}));
}
TENON_ATEN(elu) {
  // scale (x, or alpha (exp(inner x) - 1) below 0): Elu of inner x, which is scaled once more.
  const double inner = c.number("input_scale"), outer = c.number("scale") / inner;
  const DType t = c.dtype("self");
  std::string x = c.in("self");
  if (!(inner > 0)) c.refuse(fmt::format("it scales its input by {}", inner));
  if (inner != 1) x = c.add("Mul", {x, c.scalar_of(inner, t)});
  x = c.add("Elu", {x}, {{"alpha", c.number("alpha") * inner}});
  c.result(outer == 1 ? x : c.add("Mul", {x, c.scalar_of(outer, t)}));
}
TENON_ATEN(celu) { c.result(c.add("Celu", {c.in("self")}, {{"alpha", c.number("alpha")}})); }
TENON_ATEN(leaky_relu) { c.result(c.add("LeakyRelu", {c.in("self")}, {{"alpha", c.number("negative_slope")}})); }
TENON_ATEN(threshold) {
  const DType t = c.dtype("self");
  const std::string above = c.add("Greater", {c.in("self"), c.scalar_of(c.number("threshold"), t)});
  c.result(c.add("Where", {above, c.in("self"), c.scalar_of(c.number("value"), t)}));
}
TENON_ATEN(hardshrink) { c.result(c.add("Shrink", {c.in("self")}, {{"lambd", c.number("lambd")}, {"bias", 0.0}})); }
TENON_ATEN(softshrink) {
  c.result(c.add("Shrink", {c.in("self")}, {{"lambd", c.number("lambd")}, {"bias", c.number("lambd")}}));
}
TENON_ATEN(gelu) { c.result(c.add("Gelu", {c.in("self")}, {{"approximate", c.text("approximate")}})); }
TENON_ATEN(glu) {
  const int64_t axis = c.axis("self", c.integer("dim")), n = c.size("self", axis);
  const auto halves = c.adds("Split", {c.in("self"), c.whole(AtenInts{n / 2, n / 2})}, {{"axis", axis}}, 2);
  c.result(c.add("Mul", {halves[0], c.add("Sigmoid", {halves[1]})}));
}
TENON_ATEN(prelu) {
  std::string slope = c.in("weight");
  const int64_t n = c.size("weight", 0), axes = c.rank("self");
  if (n > 1 && axes > 2) {
    AtenInts to(static_cast<size_t>(axes - 1), 1);
    to[0] = n;
    slope = c.add("Reshape", {slope, c.whole(to)});
  }
  c.result(c.add("PRelu", {c.in("self"), slope}));
}

// Two operands.

std::string scaled_operand(AtenCall& c, const char* name, DType t) {
  std::string y = c.operand(name, t);
  if (c.knows("alpha") && c.number("alpha") != 1) y = c.add("Mul", {y, c.scalar_of(c.number("alpha"), t)});
  return y;
}
TENON_ATEN(add) {
  const DType t = c.common("self", "other");
  c.result(c.add("Add", {c.operand("self", t), scaled_operand(c, "other", t)}));
}
TENON_ATEN(sub) {
  const DType t = c.common("self", "other");
  c.result(c.add("Sub", {c.operand("self", t), scaled_operand(c, "other", t)}));
}
TENON_ATEN(rsub) {
  const DType t = c.common("self", "other");
  c.result(c.add("Sub", {c.operand("other", t), scaled_operand(c, "self", t)}));
}
TENON_ATEN(mul) {
  const DType t = c.common("self", "other");
  if (t == DType::boolean) return c.result(c.add("And", {c.operand("self", t), c.operand("other", t)}));
  c.result(c.add("Mul", {c.operand("self", t), c.operand("other", t)}));
}
/// `towards`: "" divides, "floor" and "trunc" make whole numbers of it.
std::string quotient(AtenCall& c, const std::string& towards) {
  const DType t = c.common("self", "other");
  if (towards.empty() || is_floating(t)) {
    const DType work = is_floating(t) ? t : DType::f32;
    const std::string y = c.add("Div", {c.operand("self", work), c.operand("other", work)});
    if (towards.empty()) return y;
    if (towards == "floor") return c.add("Floor", {y});
    return c.add("Mul", {c.add("Sign", {y}), c.add("Floor", {c.add("Abs", {y})})});
  }
  if (towards == "trunc") return c.add("Div", {c.operand("self", t), c.operand("other", t)});
  const std::string y = c.add("Div", {c.operand("self", DType::f64), c.operand("other", DType::f64)});
  return c.cast_to(c.add("Floor", {y}), DType::f64, t);
}
TENON_ATEN(div) {
  c.result(quotient(c, c.knows("rounding_mode") && c.has("rounding_mode") ? c.text("rounding_mode") : ""));
}
TENON_ATEN(true_divide) { c.result(quotient(c, "")); }
TENON_ATEN(floor_divide) { c.result(quotient(c, "floor")); }
TENON_ATEN(pow) {
  const DType t = c.common("self", "exponent");
  c.result(c.add("Pow", {c.operand("self", t), c.operand("exponent", t)}));
}
TENON_ATEN(fmod) {
  const DType t = c.common("self", "other");
  c.result(c.add("Mod", {c.operand("self", t), c.operand("other", t)}, {{"fmod", int64_t{1}}}));
}
TENON_ATEN(remainder) {
  const DType t = c.common("self", "other");
  const std::string x = c.operand("self", t), y = c.operand("other", t);
  if (!is_floating(t)) return c.result(c.add("Mod", {x, y}));
  c.result(c.add("Sub", {x, c.add("Mul", {c.add("Floor", {c.add("Div", {x, y})}), y})}));
}
TENON_ATEN(maximum) {
  const DType t = c.common("self", "other");
  c.result(c.add("Max", {c.operand("self", t), c.operand("other", t)}));
}
TENON_ATEN(minimum) {
  const DType t = c.common("self", "other");
  c.result(c.add("Min", {c.operand("self", t), c.operand("other", t)}));
}
TENON_ATEN(addcmul) {
  const DType t = c.dtype("self");
  std::string y = c.add("Mul", {c.in("tensor1"), c.in("tensor2")});
  if (c.number("value") != 1) y = c.add("Mul", {y, c.scalar_of(c.number("value"), t)});
  c.result(c.add("Add", {c.in("self"), y}));
}
TENON_ATEN(lerp) {
  const std::string way = c.add("Sub", {c.in("end"), c.in("self")});
  c.result(c.add("Add", {c.in("self"), c.add("Mul", {way, c.operand("weight", c.dtype("self"))})}));
}

bool compares(const char* op, const char* type, bool opposite = false) {
  return register_aten(op, [type, opposite](AtenCall& c) {
    const DType t = c.common("self", "other");
    const std::string y = c.add(type, {c.operand("self", t), c.operand("other", t)});
    c.result(opposite ? c.add("Not", {y}) : y);
  });
}
const bool converted_comparisons[] = {compares("eq", "Equal"),   compares("ne", "Equal", true),
                                      compares("lt", "Less"),    compares("le", "LessOrEqual"),
                                      compares("gt", "Greater"), compares("ge", "GreaterOrEqual")};

bool of_truths(const char* op, const char* type, bool bits) {
  return register_aten(op, [type, bits](AtenCall& c) {
    if (bits && (c.dtype("self") != DType::boolean || c.dtype("other") != DType::boolean))
      c.refuse("it is of bits of numbers");
    c.result(c.add(type, {c.operand("self", DType::boolean), c.operand("other", DType::boolean)}));
  });
}
const bool converted_truths[] = {of_truths("logical_and", "And", false), of_truths("logical_or", "Or", false),
                                 of_truths("logical_xor", "Xor", false), of_truths("bitwise_and", "And", true),
                                 of_truths("bitwise_or", "Or", true)};

/// An operand of where; a tensor of one number that is as large as the other is that number.
std::string chosen_operand(AtenCall& c, const char* name, const char* other, DType t) {
  if (!c.is_tensor(name) || !c.is_tensor(other) || c.tensor_names(other).at(0) == c.tensor_names(name).at(0))
    return c.operand(name, t);
  const auto number = c.filled(c.tensor_names(name).at(0));
  const std::vector<OnnxDim>&own = c.shape(name), &its = c.shape(other);
  const bool alike = std::equal(own.begin(), own.end(), its.begin(), its.end(), [](const OnnxDim& a, const OnnxDim& b) {
    return a.value == b.value && a.name == b.name;
  });
  return number && alike && !c.filled(c.tensor_names(other).at(0)) ? c.scalar_of(*number, t) : c.operand(name, t);
}
TENON_ATEN(where) {
  const DType t = c.common("self", "other");
  c.result(c.add("Where", {c.operand("condition", DType::boolean), chosen_operand(c, "self", "other", t),
                           chosen_operand(c, "other", "self", t)}));
}
TENON_ATEN(masked_fill) {
  const DType t = c.dtype("self");
  c.result(c.add("Where", {c.in("mask"), c.operand("value", t), c.in("self")}));
}
std::string bounded(AtenCall& c, const char* low, const char* high) {
  DType t = c.dtype("self");
  for (const char* bound : {low, high})
    if (*bound && c.has(bound)) t = promote(t, c.common("self", bound));
  std::string y = c.operand("self", t);
  const bool tensors = (*low && c.has(low) && c.is_tensor(low)) || (*high && c.has(high) && c.is_tensor(high));
  const auto bound = [&](const char* name) { return *name && c.has(name) ? c.operand(name, t) : std::string(); };
  const std::string from = bound(low), to = bound(high);
  if (!tensors) return c.add("Clip", {y, from, to});
  if (!from.empty()) y = c.add("Max", {y, from});
  return to.empty() ? y : c.add("Min", {y, to});
}
TENON_ATEN(clamp) { c.result(bounded(c, "min", "max")); }
TENON_ATEN(clamp_min) { c.result(bounded(c, "min", "")); }
TENON_ATEN(clamp_max) { c.result(bounded(c, "", "max")); }

}  // namespace
}  // namespace tenon::formats
