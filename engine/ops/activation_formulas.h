#pragma once
#include "engine/op/scalar.h"

// Activations: see Note [Formulas].
namespace tenon {

namespace sc {

// The values of Klambauer, Unterthiner, Mayr and Hochreiter, "Self-normalizing neural networks" (2017), as PyTorch has
// them.
inline constexpr double kSeluAlpha = 1.6732632423543772848170429916717, kSeluScale = 1.0507009873554804934193349852946;

template <class T>
[[gnu::always_inline]] TENON_HD constexpr T mish_slope(T x) {
  T t = tanh(softplus(x));
  return t + x * sigmoid(x) * (T(1) - t * t);
}

template <class T>
[[gnu::always_inline]] TENON_HD inline T clamp6(T x) {
  return select(x < T(0), T(0), select(x > T(6), T(6), x));
}
template <class T>
[[gnu::always_inline]] TENON_HD inline T unit(T x) {
  return select(x < T(0), T(0), select(x > T(1), T(1), x));
}
template <class T>
[[gnu::always_inline]] TENON_HD inline T selu_value(T x) {
  return select(x > T(0), T(kSeluScale) * x, T(kSeluScale * kSeluAlpha) * (exp(x) - T(1)));
}

}  // namespace sc

// name, name in ONNX, forward(x), gradient(g, x, y), values for tests
OP_UNARY(mish, "", x* sc::tanh(sc::softplus(x)), g* sc::mish_slope(x), in(-3, 3))
OP_UNARY(selu, "Selu", sc::selu_value(x),
         sc::select(x > T(0), g* T(sc::kSeluScale), g* T(sc::kSeluScale* sc::kSeluAlpha) * sc::exp(x)),
         apart_from_zero(-2, 2, 0.1))
OP_UNARY(hardswish, "HardSwish", x* sc::clamp6(x + T(3)) / T(6),
         sc::select(x > T(-3), sc::select(x < T(3), g*(x / T(3) + T(0.5)), g), T(0)), in(-2.5, 2.5))
OP_UNARY(softsign, "Softsign", x / (T(1) + sc::abs(x)), g / ((T(1) + sc::abs(x)) * (T(1) + sc::abs(x))),
         apart_from_zero(-2, 2, 0.1))
OP_UNARY(tanhshrink, "", x - sc::tanh(x), g* sc::tanh(x) * sc::tanh(x), in(-2, 2))
OP_UNARY(logsigmoid, "", -sc::softplus(-x), g* sc::sigmoid(-x), in(-3, 3))

// name, name in ONNX, forward(x, a, b), gradient(g, x, a, b), values for tests, a, b, export
OP_PARAMETRIC(elu, "Elu", sc::select(x > T(0), x, a*(sc::exp(x) - T(1))), sc::select(x > T(0), g, g* a* sc::exp(x)),
              apart_from_zero(-2, 2, 0.1), 1.3, 0, o.set("alpha", a))
OP_PARAMETRIC(celu, "Celu", sc::select(x > T(0), x, a*(sc::exp(x / a) - T(1))),
              sc::select(x > T(0), g, g* sc::exp(x / a)), apart_from_zero(-2, 2, 0.1), 1.3, 0, o.set("alpha", a))
OP_PARAMETRIC(leaky_relu, "LeakyRelu", sc::select(x > T(0), x, a* x), sc::select(x > T(0), g, g* a),
              apart_from_zero(-2, 2, 0.1), 0.2, 0, o.set("alpha", a))
OP_PARAMETRIC(hardtanh, "Clip", sc::select(x < a, a, sc::select(x > b, b, x)),
              sc::select(x > a, sc::select(x < b, g, T(0)), T(0)), in(-0.9, 0.6), -1, 0.7, (o.numbers = {a, b}))
OP_PARAMETRIC(hardsigmoid, "HardSigmoid", sc::unit(a* x + b),
              sc::select(a* x + b > T(0), sc::select(a* x + b < T(1), g* a, T(0)), T(0)), in(-2.5, 2.5), 1.0 / 6, 0.5,
              (o.set("alpha", a), o.set("beta", b)))
OP_PARAMETRIC(softplus_beta, "", sc::select(x* a > b, x, sc::softplus(x* a) / a),
              sc::select(x* a > b, g, g* sc::sigmoid(x* a)), in(-2, 2), 1.5, 20, (void)o)
OP_PARAMETRIC(softshrink, "Shrink", sc::select(x > a, x - a, sc::select(x < -a, x + a, x* T(0))),
              sc::select(x > a, g, sc::select(x < -a, g, T(0))), apart_from_zero(-1, 1, 0.4), 0.3, 0,
              (o.set("lambd", a), o.set("bias", a)))
OP_PARAMETRIC(hardshrink, "Shrink", sc::select(x > a, x, sc::select(x < -a, x, x* T(0))),
              sc::select(x > a, g, sc::select(x < -a, g, T(0))), apart_from_zero(-1, 1, 0.4), 0.3, 0, o.set("lambd", a))
OP_PARAMETRIC(threshold, "", sc::select(x <= a, b, x), sc::select(x > a, g, T(0)), apart_from_zero(-1, 1, 0.4), 0.3, 5,
              (void)o)

}  // namespace tenon
