#pragma once
#include <vector>

#include "core/tensor.h"

namespace tenon {

// Made where `device` says; on meta they have a size and no values. Values that need computing are computed on the host
// and brought over, so that every device has the same bits.
Tensor full(const Shape& size, double value, DType dtype = DType::f32, Device device = {});
Tensor zeros(const Shape& size, DType dtype = DType::f32, Device device = {});
Tensor ones(const Shape& size, DType dtype = DType::f32, Device device = {});
/// These, as i64: [count].
Tensor integers(const std::vector<int64_t>& values, Device device = {});
/// 0, 1, ..., n - 1
Tensor arange(int64_t n, DType dtype = DType::i64, Device device = {});
/// start, start + step, ... below end (above it where step is negative): ceil((end - start) / step) elements, each
/// start + i step.
Tensor arange(double start, double end, double step = 1, DType dtype = DType::f32, Device device = {});
/// `steps` numbers from start to end, both included.
Tensor linspace(double start, double end, int64_t steps, DType dtype = DType::f32, Device device = {});
/// base to the power of linspace(start, end, steps).
Tensor logspace(double start, double end, int64_t steps, double base = 10, DType dtype = DType::f32,
                Device device = {});
/// Ones on the main diagonal of n rows and m columns (m < 0: n).
Tensor eye(int64_t n, int64_t m = -1, DType dtype = DType::f32, Device device = {});
/// Of the size and dtype of another tensor, contiguous, on the same device.
Tensor full_like(const Tensor& like, double value);
Tensor zeros_like(const Tensor& like);
Tensor ones_like(const Tensor& like);
/// Tensors of one axis each, as coordinates of a grid: n tensors of size [len(a), len(b), ...] (PyTorch's
/// indexing="ij"), expanded views.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes);
/// A tensor without dimensions.
Tensor scalar(double value, DType dtype = DType::f32, Device device = {});
/// A number for arithmetic with `like`: its dtype, but f32 where a fraction meets integers. On the same device.
Tensor scalar_like(double value, const Tensor& like);
/// Sets every element, without history.
void fill(const Tensor& t, double value);
/// The one element of a tensor as a number, from whatever device it lies on; throws where it has more.
double item(const Tensor& t);

}  // namespace tenon
