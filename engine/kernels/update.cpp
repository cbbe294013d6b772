#include "engine/kernels/update.h"

#include <cmath>

#include "core/parallel.h"
#include "engine/kernels/scratch.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kGrain = 32 * 1024;
constexpr int64_t kBlock = 1024;  // squares added up in T before they go into a double

template <class T, class Sum>
Sum squares(int64_t n, const T* x) {
  constexpr int W = 16;
  Sum lanes[W] = {};
  int64_t i = 0;
  for (; i + W <= n; i += W)
    for (int k = 0; k < W; ++k) lanes[k] += static_cast<Sum>(x[i + k]) * static_cast<Sum>(x[i + k]);
  for (int k = 0; i < n; ++i, ++k) lanes[k] += static_cast<Sum>(x[i]) * static_cast<Sum>(x[i]);
  for (int w = W / 2; w > 0; w /= 2)
    for (int k = 0; k < w; ++k) lanes[k] += lanes[k + w];
  return lanes[0];
}

template <class T>
double piece(int64_t n, const T* x) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    int64_t count = n - i < kBlock ? n - i : kBlock;
    T fast = squares<T, T>(count, x + i);
    // Squares that leave the range of T do not make a gradient infinite.
    sum += std::isfinite(fast) ? static_cast<double>(fast) : squares<T, double>(count, x + i);
  }
  return sum;
}

}  // namespace

template <class T>
double sum_of_squares(int64_t n, const T* x) {
  if (n <= kGrain) return piece(n, x);
  int64_t pieces = (n + kGrain - 1) / kGrain;
  Scratch<double> partial(pieces);
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) { partial[begin / kGrain] = piece(end - begin, x + begin); });
  double sum = 0;
  for (int64_t i = 0; i < pieces; ++i) sum += partial[i];
  return sum;
}

template <class T>
void sgd(const SgdStep& s, int64_t n, T* p, const T* g, T* buf) {
  const T lr = static_cast<T>(s.lr), momentum = static_cast<T>(s.momentum), decay = static_cast<T>(s.weight_decay);
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    T* __restrict w = p;
    const T* __restrict grad = g;
    T* __restrict b = buf;
    if (!b) {
      for (int64_t i = begin; i < end; ++i) w[i] -= lr * (grad[i] + decay * w[i]);
    } else if (s.nesterov) {
      for (int64_t i = begin; i < end; ++i) {
        T d = grad[i] + decay * w[i];
        b[i] = momentum * b[i] + d;
        w[i] -= lr * (d + momentum * b[i]);
      }
    } else {
      for (int64_t i = begin; i < end; ++i) {
        b[i] = momentum * b[i] + (grad[i] + decay * w[i]);
        w[i] -= lr * b[i];
      }
    }
  });
}

template <class T>
void adam(const AdamStep& s, int64_t n, T* p, const T* g, T* m, T* v) {
  const T b1 = static_cast<T>(s.beta1), b2 = static_cast<T>(s.beta2), c1 = static_cast<T>(1 - s.beta1), c2 = static_cast<T>(1 - s.beta2);
  const T size = static_cast<T>(s.lr / s.bias1), root = static_cast<T>(std::sqrt(s.bias2)), eps = static_cast<T>(s.eps);
  const T keep = static_cast<T>(s.decoupled ? 1 - s.lr * s.weight_decay : 1), decay = static_cast<T>(s.decoupled ? 0 : s.weight_decay);
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    T *__restrict w = p, *__restrict mean = m, *__restrict square = v;
    const T* __restrict grad = g;
    for (int64_t i = begin; i < end; ++i) {
      T d = grad[i] + decay * w[i];
      mean[i] = b1 * mean[i] + c1 * d;
      square[i] = b2 * square[i] + c2 * d * d;
      w[i] = w[i] * keep - size * (mean[i] / (std::sqrt(square[i]) / root + eps));
    }
  });
}

#define UPDATE_OF(T)                                                       \
  template double sum_of_squares<T>(int64_t, const T*);                    \
  template void sgd<T>(const SgdStep&, int64_t, T*, const T*, T*);         \
  template void adam<T>(const AdamStep&, int64_t, T*, const T*, T*, T*);
UPDATE_OF(float)
UPDATE_OF(double)
#undef UPDATE_OF

}  // namespace tenon::kernels
