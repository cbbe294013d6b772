#pragma once
#include <cstdint>

#include "core/tensor.h"

namespace tenon {

/// The values of the elements `from` to `to` of a tensor of the host, in logical (row-major) order, whatever its type
/// and strides are. A 64-bit integer is rounded to the nearest double.
void read_values(const Tensor& t, int64_t from, int64_t to, double* out);

/// Their bits: each element as an integer of its own width. Two elements of one type are the same where these are.
void read_bits(const Tensor& t, int64_t from, int64_t to, uint64_t* out);

/// Whether those of two tensors of one type are the same.
bool same_bits(const Tensor& a, const Tensor& b, int64_t from, int64_t to);

}  // namespace tenon
