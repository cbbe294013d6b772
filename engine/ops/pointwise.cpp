#include "engine/op/pointwise.h"

#include <fmt/format.h>

#include "core/error.h"
#include "engine/ops/view.h"

namespace tenon {

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

namespace {
template <class T>
[[gnu::always_inline]] constexpr T silu_slope(T x) {
  T s = sc::sigmoid(x);
  return s * (T(1) + x * (T(1) - s));
}
template <class T>
[[gnu::always_inline]] constexpr T gelu_value(T x) {
  return x * T(0.5) * (T(1) + sc::erf(x * T(0.70710678118654752)));
}
template <class T>
[[gnu::always_inline]] constexpr T gelu_slope(T x) {
  return T(0.5) * (T(1) + sc::erf(x * T(0.70710678118654752))) + x * T(0.39894228040143268) * sc::exp(T(-0.5) * x * x);
}
template <class T>
[[gnu::always_inline]] constexpr T gelu_tanh_inner(T x) {
  return T(0.79788456080286536) * (x + T(0.044715) * x * x * x);
}
template <class T>
[[gnu::always_inline]] constexpr T gelu_tanh_slope(T x) {
  T t = sc::tanh(gelu_tanh_inner(x));
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * T(0.79788456080286536) * (T(1) + T(0.134145) * x * x);
}
}  // namespace

OP_UNARY(silu, "", x* sc::sigmoid(x), g* silu_slope(x), in(-4, 4))
OP_UNARY(gelu, "", gelu_value(x), g* gelu_slope(x), in(-3, 3))
OP_UNARY(gelu_tanh, "", T(0.5) * x * (T(1) + sc::tanh(gelu_tanh_inner(x))), g* gelu_tanh_slope(x), in(-3, 3))
OP_BY_FORMULA(square)
OP_BY_FORMULA(rsqrt)
OP_BY_FORMULA(silu)
OP_BY_FORMULA(gelu)
OP_BY_FORMULA(gelu_tanh)

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

namespace {

struct Where {
  static constexpr OpInfo info{"where", "Where", OpKind::pointwise};
  static constexpr Saves saves{0b001, 0};
  static Meta infer(const NoAttrs&, const Meta& c, const Meta& a, const Meta& b) {
    if (c.dtype != DType::boolean)
      throw Error(fmt::format("the condition must be bool, not {}", name(c.dtype)), "compare it: ne(c, 0)");
    Meta m;
    m.dtype = result_type(a, b);
    m.shape = broadcast_shape(c.shape, broadcast_shape(a.shape, b.shape));
    return m;
  }
  template <class T>
  static void loop(char* const* d, const int64_t* s, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      bool c = *reinterpret_cast<const T*>(d[1] + i * s[1]) != T(0);
      T a = *reinterpret_cast<const T*>(d[2] + i * s[2]), b = *reinterpret_cast<const T*>(d[3] + i * s[3]);
      *reinterpret_cast<T*>(d[0] + i * s[0]) = c ? a : b;
    }
  }
  static void cpu(const Call& c) {
    DType t = compute_type(c.out[0].dtype());
    InnerLoop l = t == DType::f32   ? loop<float>
                  : t == DType::f64 ? loop<double>
                  : t == DType::i32 ? loop<int32_t>
                                    : loop<int64_t>;
    strided_loop(c.out[0], c.in, 3, t, t, l);
  }
  static void backward(Grad& d) {
    Tensor zero = scalar_like(0, d.out());
    if (d.needs(1)) d.in(1) = where(d.x(0), d.out(), zero);
    if (d.needs(2)) d.in(2) = where(d.x(0), zero, d.out());
  }
  static void samples(Samples& s) {
    s.add("matrix", NoAttrs{}, {s.values({3, 4}, {}, DType::boolean), s.values({3, 4}), s.values({3, 4})});
    s.add("broadcast", NoAttrs{}, {s.values({3, 1}, {}, DType::boolean), s.values({4}), s.values({})});
  }
};
const Register<Where> where_op;

}  // namespace

Tensor where(const Tensor& c, const Tensor& a, const Tensor& b) { return apply<Where>({}, c, a, b); }

}  // namespace tenon
