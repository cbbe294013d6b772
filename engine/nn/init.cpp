#include "engine/nn/init.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/backend.h"
#include "core/dry_device.h"
#include "core/error.h"
#include "core/random.h"
#include "engine/ops/view.h"

namespace tenon::nn {
namespace {

/// Nothing that is written there can be read.
bool has_no_values(const Tensor& t) { return t.is_meta() || is_dry(t.device()); }

template <class F>
void each(const Tensor& t, const F& value) {
  if (has_no_values(t)) return;
  if (t.device().type != DeviceType::cpu) {
    const Tensor host = empty(t.size(), t.dtype());
    each(host, value);
    return copy_(t, host);
  }
  if (!t.is_contiguous()) throw Error("a parameter is initialised in contiguous memory");
  int64_t n = t.numel();
  if (t.dtype() == DType::f32) {
    for (int64_t i = 0; i < n; ++i) t.data<float>()[i] = static_cast<float>(value(i));
  } else if (t.dtype() == DType::f64) {
    for (int64_t i = 0; i < n; ++i) t.data<double>()[i] = value(i);
  } else {
    throw Error(std::string("parameters are f32 or f64, not ") + tenon::name(t.dtype()));
  }
  t.storage()->changed();
}

double kaiming_scale(const Tensor& t, double a, Fan fan, const std::string& nonlinearity) {
  Fans f = fans_of(t);
  return calculate_gain(nonlinearity, a) / std::sqrt(std::max(1.0, fan == Fan::in ? f.in : f.out));
}

}  // namespace

void fill(const Tensor& t, double value) {
  each(t, [&](int64_t) { return value; });
}

void init_uniform(const Tensor& t, double bound, uint64_t seed, const std::string& name) {
  Philox random{seed, stream_of(name.c_str())};
  each(t,
       [&](int64_t i) { return (2.0 * static_cast<double>(random.uniform(static_cast<uint64_t>(i))) - 1.0) * bound; });
}
void init_uniform(const Tensor& t, double low, double high, uint64_t seed, const std::string& name) {
  Philox random{seed, stream_of(name.c_str())};
  each(t,
       [&](int64_t i) { return low + (high - low) * static_cast<double>(random.uniform(static_cast<uint64_t>(i))); });
}
void init_normal(const Tensor& t, double mean, double std, uint64_t seed, const std::string& name) {
  Philox random{seed, stream_of(name.c_str())};
  each(t, [&](int64_t i) { return mean + std * random.normal(static_cast<uint64_t>(i)); });
}
void init_trunc_normal(const Tensor& t, double mean, double std, double a, double b, uint64_t seed,
                       const std::string& name) {
  Philox random{seed, stream_of(name.c_str())};
  auto below = [&](double x) { return 0.5 * std::erfc(-(x - mean) / std * M_SQRT1_2); };
  double lo = below(a), hi = below(b);
  // The inverse of the distribution by bisection: slow, exact to the last bits, and without a table of coefficients.
  each(t, [&](int64_t i) {
    double p = lo + (hi - lo) * random.uniform_double(static_cast<uint64_t>(i)), x0 = std::max(a, mean - 40 * std),
           x1 = std::min(b, mean + 40 * std);
    for (int k = 0; k < 60; ++k) {
      double m = 0.5 * (x0 + x1);
      (below(m) < p ? x0 : x1) = m;
    }
    return 0.5 * (x0 + x1);
  });
}

void init_default(const Tensor& t, int64_t fan_in, uint64_t seed, const std::string& name) {
  init_uniform(t, fan_in > 0 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0.0, seed, name);
}

Fans fans_of(const Tensor& w) {
  if (w.ndim() < 2)
    throw Error("a tensor of size " + to_string(w.size()) + " has no inputs and outputs: it needs two axes or more");
  double field = 1;
  for (int i = 2; i < w.ndim(); ++i) field *= static_cast<double>(w.size(i));
  return {static_cast<double>(w.size(1)) * field, static_cast<double>(w.size(0)) * field};
}

double calculate_gain(const std::string& f, double a) {
  if (f == "linear" || f == "sigmoid" || f == "conv1d" || f == "conv2d" || f == "conv3d" || f == "conv_transpose1d" ||
      f == "conv_transpose2d" || f == "conv_transpose3d")
    return 1;
  if (f == "tanh") return 5.0 / 3;
  if (f == "relu") return std::sqrt(2.0);
  if (f == "leaky_relu") return std::sqrt(2.0 / (1 + a * a));
  if (f == "selu") return 0.75;
  throw Error("there is no gain for \"" + f + "\"", "linear, conv2d, sigmoid, tanh, relu, leaky_relu or selu");
}

void init_xavier_uniform(const Tensor& t, double gain, uint64_t seed, const std::string& name) {
  Fans f = fans_of(t);
  init_uniform(t, gain * std::sqrt(6 / (f.in + f.out)), seed, name);
}
void init_xavier_normal(const Tensor& t, double gain, uint64_t seed, const std::string& name) {
  Fans f = fans_of(t);
  init_normal(t, 0, gain * std::sqrt(2 / (f.in + f.out)), seed, name);
}
void init_kaiming_uniform(const Tensor& t, double a, Fan fan, const std::string& nonlinearity, uint64_t seed,
                          const std::string& name) {
  init_uniform(t, std::sqrt(3.0) * kaiming_scale(t, a, fan, nonlinearity), seed, name);
}
void init_kaiming_normal(const Tensor& t, double a, Fan fan, const std::string& nonlinearity, uint64_t seed,
                         const std::string& name) {
  init_normal(t, 0, kaiming_scale(t, a, fan, nonlinearity), seed, name);
}

// Gram and Schmidt's process on normal vectors, each pass twice: once is not enough where a vector lies near the span
// of those before it.
void init_orthogonal(const Tensor& t, double gain, uint64_t seed, const std::string& name) {
  if (t.ndim() < 2) throw Error("init_orthogonal: a tensor of size " + to_string(t.size()) + " is no matrix");
  if (has_no_values(t) || t.numel() == 0) return;
  int64_t rows = t.size(0), cols = t.numel() / rows, count = std::min(rows, cols), length = std::max(rows, cols);
  Philox random{seed, stream_of(name.c_str())};
  std::vector<double> q(static_cast<size_t>(count * length));
  for (size_t i = 0; i < q.size(); ++i) q[i] = random.normal(i);
  for (int64_t i = 0; i < count; ++i) {
    double* v = &q[static_cast<size_t>(i * length)];
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t k = 0; k < i; ++k) {
        const double* u = &q[static_cast<size_t>(k * length)];
        double dot = std::inner_product(u, u + length, v, 0.0);
        for (int64_t j = 0; j < length; ++j) v[j] -= dot * u[j];
      }
    double norm = std::sqrt(std::inner_product(v, v + length, v, 0.0));
    for (int64_t j = 0; j < length; ++j) v[j] /= norm;
  }
  each(t, [&](int64_t i) {
    int64_t r = i / cols, c = i % cols;
    return gain * q[static_cast<size_t>(rows <= cols ? r * length + c : c * length + r)];
  });
}

void init_sparse(const Tensor& t, double sparsity, double std, uint64_t seed, const std::string& name) {
  if (t.ndim() != 2) throw Error("init_sparse: a tensor of size " + to_string(t.size()) + " is no matrix");
  init_normal(t, 0, std, seed, name);
  if (has_no_values(t)) return;
  int64_t rows = t.size(0), cols = t.size(1),
          zeros = std::min(rows, static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(rows))));
  Philox random{seed, stream_of((name + ".zeros").c_str())};
  std::vector<bool> drop(static_cast<size_t>(rows * cols));
  std::vector<std::pair<uint32_t, int64_t>> order(static_cast<size_t>(rows));
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r)
      order[static_cast<size_t>(r)] = {random.word(static_cast<uint64_t>(c * rows + r)), r};
    std::sort(order.begin(), order.end());
    for (int64_t k = 0; k < zeros; ++k)
      drop[static_cast<size_t>(order[static_cast<size_t>(k)].second * cols + c)] = true;
  }
  const Tensor drawn = to_host(t);
  each(t, [&](int64_t i) { return drop[static_cast<size_t>(i)] ? 0.0 : storage_value(drawn, drawn.offset() + i); });
}

void init_eye(const Tensor& t) {
  if (t.ndim() != 2) throw Error("init_eye: a tensor of size " + to_string(t.size()) + " is no matrix");
  int64_t cols = t.size(1);
  each(t, [&](int64_t i) { return i / cols == i % cols ? 1.0 : 0.0; });
}

void init_dirac(const Tensor& t, int64_t groups) {
  if (t.ndim() < 3 || t.ndim() > 5)
    throw Error("init_dirac: a tensor of size " + to_string(t.size()) + " is no weight of a convolution");
  if (groups < 1 || t.size(0) % groups)
    throw Error("init_dirac: " + std::to_string(groups) + " groups do not divide " + std::to_string(t.size(0)) +
                " output channels");
  int64_t taps = 1, centre = 0, each_group = t.size(0) / groups;
  for (int i = 2; i < t.ndim(); ++i) {
    taps *= t.size(i);
    centre = centre * t.size(i) + t.size(i) / 2;
  }
  each(t, [&](int64_t i) {
    return i % taps == centre && i / taps % t.size(1) == i / taps / t.size(1) % each_group ? 1.0 : 0.0;
  });
}

}  // namespace tenon::nn
