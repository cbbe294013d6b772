#pragma once
#include "core/tensor.h"

// Running results along one axis, with PyTorch's names. Each element is a function of those before it, in order: the
// same bits on any number of threads.
namespace tenon {

/// Integers and bool add up (multiply) in i64; f32 in double, rounded once an element.
Tensor cumsum(const Tensor& x, int axis);
Tensor cumprod(const Tensor& x, int axis);
/// log(sum(exp(x[0..i]))), without overflow.
Tensor logcumsumexp(const Tensor& x, int axis);
/// y[t] = a[t] * y[t - 1] + b[t], y[-1] = 0: the linear recurrence behind moving averages and discounted sums. Sizes
/// are equal.
Tensor linear_recurrence(const Tensor& a, const Tensor& b, int axis);

struct Running {
  Tensor values, indices;
};
/// The largest (smallest) so far and the last place where it was; NaN stays.
Running cummax(const Tensor& x, int axis);
Running cummin(const Tensor& x, int axis);

/// x[i + 1] - x[i] along an axis, `times` times.
Tensor diff(const Tensor& x, int64_t times = 1, int axis = -1);

}  // namespace tenon
