#pragma once
#include "core/tensor.h"

// Elementary functions beyond those of pointwise.h, element by element with broadcasting and PyTorch's promotion and names.
namespace tenon {

Tensor tan(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor asinh(const Tensor& x);
Tensor acosh(const Tensor& x);
Tensor atanh(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor floor(const Tensor& x);
Tensor trunc(const Tensor& x);
Tensor round(const Tensor& x);                           ///< halves to even
Tensor sign(const Tensor& x);                            ///< -1, 0 or 1; NaN stays

/// The remainder of the quotient rounded towards zero (C's fmod), and towards minus infinity (Python's %). Integers by 0 give 0.
Tensor fmod(const Tensor& a, const Tensor& b);
Tensor fmod(const Tensor& a, double b);
Tensor remainder(const Tensor& a, const Tensor& b);
Tensor remainder(const Tensor& a, double b);
/// Quotient of integers rounded towards zero; by 0 it is 0. Floating point: trunc(a / b).
Tensor div_trunc(const Tensor& a, const Tensor& b);

Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& x);
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);

/// Bit by bit, on integers and bool.
Tensor bitwise_and(const Tensor& a, const Tensor& b);
Tensor bitwise_or(const Tensor& a, const Tensor& b);
Tensor bitwise_xor(const Tensor& a, const Tensor& b);
Tensor bitwise_not(const Tensor& x);
/// Shifts of integers; by the width or more it is 0 (-1 for a negative number moved right).
Tensor bitwise_left_shift(const Tensor& a, const Tensor& b);
Tensor bitwise_right_shift(const Tensor& a, const Tensor& b);

}  // namespace tenon
