#pragma once
#include "core/tensor.h"

namespace tenon {

/// Along one axis: exp(x) / sum(exp(x)), and its logarithm. f32 or f64.
Tensor softmax(const Tensor& x, int axis = -1);
Tensor log_softmax(const Tensor& x, int axis = -1);
/// Mean over rows of -log softmax(logits)[target]: logits [n, classes], target i64 [n] with values in [0, classes). A
/// tensor without axes.
Tensor cross_entropy(const Tensor& logits, const Tensor& target);
/// Mean of (x - y)^2 over all elements; both of one size. A tensor without axes.
Tensor mse_loss(const Tensor& x, const Tensor& y);
/// 1 where the last axis' index is the value, 0 elsewhere: i64 [..] -> dtype [.., classes]. Not differentiable.
Tensor one_hot(const Tensor& index, int64_t classes, DType dtype = DType::f32);

}  // namespace tenon
