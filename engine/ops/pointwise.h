#pragma once
#include "core/tensor.h"
#include "engine/ops/create.h"

// Element by element, with broadcasting and PyTorch's type promotion. Results keep the memory order of their first full-size dense operand.
// The forms with a trailing underscore write into their first operand. Formulas and gradients: pointwise.cpp.
namespace tenon {

#define TENON_DECLARE_BINARY(NAME)                  \
  Tensor NAME(const Tensor& a, const Tensor& b);    \
  Tensor NAME(const Tensor& a, double b);           \
  Tensor& NAME##_(Tensor& a, const Tensor& b);      \
  Tensor& NAME##_(Tensor& a, double b);
TENON_DECLARE_BINARY(add)
TENON_DECLARE_BINARY(sub)
TENON_DECLARE_BINARY(mul)
TENON_DECLARE_BINARY(div)      // true division: integers become f32
TENON_DECLARE_BINARY(pow)
TENON_DECLARE_BINARY(maximum)  // NaN wins; equal operands share the gradient
TENON_DECLARE_BINARY(minimum)
#undef TENON_DECLARE_BINARY

#define TENON_DECLARE_COMPARE(NAME) \
  Tensor NAME(const Tensor& a, const Tensor& b); \
  Tensor NAME(const Tensor& a, double b);
TENON_DECLARE_COMPARE(eq)
TENON_DECLARE_COMPARE(ne)
TENON_DECLARE_COMPARE(lt)
TENON_DECLARE_COMPARE(le)
TENON_DECLARE_COMPARE(gt)
TENON_DECLARE_COMPARE(ge)
#undef TENON_DECLARE_COMPARE

Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);         // gradient at 0 is 0
Tensor square(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);        // gradient at 0 is 0; NaN stays NaN
Tensor silu(const Tensor& x);
Tensor gelu(const Tensor& x);        // exact: x Phi(x)
Tensor gelu_tanh(const Tensor& x);   // Hendrycks and Gimpel's tanh form
Tensor softplus(const Tensor& x);

/// a where c is true, b elsewhere; c is bool. What is not chosen never reaches the result nor its gradient.
Tensor where(const Tensor& c, const Tensor& a, const Tensor& b);

}  // namespace tenon
