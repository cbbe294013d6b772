#pragma once
#include "core/tensor.h"

namespace tenon {

Tensor full(const Shape& size, double value, DType dtype = DType::f32);
Tensor zeros(const Shape& size, DType dtype = DType::f32);
Tensor ones(const Shape& size, DType dtype = DType::f32);
/// 0, 1, ..., n - 1
Tensor arange(int64_t n, DType dtype = DType::i64);
/// A tensor without dimensions.
Tensor scalar(double value, DType dtype = DType::f32);
/// A number for arithmetic with `like`: its dtype, but f32 where a fraction meets integers. On the same device.
Tensor scalar_like(double value, const Tensor& like);
/// Sets every element, without history.
void fill(const Tensor& t, double value);
/// The one element of a tensor as a number; throws where it has more.
double item(const Tensor& t);

}  // namespace tenon
