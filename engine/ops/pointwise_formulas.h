#pragma once
#include "engine/op/scalar.h"

// Note [Formulas]
// The one place of what a pointwise op computes and what its gradient is, for every device: the OP_ lines of this file
// are read with the macros of engine/op/pointwise.h, which make them ops of the registry (Note [A pointwise op is one
// line]), and with those of engine/cuda/pointwise.h, which make kernels of them. What a line calls is marked TENON_HD.
namespace tenon {

namespace sc {
template <class T>
[[gnu::always_inline]] TENON_HD constexpr T silu_slope(T x) {
  T s = sigmoid(x);
  return s * (T(1) + x * (T(1) - s));
}
template <class T>
[[gnu::always_inline]] TENON_HD constexpr T gelu_value(T x) {
  return x * T(0.5) * (T(1) + erf(x * T(0.70710678118654752)));
}
template <class T>
[[gnu::always_inline]] TENON_HD constexpr T gelu_slope(T x) {
  return T(0.5) * (T(1) + erf(x * T(0.70710678118654752))) + x * T(0.39894228040143268) * exp(T(-0.5) * x * x);
}
template <class T>
[[gnu::always_inline]] TENON_HD constexpr T gelu_tanh_inner(T x) {
  return T(0.79788456080286536) * (x + T(0.044715) * x * x * x);
}
template <class T>
[[gnu::always_inline]] TENON_HD constexpr T gelu_tanh_slope(T x) {
  T t = tanh(gelu_tanh_inner(x));
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * T(0.79788456080286536) * (T(1) + T(0.134145) * x * x);
}
}  // namespace sc

// name, name in ONNX, forward(x), gradient(g, x, y), values for tests
OP_UNARY_ANY(neg, "Neg", -x, -g, in(-2, 2))
OP_UNARY_ANY(abs, "Abs", sc::abs(x), sc::select(x > T(0), g, sc::select(x < T(0), -g, T(0))),
             apart_from_zero(-2, 2, 0.1))
OP_UNARY_ANY(square, "", x* x, g*(x + x), in(-2, 2))
OP_UNARY_ANY(relu, "Relu", sc::select(x <= T(0), T(0), x), sc::select(y > T(0), g, T(0)), apart_from_zero(-2, 2, 0.1))
OP_UNARY(exp, "Exp", sc::exp(x), g* y, in(-2, 2))
OP_UNARY(log, "Log", sc::log(x), g / x, in(0.2, 3))
OP_UNARY(sqrt, "Sqrt", sc::sqrt(x), g* T(0.5) / y, in(0.2, 3))
OP_UNARY(rsqrt, "", T(1) / sc::sqrt(x), g* T(-0.5) * y * y * y, in(0.2, 3))
OP_UNARY(reciprocal, "Reciprocal", T(1) / x, -g* y* y, apart_from_zero(-2, 2, 0.3))
OP_UNARY(sin, "Sin", sc::sin(x), g* sc::cos(x), in(-3, 3))
OP_UNARY(cos, "Cos", sc::cos(x), -g* sc::sin(x), in(-3, 3))
OP_UNARY(erf, "Erf", sc::erf(x), g* T(1.1283791670955126) * sc::exp(-x * x), in(-2, 2))
OP_UNARY(tanh, "Tanh", sc::tanh(x), g*(T(1) - y * y), in(-4, 4))
OP_UNARY(sigmoid, "Sigmoid", sc::sigmoid(x), g* y*(T(1) - y), in(-4, 4))
OP_UNARY(softplus, "Softplus", sc::softplus(x), g* sc::sigmoid(x), in(-4, 4))

OP_UNARY(silu, "", x* sc::sigmoid(x), g* sc::silu_slope(x), in(-4, 4))
OP_UNARY(gelu, "", sc::gelu_value(x), g* sc::gelu_slope(x), in(-3, 3))
OP_UNARY(gelu_tanh, "", T(0.5) * x * (T(1) + sc::tanh(sc::gelu_tanh_inner(x))), g* sc::gelu_tanh_slope(x), in(-3, 3))

// name, name in ONNX, forward(a, b), gradient of a, gradient of b, values for tests
OP_BINARY(add, "Add", T(a + b), g, g, in(-2, 2))
OP_BINARY(sub, "Sub", T(a - b), g, -g, in(-2, 2))
OP_BINARY(mul, "Mul", T(a* b), g* b, g* a, in(-2, 2))
OP_BINARY_FLOAT(div, "Div", a / b, g / b, -g* y / b, apart_from_zero(-2, 2, 0.4))
OP_BINARY(pow, "Pow", sc::pow(a, b), sc::select(b == T(0), T(0), g* b* sc::pow(a, b - T(1))),
          sc::select(a == T(0), T(0), g* y* sc::log(a)), in(0.5, 2))
OP_BINARY(maximum, "Max", sc::select(a > b, a, sc::select(a == a, b, a)),
          sc::select(a > b, g, sc::select(a == b, g* T(0.5), T(0))),
          sc::select(b > a, g, sc::select(a == b, g* T(0.5), T(0))), in(-2, 2))
OP_BINARY(minimum, "Min", sc::select(a < b, a, sc::select(a == a, b, a)),
          sc::select(a < b, g, sc::select(a == b, g* T(0.5), T(0))),
          sc::select(b < a, g, sc::select(a == b, g* T(0.5), T(0))), in(-2, 2))

OP_COMPARE(eq, "Equal", a == b)
OP_COMPARE(ne, "", a != b)
OP_COMPARE(lt, "Less", a < b)
OP_COMPARE(le, "LessOrEqual", a <= b)
OP_COMPARE(gt, "Greater", a > b)
OP_COMPARE(ge, "GreaterOrEqual", a >= b)

}  // namespace tenon
