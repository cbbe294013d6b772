#pragma once
#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace tenon::nn {

// Starting values, in place. Element i is a pure function of (seed, name, i); `name` is the parameter's full path. Meta
// tensors are left alone. The schemes and their defaults are those of torch.nn.init.

void fill(const Tensor& t, double value);
/// Uniform in [-bound, bound).
void init_uniform(const Tensor& t, double bound, uint64_t seed, const std::string& name);
void init_uniform(const Tensor& t, double low, double high, uint64_t seed, const std::string& name);
void init_normal(const Tensor& t, double mean, double std, uint64_t seed, const std::string& name);
/// A normal distribution cut off outside [a, b].
void init_trunc_normal(const Tensor& t, double mean, double std, double a, double b, uint64_t seed,
                       const std::string& name);
/// PyTorch's default for Linear and Conv2d: kaiming_uniform(a = sqrt(5)), which is uniform within 1 / sqrt(fan_in), for
/// weight and bias.
void init_default(const Tensor& t, int64_t fan_in, uint64_t seed, const std::string& name);

/// Inputs and outputs of one unit: weight [out, in, ...]. Throws below two axes.
struct Fans {
  double in, out;
};
Fans fans_of(const Tensor& weight);
/// torch.nn.init.calculate_gain: "linear", "conv2d", "sigmoid" (1), "tanh" (5/3), "relu", "leaky_relu" (slope `a`),
/// "selu".
double calculate_gain(const std::string& nonlinearity, double a = 0.01);
enum class Fan : uint8_t { in, out };
/// Glorot and Bengio (2010).
void init_xavier_uniform(const Tensor& t, double gain, uint64_t seed, const std::string& name);
void init_xavier_normal(const Tensor& t, double gain, uint64_t seed, const std::string& name);
/// He et al. (2015).
void init_kaiming_uniform(const Tensor& t, double a, Fan fan, const std::string& nonlinearity, uint64_t seed,
                          const std::string& name);
void init_kaiming_normal(const Tensor& t, double a, Fan fan, const std::string& nonlinearity, uint64_t seed,
                         const std::string& name);
/// Orthonormal rows (or columns, where there are more rows) of the matrix of the first axis and the rest. Saxe et al.
/// (2013).
void init_orthogonal(const Tensor& t, double gain, uint64_t seed, const std::string& name);
/// A matrix of normal values, of whose every column a share `sparsity` is 0. Martens (2010).
void init_sparse(const Tensor& t, double sparsity, double std, uint64_t seed, const std::string& name);
/// The identity of a matrix, and of a convolution (3 to 5 axes) by groups.
void init_eye(const Tensor& t);
void init_dirac(const Tensor& t, int64_t groups = 1);

}  // namespace tenon::nn
