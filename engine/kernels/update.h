#pragma once
#include <cstdint>

namespace tenon::kernels {

// One pass over a parameter each. Formulas and their order are PyTorch's.

/// Sum of squares, the same bits at any thread count; not finite exactly where an element is not (or the sum exceeds a double).
template <class T>
double sum_of_squares(int64_t n, const T* x);

struct SgdStep {
  double lr, momentum, weight_decay;
  bool nesterov;
};
/// g += wd p; buf = momentum buf + g; p -= lr (nesterov ? g + momentum buf : buf). `buf` is null where momentum is 0.
template <class T>
void sgd(const SgdStep& s, int64_t n, T* p, const T* g, T* buf);

struct AdamStep {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;       ///< AdamW: p *= 1 - lr wd, instead of g += wd p
  double bias1, bias2;  ///< 1 - beta^t
};
/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps). Kingma and Ba (2014);
/// Loshchilov and Hutter (2017) for the decoupled decay.
template <class T>
void adam(const AdamStep& s, int64_t n, T* p, const T* g, T* m, T* v);

}  // namespace tenon::kernels
