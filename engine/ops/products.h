#pragma once
#include <string>
#include <vector>

#include "core/tensor.h"

// Products of tensors, with PyTorch's names; all by matmul, so f32 and f64 unless said otherwise.
namespace tenon {

/// Einstein's summation: "bij,bjk->bik". Labels are letters; "..." stands for further axes, which broadcast; a label
/// that is repeated in one operand takes its diagonal; without "->" the labels that occur once come out in alphabetical
/// order. Operands are contracted from left to right. Integers work too.
Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands);
/// Sums products over axes_a of a and axes_b of b, pair by pair; the rest of a's axes, then of b's.
Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& axes_a, const Dims& axes_b);
/// The same over the last `count` axes of a and the first of b.
Tensor tensordot(const Tensor& a, const Tensor& b, int count = 2);
/// [b, m, k] x [b, k, n]
Tensor bmm(const Tensor& a, const Tensor& b);
/// beta * x + alpha * (a @ b)
Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1);
Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1);
/// [m, k] x [k], and [n] . [n]
Tensor mv(const Tensor& a, const Tensor& x);
Tensor dot(const Tensor& a, const Tensor& b);
/// a[i] * b[j]
Tensor outer(const Tensor& a, const Tensor& b);
/// a x b along an axis of size 3; the others broadcast.
Tensor cross(const Tensor& a, const Tensor& b, int axis = -1);
/// Kronecker's product; axes are added in front of the one that has fewer.
Tensor kron(const Tensor& a, const Tensor& b);

}  // namespace tenon
