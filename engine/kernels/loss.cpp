#include "engine/kernels/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "core/vectors.h"
#include "engine/op/scalar.h"

namespace tenon::kernels {
namespace {

int64_t loss_grain(int64_t c) { return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, c)); }

template <class T>
T largest_logit(int64_t c, const T* v) {
  T m = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < c; ++j) m = v[j] > m ? v[j] : m;  // a NaN is passed over here and comes back through exp
  return m;
}

constexpr int64_t kLanes = 16;
/// The largest, in lanes that the compiler makes vectors of; a NaN is passed over here as well.
template <class T>
T largest_in_lanes(int64_t c, const T* v) {
  if (c < kLanes) return largest_logit(c, v);
  T m[kLanes];
  std::copy_n(v, kLanes, m);
  int64_t j = kLanes;
  for (; j + kLanes <= c; j += kLanes)
    for (int64_t k = 0; k < kLanes; ++k) m[k] = v[j + k] > m[k] ? v[j + k] : m[k];
  return std::max(largest_logit(kLanes, m), largest_logit(c - j, v + j));
}
/// In lanes that are added in a fixed order.
template <class T>
T sum_in_lanes(int64_t c, const T* v) {
  T part[kLanes] = {}, sum = 0;
  int64_t j = 0;
  for (; j + kLanes <= c; j += kLanes)
    for (int64_t k = 0; k < kLanes; ++k) part[k] += v[j + k];
  for (; j < c; ++j) sum += v[j];
  for (int64_t k = 0; k < kLanes; ++k) sum += part[k];
  return sum;
}

/// to[j] = exp(v[j] - m).
template <class T>
void exponentials(int64_t n, const T* __restrict v, T m, T* __restrict to) {
  in_vectors(
      n, [&]() __attribute__((always_inline)) {
        for (int64_t j = 0; j < n; ++j) to[j] = sc::exp(v[j] - m);
      });
}
/// Of exp(v[j] - m), block by block.
template <class T>
T sum_of_exponentials(int64_t n, const T* v, T m) {
  constexpr int64_t kBlock = 256;
  T block[kBlock], sum = 0;
  for (int64_t j = 0; j < n; j += kBlock) {
    const int64_t some = std::min(kBlock, n - j);
    exponentials(some, v + j, m, block);
    sum += sum_in_lanes(some, block);
  }
  return sum;
}

}  // namespace

template <class T>
double cross_entropy_forward(int64_t rows, int64_t c, const T* x, const int64_t* target, T* lse) {
  parallel_for(rows, loss_grain(c), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* v = x + i * c;
      const T m = largest_in_lanes(c, v);
      lse[i] = m + std::log(sum_of_exponentials(c, v, m));
    }
  });
  double total = 0;
  for (int64_t i = 0; i < rows; ++i) total += static_cast<double>(lse[i]) - static_cast<double>(x[i * c + target[i]]);
  return total / static_cast<double>(rows);
}

template <class T>
void cross_entropy_backward(int64_t rows, int64_t c, const T* x, const int64_t* target, const T* lse, T scale, T* gx) {
  parallel_for(rows, loss_grain(c), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* v = x + i * c;
      T* g = gx + i * c;
      exponentials(c, v, lse[i], g);
      g[target[i]] -= T(1);
      for (int64_t j = 0; j < c; ++j) g[j] *= scale;
    }
  });
}

template <class T>
void softmax_forward(int64_t rows, int64_t c, bool log, const T* x, T* y) {
  parallel_for(rows, loss_grain(c), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* v = x + i * c;
      T* out = y + i * c;
      const T m = largest_in_lanes(c, v);
      exponentials(c, v, m, out);
      const T sum = sum_in_lanes(c, out);
      if (log) {
        T shift = m + std::log(sum);
        for (int64_t j = 0; j < c; ++j) out[j] = v[j] - shift;
      } else {
        for (int64_t j = 0; j < c; ++j) out[j] /= sum;
      }
    }
  });
}

template <class T>
void softmax_backward(int64_t rows, int64_t c, bool log, const T* y, const T* gy, T* gx) {
  parallel_for(rows, loss_grain(c), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T *v = y + i * c, *g = gy + i * c;
      T* out = gx + i * c;
      T sum = 0;
      for (int64_t j = 0; j < c; ++j) sum += log ? g[j] : g[j] * v[j];
      if (!log) {
        for (int64_t j = 0; j < c; ++j) out[j] = v[j] * (g[j] - sum);
        continue;
      }
      exponentials(c, v, T(0), out);
      for (int64_t j = 0; j < c; ++j) out[j] = g[j] - out[j] * sum;
    }
  });
}

static constexpr int64_t kMseGrain = 32 * 1024;
int64_t mse_pieces(int64_t n) { return (n + kMseGrain - 1) / kMseGrain; }

template <class T>
double mse_forward(int64_t n, const T* x, const T* y, double* partial) {
  const int64_t grain = kMseGrain, pieces = mse_pieces(n);
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    double lanes[8] = {};
    int64_t i = begin;
    for (; i + 8 <= end; i += 8)
      for (int k = 0; k < 8; ++k) {
        double d = static_cast<double>(x[i + k] - y[i + k]);
        lanes[k] += d * d;
      }
    for (int k = 0; i < end; ++i, ++k) {
      double d = static_cast<double>(x[i] - y[i]);
      lanes[k] += d * d;
    }
    partial[begin / grain] =
        ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  });
  double total = 0;
  for (int64_t p = 0; p < pieces; ++p) total += partial[p];
  return total / static_cast<double>(n);
}

template <class T>
void mse_backward(int64_t n, const T* x, const T* y, T scale, T* gx) {
  parallel_for(n, 32 * 1024, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) gx[i] = (x[i] - y[i]) * scale;
  });
}

#define LOSS_OF(T)                                                                                      \
  template double cross_entropy_forward<T>(int64_t, int64_t, const T*, const int64_t*, T*);             \
  template void cross_entropy_backward<T>(int64_t, int64_t, const T*, const int64_t*, const T*, T, T*); \
  template void softmax_forward<T>(int64_t, int64_t, bool, const T*, T*);                               \
  template void softmax_backward<T>(int64_t, int64_t, bool, const T*, const T*, T*);                    \
  template double mse_forward<T>(int64_t, const T*, const T*, double*);                                 \
  template void mse_backward<T>(int64_t, const T*, const T*, T, T*);
LOSS_OF(float)
LOSS_OF(double)
#undef LOSS_OF

}  // namespace tenon::kernels
