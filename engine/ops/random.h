#pragma once
#include "core/tensor.h"

// Random tensors. Every number is a pure function of (seed, stream, counter), whatever the number of threads; a
// generator only counts how many were drawn, and its three numbers are its whole state.
namespace tenon {

struct Generator {
  uint64_t seed = 0;
  uint64_t stream = 0;
  uint64_t offset = 0;  ///< counters used so far

  /// Counters for `numbers` words; moves on.
  uint64_t take(uint64_t numbers) {
    uint64_t at = offset;
    offset += (numbers + 3) / 4;
    return at;
  }
};
/// This thread's generator for the forms below that are given none: seed 0 until manual_seed().
Generator& default_generator();
void manual_seed(uint64_t seed);

// The numbers are drawn on the CPU, so that every device has the same.
Tensor rand(const Shape& size, DType dtype = DType::f32, Generator* g = nullptr,
            Device device = {});  ///< uniform in [0, 1)
Tensor randn(const Shape& size, DType dtype = DType::f32, Generator* g = nullptr,
             Device device = {});  ///< standard normal
Tensor randint(int64_t low, int64_t high, const Shape& size, DType dtype = DType::i64, Generator* g = nullptr,
               Device device = {});  ///< in [low, high)
/// 0..n-1 in random order (Fisher and Yates).
Tensor randperm(int64_t n, Generator* g = nullptr, Device device = {});
/// 1 with the probability that each element is, else 0; in the dtype of `p`. Throws where one is no probability.
Tensor bernoulli(const Tensor& p, Generator* g = nullptr);
/// Per row of weights [n] or [rows, n] `samples` indices, i64; without replacement each at most once (Efraimidis and
/// Spirakis 2006).
Tensor multinomial(const Tensor& weights, int64_t samples, bool replacement = false, Generator* g = nullptr);
Tensor normal(const Tensor& mean, const Tensor& stddev, Generator* g = nullptr);
Tensor poisson(const Tensor& rate, Generator* g = nullptr);

// In place, without history: initial values and noise.
Tensor& uniform_(Tensor& t, double low = 0, double high = 1, Generator* g = nullptr);
Tensor& normal_(Tensor& t, double mean = 0, double stddev = 1, Generator* g = nullptr);
Tensor& exponential_(Tensor& t, double rate = 1, Generator* g = nullptr);
Tensor& cauchy_(Tensor& t, double median = 0, double scale = 1, Generator* g = nullptr);
Tensor& log_normal_(Tensor& t, double mean = 1, double stddev = 2, Generator* g = nullptr);
Tensor& geometric_(Tensor& t, double p, Generator* g = nullptr);  ///< trials until the first success, from 1

}  // namespace tenon
