#include "engine/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"

namespace tenon::kernels {
namespace {

constexpr int kLanes = 16;
constexpr int64_t kPieces = 32;  // partial sums over rows

int64_t layer_norm_grain(int64_t c) { return std::max<int64_t>(1, 16 * 1024 / std::max<int64_t>(1, c)); }
// Of layer_norm_backward().
int64_t backward_cut(int64_t rows, int64_t c) {
  return std::max<int64_t>(layer_norm_grain(c), (rows + kPieces - 1) / kPieces);
}

template <class T>
T add_lanes(const T* lanes) {
  T four[4];
  for (int k = 0; k < 4; ++k) four[k] = (lanes[k] + lanes[k + 8]) + (lanes[k + 4] + lanes[k + 12]);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

/// sum of f(j) for j in [0, c), in lanes.
template <class T, class F>
inline T lane_sum(int64_t c, const F& f) {
  T lanes[kLanes] = {};
  int64_t j = 0;
  for (; j + kLanes <= c; j += kLanes)
    for (int k = 0; k < kLanes; ++k) lanes[k] += f(j + k);
  for (int k = 0; j < c; ++j, ++k) lanes[k] += f(j);
  return add_lanes(lanes);
}

template <class T>
void row_backward(int64_t c, bool rms, const T* __restrict v, const T* __restrict g, const T* __restrict gamma, T m,
                  T r, T* __restrict out) {
  T n = static_cast<T>(c), a, b;
  if (gamma) {
    a = rms ? T(0) : lane_sum<T>(c, [=](int64_t j) { return g[j] * gamma[j]; });
    b = lane_sum<T>(c, [=](int64_t j) { return g[j] * gamma[j] * (v[j] - m); });
  } else {
    a = rms ? T(0) : lane_sum<T>(c, [=](int64_t j) { return g[j]; });
    b = lane_sum<T>(c, [=](int64_t j) { return g[j] * (v[j] - m); });
  }
  T k1 = -b * r * r * r / n, k0 = -a * r / n;
  if (gamma)
    for (int64_t j = 0; j < c; ++j) out[j] = g[j] * gamma[j] * r + (v[j] - m) * k1 + k0;
  else
    for (int64_t j = 0; j < c; ++j) out[j] = g[j] * r + (v[j] - m) * k1 + k0;
}

template <class T>
void row_sums(int64_t c, const T* __restrict v, const T* __restrict g, T m, T r, T* __restrict dot, T* __restrict sum) {
  for (int64_t j = 0; j < c; ++j) {
    dot[j] += g[j] * ((v[j] - m) * r);
    sum[j] += g[j];
  }
}

}  // namespace

template <class T>
void layer_norm_forward(int64_t rows, int64_t c, bool rms, T eps, const T* x, const T* gamma, const T* beta, T* y,
                        T* mean, T* rstd) {
  parallel_for(rows, layer_norm_grain(c), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* __restrict v = x + i * c;
      T* __restrict out = y + i * c;
      T m = rms ? T(0) : lane_sum<T>(c, [=](int64_t j) { return v[j]; }) / static_cast<T>(c);
      T var = lane_sum<T>(c, [=](int64_t j) { return (v[j] - m) * (v[j] - m); }) / static_cast<T>(c);
      T r = T(1) / std::sqrt(var + eps);
      if (gamma && beta)
        for (int64_t j = 0; j < c; ++j) out[j] = (v[j] - m) * r * gamma[j] + beta[j];
      else if (gamma)
        for (int64_t j = 0; j < c; ++j) out[j] = (v[j] - m) * r * gamma[j];
      else if (beta)
        for (int64_t j = 0; j < c; ++j) out[j] = (v[j] - m) * r + beta[j];
      else
        for (int64_t j = 0; j < c; ++j) out[j] = (v[j] - m) * r;
      if (!rms) mean[i] = m;
      rstd[i] = r;
    }
  });
}

template <class T>
size_t layer_norm_workspace(int64_t rows, int64_t c, bool sums) {
  const int64_t grain = backward_cut(rows, c);
  return sums ? static_cast<size_t>((rows + grain - 1) / grain * 2 * c) * sizeof(T) : 0;
}

template <class T>
void layer_norm_backward(int64_t rows, int64_t c, bool rms, const T* x, const T* gy, const T* gamma, const T* mean,
                         const T* rstd, T* gx, T* ggamma, T* gbeta, void* room) {
  bool sums = ggamma || gbeta;
  int64_t grain = backward_cut(rows, c), pieces = (rows + grain - 1) / grain;
  T* partial = static_cast<T*>(room);
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    T* mine = partial + (sums ? begin / grain * 2 * c : 0);
    if (sums) std::fill_n(mine, 2 * c, T(0));
    for (int64_t i = begin; i < end; ++i) {
      T m = rms ? T(0) : mean[i];
      if (gx) row_backward(c, rms, x + i * c, gy + i * c, gamma, m, rstd[i], gx + i * c);
      if (sums) row_sums(c, x + i * c, gy + i * c, m, rstd[i], mine, mine + c);
    }
  });
  if (!sums) return;
  for (int64_t j = 0; j < c; ++j) {
    double dot = 0, sum = 0;
    for (int64_t p = 0; p < pieces; ++p) {
      dot += static_cast<double>(partial[p * 2 * c + j]);
      sum += static_cast<double>(partial[p * 2 * c + c + j]);
    }
    if (ggamma) ggamma[j] = static_cast<T>(dot);
    if (gbeta) gbeta[j] = static_cast<T>(sum);
  }
}

#define LAYER_NORM_OF(T)                                                                                             \
  template size_t layer_norm_workspace<T>(int64_t, int64_t, bool);                                                   \
  template void layer_norm_forward<T>(int64_t, int64_t, bool, T, const T*, const T*, const T*, T*, T*, T*);          \
  template void layer_norm_backward<T>(int64_t, int64_t, bool, const T*, const T*, const T*, const T*, const T*, T*, \
                                       T*, T*, void*);
LAYER_NORM_OF(float)
LAYER_NORM_OF(double)
#undef LAYER_NORM_OF

}  // namespace tenon::kernels
