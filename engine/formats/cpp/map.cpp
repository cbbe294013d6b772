// C++ kernels that make each element of a result of the elements at its place.
#include <cmath>

#include "engine/formats/cpp/kernel.h"
#include "engine/formats/onnx/run.h"

namespace tenon::formats {
namespace {

TENON_CPP_MAP(Abs, "a < 0 ? -a : a");
TENON_CPP_MAP(Neg, "-a");
TENON_CPP_MAP(Sign, "a > 0 ? 1 : a < 0 ? -1 : a");
TENON_CPP_MAP(Not, "!a");
TENON_CPP_MAP(IsNaN, "a != a");
TENON_CPP_MAP(Floor, "std::floor(a)");
TENON_CPP_MAP(Ceil, "std::ceil(a)");
TENON_CPP_MAP(Round, "std::nearbyint(a)");
TENON_CPP_MAP(Reciprocal, "1 / a");
TENON_CPP_MAP(Sqrt, "std::sqrt(a)");
TENON_CPP_MAP(Exp, "std::exp(a)");
TENON_CPP_MAP(Log, "std::log(a)");
TENON_CPP_MAP(Erf, "std::erf(a)");
TENON_CPP_MAP(Sin, "std::sin(a)");
TENON_CPP_MAP(Cos, "std::cos(a)");
TENON_CPP_MAP(Tan, "std::tan(a)");
TENON_CPP_MAP(Asin, "std::asin(a)");
TENON_CPP_MAP(Acos, "std::acos(a)");
TENON_CPP_MAP(Atan, "std::atan(a)");
TENON_CPP_MAP(Sinh, "std::sinh(a)");
TENON_CPP_MAP(Cosh, "std::cosh(a)");
TENON_CPP_MAP(Tanh, "std::tanh(a)");
TENON_CPP_MAP(Asinh, "std::asinh(a)");
TENON_CPP_MAP(Acosh, "std::acosh(a)");
TENON_CPP_MAP(Atanh, "std::atanh(a)");

// What is no number stays so: a comparison with it is false.
TENON_CPP_MAP(Relu, "a < 0 ? 0 : a");
TENON_CPP_MAP(Sigmoid, "1 / (1 + std::exp(-a))");
TENON_CPP_MAP(Softplus, "std::log1p(std::exp(a < 0 ? a : -a)) + (a < 0 ? 0 : a)");
TENON_CPP_MAP(Softsign, "a / (1 + (a < 0 ? -a : a))");
TENON_CPP_MAP(HardSwish, "a * (a <= -3 ? 0 : a >= 3 ? 1 : (a + 3) / 6)");
TENON_CPP_MAP(Mish, "a * std::tanh(std::log1p(std::exp(a < 0 ? a : -a)) + (a < 0 ? 0 : a))");

TENON_CPP_MAP(Add, "a + b");
TENON_CPP_MAP(Sub, "a - b");
TENON_CPP_MAP(Mul, "a * b");
TENON_CPP_MAP(Div, "a / b");
TENON_CPP_MAP(PRelu, "a < 0 ? a * b : a");
TENON_CPP_MAP(Equal, "a == b");
TENON_CPP_MAP(Less, "a < b");
TENON_CPP_MAP(LessOrEqual, "a <= b");
TENON_CPP_MAP(Greater, "a > b");
TENON_CPP_MAP(GreaterOrEqual, "a >= b");
TENON_CPP_MAP(And, "a && b");
TENON_CPP_MAP(Or, "a || b");
TENON_CPP_MAP(Xor, "a != b");
TENON_CPP_MAP(Where, "a ? b : c");

std::string attribute_number(CppCall& c, const char* name, double fallback) {
  return cpp_number(c.node().number(name, fallback), c.out().dtype);
}
TENON_CPP_MAP(Elu, "a < 0 ? " + attribute_number(c, "alpha", 1) + " * std::expm1(a) : a");
TENON_CPP_MAP(Celu, "a < 0 ? " + attribute_number(c, "alpha", 1) + " * std::expm1(a / " +
                        attribute_number(c, "alpha", 1) + ") : a");
TENON_CPP_MAP(Selu, attribute_number(c, "gamma", 1.0507009873554805) + " * (a < 0 ? " +
                        attribute_number(c, "alpha", 1.6732632423543772) + " * std::expm1(a) : a)");
TENON_CPP_MAP(LeakyRelu, "a < 0 ? a * " + attribute_number(c, "alpha", 0.01) + " : a");
TENON_CPP_MAP(ThresholdedRelu, "a > " + attribute_number(c, "alpha", 1) + " ? a : 0");

std::string hard_sigmoid(CppCall& c) {
  const std::string line = "a * " + attribute_number(c, "alpha", 0.2) + " + " + attribute_number(c, "beta", 0.5);
  return c.map(fmt::format("({0}) < 0 ? 0 : ({0}) > 1 ? 1 : {0}", line));
}
std::string shrink(CppCall& c) {
  const std::string edge = attribute_number(c, "lambd", 0.5), step = attribute_number(c, "bias", 0);
  return c.map(fmt::format("a < -{0} ? a + {1} : a > {0} ? a - {1} : a != a ? a : 0", edge, step));
}
std::string gelu(CppCall& c) {
  return c.map(c.node().text("approximate", "none") == "tanh"
                   ? "a / 2 * (1 + std::tanh(0.7978845608f * (a + 0.044715f * a * a * a)))"
                   : "a / 2 * (1 + std::erf(a * 0.7071067812f))");
}
std::string clip(CppCall& c) {
  std::string y = "a";
  if (c.opset() < 11) {
    if (c.node().find("min")) y = fmt::format("a < {0} ? {0} : a", attribute_number(c, "min", 0));
    if (c.node().find("max")) y = fmt::format("a > {0} ? {0} : {1}", attribute_number(c, "max", 0), y);
    return c.map(y);
  }
  if (c.has(1)) y = "(a < b ? b : a)";
  if (c.has(2)) y = fmt::format("{0} > c ? c : {0}", y);
  return c.map(y);
}
std::string power(CppCall& c) {
  const StaticValue& exponent = c.in(1);
  if (exponent.constant && exponent.shape.product() == 1 && c.number(1) == 2) return c.map("a * a");
  return c.map("std::pow(a, b)");
}
std::string modulo(CppCall& c) {
  if (is_floating(c.out().dtype)) return c.map("std::fmod(a, b)");
  return c.map(c.node().integer("fmod", 0) ? "a % b" : "(a % b + b) % b");
}
/// Of any number of inputs, from the left.
std::string folded(CppCall& c, const char* pair) {
  std::string y = "a";
  for (size_t i = 1; i < c.inputs(); ++i) y = fmt::format(fmt::runtime(pair), y, static_cast<char>('a' + i));
  return c.map(y);
}
std::string greatest(CppCall& c) { return folded(c, "({0} < {1} ? {1} : {0})"); }
std::string least(CppCall& c) { return folded(c, "({0} > {1} ? {1} : {0})"); }
std::string total(CppCall& c) { return folded(c, "{0} + {1}"); }

std::string convert(CppCall& c) {
  const bool from_bool = c.in(0).dtype == DType::boolean, to_bool = c.out().dtype == DType::boolean;
  return c.map(to_bool && !from_bool ? "a != 0" : fmt::format("static_cast<{}>(a)", cpp_type(c.out().dtype)));
}

const bool registered_maps[] = {
    register_cpp({"HardSigmoid", hard_sigmoid, true}),
    register_cpp({"Gelu", gelu, true}),
    register_cpp({"Shrink", shrink, true}),
    register_cpp({"Clip", clip, true}),
    register_cpp({"Pow", power, true}),
    register_cpp({"Mod", modulo, true}),
    register_cpp({"Max", greatest, true}),
    register_cpp({"Min", least, true}),
    register_cpp({"Sum", total, true}),
    register_cpp({"Cast", convert, true}),
};

}  // namespace
}  // namespace tenon::formats
