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

namespace {

// The inner loops take everything by value: constants behind a lambda's capture would be read again after every store.

template <class T>
void sgd_plain(int64_t n, T* __restrict w, const T* __restrict g, T lr, T decay) {
  for (int64_t i = 0; i < n; ++i) w[i] -= lr * (g[i] + decay * w[i]);
}

template <class T>
void sgd_momentum(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict b, T lr, T decay, T momentum) {
  for (int64_t i = 0; i < n; ++i) {
    b[i] = momentum * b[i] + (g[i] + decay * w[i]);
    w[i] -= lr * b[i];
  }
}

template <class T>
void sgd_nesterov(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict b, T lr, T decay, T momentum) {
  for (int64_t i = 0; i < n; ++i) {
    T d = g[i] + decay * w[i];
    b[i] = momentum * b[i] + d;
    w[i] -= lr * (d + momentum * b[i]);
  }
}

template <class T>
struct AdamConstants {
  T b1, b2, c1, c2, size, root, eps, keep, decay;
};

template <class T>
void adam_piece(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict mean, T* __restrict square, AdamConstants<T> k) {
  for (int64_t i = 0; i < n; ++i) {
    T d = g[i] + k.decay * w[i];
    mean[i] = k.b1 * mean[i] + k.c1 * d;
    square[i] = k.b2 * square[i] + k.c2 * d * d;
    w[i] = w[i] * k.keep - k.size * (mean[i] / (std::sqrt(square[i]) / k.root + k.eps));
  }
}

}  // namespace

template <class T>
void sgd(const SgdStep& s, int64_t n, T* p, const T* g, T* buf) {
  parallel_for(n, kGrain, [&](int64_t i, int64_t e) {
    T lr = static_cast<T>(s.lr), momentum = static_cast<T>(s.momentum), decay = static_cast<T>(s.weight_decay);
    if (!buf)
      sgd_plain(e - i, p + i, g + i, lr, decay);
    else if (s.nesterov)
      sgd_nesterov(e - i, p + i, g + i, buf + i, lr, decay, momentum);
    else
      sgd_momentum(e - i, p + i, g + i, buf + i, lr, decay, momentum);
  });
}

template <class T>
void adam(const AdamStep& s, int64_t n, T* p, const T* g, T* m, T* v) {
  AdamConstants<T> k;
  k.b1 = static_cast<T>(s.beta1);
  k.b2 = static_cast<T>(s.beta2);
  k.c1 = static_cast<T>(1 - s.beta1);
  k.c2 = static_cast<T>(1 - s.beta2);
  k.size = static_cast<T>(s.lr / s.bias1);
  k.root = static_cast<T>(std::sqrt(s.bias2));
  k.eps = static_cast<T>(s.eps);
  k.keep = static_cast<T>(s.decoupled ? 1 - s.lr * s.weight_decay : 1);
  k.decay = static_cast<T>(s.decoupled ? 0 : s.weight_decay);
  parallel_for(n, kGrain, [&](int64_t i, int64_t e) { adam_piece(e - i, p + i, g + i, m + i, v + i, k); });
}

#define UPDATE_OF(T)                                               \
  template double sum_of_squares<T>(int64_t, const T*);            \
  template void sgd<T>(const SgdStep&, int64_t, T*, const T*, T*); \
  template void adam<T>(const AdamStep&, int64_t, T*, const T*, T*, T*);
UPDATE_OF(float)
UPDATE_OF(double)
#undef UPDATE_OF

}  // namespace tenon::kernels
