#pragma once
#include <cmath>

#include "core/tensor.h"

// Reductions that are made of others. Axes as in reduce.h: none means all.
namespace tenon {

/// The sum of squared distances from the mean, divided by (count - correction): correction 1 is the unbiased estimate,
/// 0 the population's.
Tensor var(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep = false);
Tensor stddev(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep = false);  // PyTorch's std()
struct VarMean {
  Tensor var, mean;
};
VarMean var_mean(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep = false);
/// log(sum(exp(x))), without overflow; -inf where all elements are.
Tensor logsumexp(const Tensor& x, const Dims& axes, bool keep = false);
/// The p-norm: 0 counts elements that are not 0, +-inf the largest (smallest) magnitude. The gradient at the zero
/// vector is 0.
Tensor norm(const Tensor& x, double p = 2, const Dims& axes = {}, bool keep = false);
/// Whether any (all) elements are not 0: bool. Of no elements: false (true).
Tensor any(const Tensor& x, const Dims& axes = {}, bool keep = false);
Tensor all(const Tensor& x, const Dims& axes = {}, bool keep = false);
Tensor count_nonzero(const Tensor& x, const Dims& axes = {});  // i64
/// NaN counts as 0 (is left out of the mean).
Tensor nansum(const Tensor& x, const Dims& axes = {}, bool keep = false);
Tensor nanmean(const Tensor& x, const Dims& axes = {}, bool keep = false);
/// Values at shares q (0..1) of the sorted elements of one axis, linear between neighbours: size [len(q), ...] (without
/// the first axis where q has none). NaN where there is one.
Tensor quantile(const Tensor& x, const Tensor& q, int axis, bool keep = false);
/// Rows are variables, columns observations (or one variable of one axis): the matrix of covariances, and of Pearson's
/// correlations.
Tensor cov(const Tensor& x, double correction = 1);
Tensor corrcoef(const Tensor& x);
/// NaN, +inf and -inf replaced; infinite replacements mean the dtype's largest and smallest finite numbers.
Tensor nan_to_num(const Tensor& x, double nan = 0, double posinf = INFINITY, double neginf = -INFINITY);

}  // namespace tenon
