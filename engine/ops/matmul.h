#pragma once
#include "core/tensor.h"

namespace tenon {

/// [.., m, k] x [.., k, n] -> [.., m, n], f32 or f64. Batch axes are equal, or one side is a matrix that serves for
/// all.
Tensor matmul(const Tensor& a, const Tensor& b);
/// The same with either side transposed in its last two axes.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b);
/// x w^T + bias: x [.., in], w [out, in], bias [out] or undefined -> [.., out].
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {});

}  // namespace tenon
