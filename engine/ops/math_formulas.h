#pragma once
#include "engine/ops/math_functions.h"

// Elementary and special functions beyond those of pointwise_formulas.h: see Note [Formulas].
namespace tenon {

namespace sc {
// (cos(pi x) - sinc(x)) / x; 0 at 0, where the quotient has no digits.
template <class T>
[[gnu::always_inline]] TENON_HD constexpr T sinc_slope(T x) {
  return select(
      x == T(0), T(0),
      (cos(x * T(3.14159265358979323846)) - sin(x * T(3.14159265358979323846)) / (x * T(3.14159265358979323846))) / x);
}
}  // namespace sc

// name, name in ONNX, forward(x), gradient(g, x, y), values for tests
OP_UNARY_ANY(sign, "Sign", sc::sign(x), g* T(0), apart_from_zero(-2, 2, 0.1))
OP_UNARY_ANY(floor, "Floor", sc::floor(x), g* T(0), in(0.1, 0.9))
OP_UNARY_ANY(ceil, "Ceil", sc::ceil(x), g* T(0), in(0.1, 0.9))
OP_UNARY_ANY(round, "Round", sc::round(x), g* T(0), in(0.6, 1.4))
// Its gradient takes it for a straight line between the ends, where finite differences see stairs: they hold outside.
OP_PARAMETRIC(straight_round, "", sc::select(sc::round(x) < a, a, sc::select(sc::round(x) > b, b, sc::round(x))),
              sc::select(x >= a - T(0.5), sc::select(x <= b + T(0.5), g, T(0)), T(0)), in(2, 3), -1, 1, (void)o)
OP_UNARY_ANY(trunc, "", sc::trunc(x), g* T(0), in(0.1, 0.9))
OP_UNARY(frac, "", x - sc::trunc(x), g, in(0.1, 0.9))
OP_UNARY(exp2, "", sc::exp2(x), g* y* T(0.69314718055994531), in(-2, 2))
OP_UNARY(expm1, "", sc::expm1(x), g*(y + T(1)), in(-2, 2))
OP_UNARY(log2, "", sc::log2(x), g / (x * T(0.69314718055994531)), in(0.2, 3))
OP_UNARY(log10, "", sc::log10(x), g / (x * T(2.3025850929940457)), in(0.2, 3))
OP_UNARY(log1p, "", sc::log1p(x), g / (x + T(1)), in(-0.5, 3))
OP_UNARY(logit, "", sc::log(x / (T(1) - x)), g / (x * (T(1) - x)), in(0.1, 0.9))
OP_UNARY(tan, "Tan", sc::tan(x), g*(T(1) + y * y), in(-1, 1))
OP_UNARY(asin, "Asin", sc::asin(x), g / sc::sqrt(T(1) - x * x), in(-0.8, 0.8))
OP_UNARY(acos, "Acos", sc::acos(x), -g / sc::sqrt(T(1) - x * x), in(-0.8, 0.8))
OP_UNARY(atan, "Atan", sc::atan(x), g / (T(1) + x * x), in(-2, 2))
OP_UNARY(sinh, "Sinh", sc::sinh(x), g* sc::cosh(x), in(-2, 2))
OP_UNARY(cosh, "Cosh", sc::cosh(x), g* sc::sinh(x), in(-2, 2))
OP_UNARY(asinh, "Asinh", sc::asinh(x), g / sc::sqrt(x * x + T(1)), in(-2, 2))
OP_UNARY(acosh, "Acosh", sc::acosh(x), g / sc::sqrt(x * x - T(1)), in(1.3, 3))
OP_UNARY(atanh, "Atanh", sc::atanh(x), g / (T(1) - x * x), in(-0.8, 0.8))
OP_UNARY(erfc, "", sc::erfc(x), g* T(-1.1283791670955126) * sc::exp(-x * x), in(-2, 2))
OP_UNARY(erfinv, "", sc::erfinv(x), g* T(0.88622692545275801) * sc::exp(y * y), in(-0.8, 0.8))
OP_UNARY(lgamma, "", sc::lgamma(x), g* sc::digamma(x), in(0.5, 4))
OP_UNARY(deg2rad, "", x* T(0.017453292519943295), g* T(0.017453292519943295), in(-180, 180))
OP_UNARY(rad2deg, "", x* T(57.295779513082321), g* T(57.295779513082321), in(-3, 3))

OP_UNARY(sinc, "", sc::sinc(x), g* sc::sinc_slope(x), apart_from_zero(-2, 2, 0.3))

// name, name in ONNX, forward(a, b), gradient of a, gradient of b, values for tests
OP_BINARY(remainder, "", sc::remainder(a, b), g, -g* sc::floor(a / b), in(0.6, 0.9))
OP_BINARY(fmod, "", sc::fmod(a, b), g, -g* sc::trunc(a / b), in(0.6, 0.9))
OP_BINARY_FLOAT(atan2, "", sc::atan2(a, b), g* b / (a * a + b * b), -g* a / (a * a + b * b),
                apart_from_zero(-2, 2, 0.3))
OP_BINARY_FLOAT(hypot, "", sc::hypot(a, b), g* a / y, g* b / y, apart_from_zero(-2, 2, 0.3))
OP_BINARY_FLOAT(logaddexp, "", sc::logaddexp(a, b), g* sc::exp(a - y), g* sc::exp(b - y), in(-2, 2))
OP_BINARY_FLOAT(xlogy, "", sc::xlogy(a, b), sc::select(a == T(0), T(0), g* sc::log(b)), g* a / b, in(0.3, 2))
OP_BINARY_FLOAT(copysign, "", sc::copysign(a, b), sc::select(a == T(0), T(0), g* y / a), T(0) * g,
                apart_from_zero(-2, 2, 0.3))

OP_COMPARE(logical_and, "And", (a != T(0)) & (b != T(0)))
OP_COMPARE(logical_or, "Or", (a != T(0)) | (b != T(0)))
OP_COMPARE(logical_xor, "Xor", (a != T(0)) != (b != T(0)))

OP_BITS(bitwise_and, "BitwiseAnd", a& b)
OP_BITS(bitwise_or, "BitwiseOr", a | b)
OP_BITS(bitwise_xor, "BitwiseXor", a ^ b)
OP_BITS(bitwise_left_shift, "", sc::shift_left(a, b))
OP_BITS(bitwise_right_shift, "", sc::shift_right(a, b))
OP_BITS(gcd, "", sc::gcd(a, b))
OP_BITS(lcm, "", sc::lcm(a, b))

OP_TEST(isnan, "IsNaN", x != x)
OP_TEST(isinf, "IsInf", sc::abs(x) == std::numeric_limits<T>::infinity() && std::numeric_limits<T>::has_infinity)
OP_TEST(isfinite, "", x - x == T(0))
OP_TEST(logical_not, "", x == T(0))

}  // namespace tenon
