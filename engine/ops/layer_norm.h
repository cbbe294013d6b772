#pragma once
#include "core/tensor.h"

namespace tenon {

/// (x - mean) / sqrt(var + eps) * weight + bias over the last axes, those of `axes` sizes; weight and bias have these
/// sizes or are undefined. f32 or f64. Ba, Kiros and Hinton: Layer normalization (2016).
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) * weight. Zhang and Sennrich (2019).
Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {}, double eps = 1e-5);
/// Over groups of channels (axis 1) and everything behind them; weight and bias [channels]. Wu and He: Group
/// normalization (2018).
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

}  // namespace tenon
