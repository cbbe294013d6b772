#pragma once
#include "core/tensor.h"

// Order along one axis, with PyTorch's names. NaN counts as the largest value. Equal values keep their order, so every
// result is determined; gradients go to the elements that were taken. All dtypes.
namespace tenon {

struct Ordered {
  Tensor values, indices;  ///< indices are i64
};

Ordered sort(const Tensor& x, int axis = -1, bool descending = false);
Tensor argsort(const Tensor& x, int axis = -1, bool descending = false);
/// The k largest (smallest) elements, in order.
Ordered topk(const Tensor& x, int64_t k, int axis = -1, bool largest = true);
/// The k-th smallest element, counted from 1.
Ordered kthvalue(const Tensor& x, int64_t k, int axis = -1, bool keep = false);
/// The lower of the two middle elements; NaN where there is one.
Ordered median(const Tensor& x, int axis, bool keep = false);
Tensor median(const Tensor& x);
/// The most frequent value, the smallest of several, and the last place where it is: PyTorch's mode(), whose name is a
/// namespace here.
Ordered mode_of(const Tensor& x, int axis = -1, bool keep = false);
/// The largest (smallest) element and the first place where it is; NaN wins. PyTorch's max(x, dim) and min(x, dim).
Ordered max_dim(const Tensor& x, int axis, bool keep = false);
Ordered min_dim(const Tensor& x, int axis, bool keep = false);
Tensor argmin(const Tensor& x, int axis, bool keep = false);

/// Where each value goes in `boundaries`, which ascend along the last axis (one axis, or values' own leading axes): i64
/// in the size of values. The first i with boundaries[i] >= value; with `right` the first with boundaries[i] > value.
Tensor searchsorted(const Tensor& boundaries, const Tensor& values, bool right = false);
Tensor bucketize(const Tensor& values, const Tensor& boundaries, bool right = false);

/// How often each number of 0, 1, .. occurs in i64 (or smaller) integers of one axis, or the sum of its weights; at
/// least min_length entries.
Tensor bincount(const Tensor& x, const Tensor& weights = {}, int64_t min_length = 0);
/// Counts of elements in `bins` equal parts of [lo, hi], in x's dtype; lo == hi: x's own range. Elements outside are
/// passed over.
Tensor histc(const Tensor& x, int64_t bins = 100, double lo = 0, double hi = 0);

struct Unique {
  Tensor values;
  Tensor inverse;  ///< i64: where in values each element (slice) is
  Tensor counts;   ///< i64
  Tensor first;    ///< i64: where each value occurs first
};
/// The different values, ascending, or (unsorted) in order of their first occurrence. axis kFlat: of all elements;
/// otherwise whole slices are compared. Not differentiable.
inline constexpr int kFlat = 1 << 20;
Unique unique(const Tensor& x, int axis = kFlat, bool sorted = true);
/// The same where only neighbours that are equal fall together.
Unique unique_consecutive(const Tensor& x, int axis = kFlat);

}  // namespace tenon
