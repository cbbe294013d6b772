#pragma once
#include "core/tensor.h"
#include "engine/ops/create.h"

// Element by element, with broadcasting and PyTorch's type promotion. Results keep the memory order of their first
// full-size dense operand. The forms with a trailing underscore write into their first operand. Formulas and gradients:
// pointwise.cpp.
namespace tenon {

#define TENON_DECLARE_BINARY(NAME)               \
  Tensor NAME(const Tensor& a, const Tensor& b); \
  Tensor NAME(const Tensor& a, double b);        \
  Tensor& NAME##_(Tensor& a, const Tensor& b);   \
  Tensor& NAME##_(Tensor& a, double b);          \
  Tensor& NAME##_out(Tensor& out, const Tensor& a, const Tensor& b);
TENON_DECLARE_BINARY(add)
TENON_DECLARE_BINARY(sub)
TENON_DECLARE_BINARY(mul)
TENON_DECLARE_BINARY(div)  // true division: integers become f32
TENON_DECLARE_BINARY(pow)
TENON_DECLARE_BINARY(maximum)  // NaN wins; equal operands share the gradient
TENON_DECLARE_BINARY(minimum)
TENON_DECLARE_BINARY(remainder)  // of the sign of b, as Python's %
TENON_DECLARE_BINARY(fmod)       // of the sign of a, as C's
TENON_DECLARE_BINARY(atan2)
TENON_DECLARE_BINARY(hypot)
TENON_DECLARE_BINARY(logaddexp)
TENON_DECLARE_BINARY(xlogy)  // a log b, 0 where a is 0
TENON_DECLARE_BINARY(copysign)
#undef TENON_DECLARE_BINARY

#define TENON_DECLARE_COMPARE(NAME)              \
  Tensor NAME(const Tensor& a, const Tensor& b); \
  Tensor NAME(const Tensor& a, double b);
TENON_DECLARE_COMPARE(eq)
TENON_DECLARE_COMPARE(ne)
TENON_DECLARE_COMPARE(lt)
TENON_DECLARE_COMPARE(le)
TENON_DECLARE_COMPARE(gt)
TENON_DECLARE_COMPARE(ge)
TENON_DECLARE_COMPARE(logical_and)  // what is not 0 counts as true
TENON_DECLARE_COMPARE(logical_or)
TENON_DECLARE_COMPARE(logical_xor)
// whole numbers and bool
TENON_DECLARE_COMPARE(bitwise_and)
TENON_DECLARE_COMPARE(bitwise_or)
TENON_DECLARE_COMPARE(bitwise_xor)
TENON_DECLARE_COMPARE(bitwise_left_shift)
TENON_DECLARE_COMPARE(bitwise_right_shift)
TENON_DECLARE_COMPARE(gcd)
TENON_DECLARE_COMPARE(lcm)
#undef TENON_DECLARE_COMPARE

#define TENON_DECLARE_UNARY(NAME) \
  Tensor NAME(const Tensor& x);   \
  Tensor& NAME##_(Tensor& x);     \
  Tensor& NAME##_out(Tensor& out, const Tensor& x);
TENON_DECLARE_UNARY(neg)
TENON_DECLARE_UNARY(abs)  // gradient at 0 is 0
TENON_DECLARE_UNARY(square)
TENON_DECLARE_UNARY(sign)
TENON_DECLARE_UNARY(floor)
TENON_DECLARE_UNARY(ceil)
TENON_DECLARE_UNARY(round)  // halves to the even neighbour
TENON_DECLARE_UNARY(trunc)
TENON_DECLARE_UNARY(frac)
TENON_DECLARE_UNARY(exp)
TENON_DECLARE_UNARY(exp2)
TENON_DECLARE_UNARY(expm1)
TENON_DECLARE_UNARY(log)
TENON_DECLARE_UNARY(log2)
TENON_DECLARE_UNARY(log10)
TENON_DECLARE_UNARY(log1p)
TENON_DECLARE_UNARY(logit)  // log(x / (1 - x))
TENON_DECLARE_UNARY(sqrt)
TENON_DECLARE_UNARY(rsqrt)
TENON_DECLARE_UNARY(reciprocal)
TENON_DECLARE_UNARY(sin)
TENON_DECLARE_UNARY(cos)
TENON_DECLARE_UNARY(tan)
TENON_DECLARE_UNARY(asin)
TENON_DECLARE_UNARY(acos)
TENON_DECLARE_UNARY(atan)
TENON_DECLARE_UNARY(sinh)
TENON_DECLARE_UNARY(cosh)
TENON_DECLARE_UNARY(asinh)
TENON_DECLARE_UNARY(acosh)
TENON_DECLARE_UNARY(atanh)
TENON_DECLARE_UNARY(sinc)  // sin(pi x) / (pi x), 1 at 0
TENON_DECLARE_UNARY(erf)
TENON_DECLARE_UNARY(erfc)
TENON_DECLARE_UNARY(erfinv)
TENON_DECLARE_UNARY(lgamma)
TENON_DECLARE_UNARY(deg2rad)
TENON_DECLARE_UNARY(rad2deg)
TENON_DECLARE_UNARY(tanh)
TENON_DECLARE_UNARY(sigmoid)
TENON_DECLARE_UNARY(relu)  // gradient at 0 is 0; NaN stays NaN
TENON_DECLARE_UNARY(silu)
TENON_DECLARE_UNARY(gelu)       // exact: x Phi(x)
TENON_DECLARE_UNARY(gelu_tanh)  // Hendrycks and Gimpel's tanh form
TENON_DECLARE_UNARY(softplus)
#undef TENON_DECLARE_UNARY

Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
Tensor logical_not(const Tensor& x);
Tensor bitwise_not(const Tensor& x);  // of bool: not

/// To the nearest multiple of `scale` between lo and hi times it. Its gradient goes straight through, as if nothing
/// were rounded, and is 0 beyond the ends: Bengio, Léonard & Courville (2013). None reaches `scale`.
Tensor fake_quantize(const Tensor& x, const Tensor& scale, double lo, double hi);

/// The derivative of order n of digamma: n = 0 is digamma itself.
Tensor polygamma(int64_t n, const Tensor& x);
Tensor digamma(const Tensor& x);

/// Rounded down; whole numbers stay whole, and a division by 0 gives 0 there.
Tensor floor_divide(const Tensor& a, const Tensor& b);
Tensor floor_divide(const Tensor& a, double b);
/// a + weight (b - a)
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
Tensor lerp(const Tensor& a, const Tensor& b, double weight);
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value = 1);  // x + value a b
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value = 1);  // x + value a / b
/// Elements below min become min, those above max become max; either may be left out as an infinity. The gradient
/// passes within the limits, ends included.
Tensor clamp(const Tensor& x, double min, double max);
Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max);

/// a where c is true, b elsewhere; c is bool. What is not chosen never reaches the result nor its gradient.
Tensor where(const Tensor& c, const Tensor& a, const Tensor& b);

}  // namespace tenon
