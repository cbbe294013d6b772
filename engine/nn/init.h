#pragma once
#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace tenon::nn {

// Starting values, in place. Element i is a pure function of (seed, name, i); `name` is the parameter's full path. Meta tensors are left
// alone.

void fill(const Tensor& t, double value);
/// Uniform in [-bound, bound).
void init_uniform(const Tensor& t, double bound, uint64_t seed, const std::string& name);
/// PyTorch's default for Linear and Conv2d: kaiming_uniform(a = sqrt(5)), which is uniform within 1 / sqrt(fan_in), for weight and bias.
void init_default(const Tensor& t, int64_t fan_in, uint64_t seed, const std::string& name);

}  // namespace tenon::nn
