#pragma once
#include "core/tensor.h"

// Reductions. Axes may be negative; no axes means all. Sums are added in an order fixed by the tensor's size alone.
namespace tenon {

Tensor sum(const Tensor& x, const Dims& axes = {}, bool keep = false);   // integers and bool add up in i64
Tensor mean(const Tensor& x, const Dims& axes = {}, bool keep = false);  // floating-point only
Tensor prod(const Tensor& x, const Dims& axes = {}, bool keep = false);  // integers and bool multiply in i64
Tensor& sum_out(Tensor& out, const Tensor& x, const Dims& axes = {}, bool keep = false);
Tensor& mean_out(Tensor& out, const Tensor& x, const Dims& axes = {}, bool keep = false);
Tensor amax(const Tensor& x, const Dims& axes = {}, bool keep = false);  // NaN wins; equal maxima share the gradient
Tensor amin(const Tensor& x, const Dims& axes = {}, bool keep = false);
/// Index of the first maximum along one axis, i64; NaN counts as the maximum.
Tensor argmax(const Tensor& x, int axis, bool keep = false);

}  // namespace tenon
