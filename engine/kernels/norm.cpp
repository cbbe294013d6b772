#include "engine/kernels/norm.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "engine/kernels/room.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kBlock = 32;  // rows added up in T before they go into a double

int64_t norm_grain(int64_t c) {
  return std::max<int64_t>(kBlock, 32 * 1024 / std::max<int64_t>(1, c) / kBlock * kBlock);
}

// One row each; everything by value and without aliases, so that the loops become vector code.
template <class T>
void add_row(int64_t c, const T* __restrict v, T* __restrict acc) {
  for (int64_t j = 0; j < c; ++j) acc[j] += v[j];
}
template <class T>
void add_squares(int64_t c, const T* __restrict v, const T* __restrict mean, T* __restrict acc) {
  for (int64_t j = 0; j < c; ++j) acc[j] += (v[j] - mean[j]) * (v[j] - mean[j]);
}
template <class T>
void add_gradients(int64_t c, const T* __restrict v, const T* __restrict g, const T* __restrict mean,
                   const T* __restrict invstd, T* __restrict sum, T* __restrict dot) {
  for (int64_t j = 0; j < c; ++j) {
    sum[j] += g[j];
    dot[j] += g[j] * ((v[j] - mean[j]) * invstd[j]);
  }
}
template <class T>
void apply_row(int64_t c, const T* __restrict v, const T* __restrict mean, const T* __restrict a, const T* __restrict b,
               T* __restrict out) {
  for (int64_t j = 0; j < c; ++j) out[j] = (v[j] - mean[j]) * a[j] + b[j];
}
template <class T>
void gradient_row(int64_t c, const T* __restrict v, const T* __restrict g, const T* __restrict mean,
                  const T* __restrict k0, const T* __restrict k1, const T* __restrict k2, T* __restrict out) {
  for (int64_t j = 0; j < c; ++j) out[j] = k0[j] * g[j] + k1[j] * (v[j] - mean[j]) + k2[j];
}

/// What the functions below work in; `sums` at most two at once.
template <class T>
struct NormRoom {
  int64_t grain, pieces;
  double *sums, *partial;  ///< of all rows; of the rows of each piece
  T *blocks, *factors;     ///< of the rows that a piece adds up now; of each column
  NormRoom(int64_t rows, int64_t c, Room& room)
      : grain(norm_grain(c)),
        pieces((rows + grain - 1) / grain),
        sums(room.take<double>(2 * c)),
        partial(room.take<double>(pieces * 2 * c)),
        blocks(room.take<T>(pieces * 2 * c)),
        factors(room.take<T>(3 * c)) {}
};

/// sums[k][j] = sum over the rows of f(row pointer index, j)[k], for K sums at once. f adds row `r` to K accumulators
/// of c values.
template <class T, int K, class F>
void column_sums(int64_t rows, int64_t c, const NormRoom<T>& room, const F& add_row) {
  parallel_for(rows, room.grain, [&](int64_t begin, int64_t end) {
    const int64_t at = begin / room.grain * K * c;
    double* mine = room.partial + at;
    T* block = room.blocks + at;
    std::fill_n(mine, K * c, 0.0);
    for (int64_t r = begin; r < end; r += kBlock) {
      std::fill_n(block, K * c, T(0));
      for (int64_t q = r; q < std::min(end, r + kBlock); ++q) add_row(q, block);
      for (int64_t j = 0; j < K * c; ++j) mine[j] += static_cast<double>(block[j]);
    }
  });
  std::fill_n(room.sums, K * c, 0.0);
  for (int64_t p = 0; p < room.pieces; ++p)
    for (int64_t j = 0; j < K * c; ++j) room.sums[j] += room.partial[p * K * c + j];
}

}  // namespace

template <class T>
size_t batch_norm_workspace(int64_t rows, int64_t c) {
  Room room;
  NormRoom<T>(rows, c, room);
  return room.used();
}

template <class T>
void column_moments(int64_t rows, int64_t c, const T* x, T* mean, T* var, void* memory) {
  Room whole(memory);
  const NormRoom<T> room(rows, c, whole);
  column_sums<T, 1>(rows, c, room, [=](int64_t r, T* acc) { add_row(c, x + r * c, acc); });
  for (int64_t j = 0; j < c; ++j) mean[j] = static_cast<T>(room.sums[j] / static_cast<double>(rows));
  column_sums<T, 1>(rows, c, room, [=](int64_t r, T* acc) { add_squares(c, x + r * c, mean, acc); });
  for (int64_t j = 0; j < c; ++j) var[j] = static_cast<T>(room.sums[j] / static_cast<double>(rows));
}

template <class T>
void batch_norm_apply(int64_t rows, int64_t c, const T* x, const T* mean, const T* var, T eps, const T* gamma,
                      const T* beta, T* y, T* invstd, void* memory) {
  Room whole(memory);
  T *scale = NormRoom<T>(rows, c, whole).factors, *shift = scale + c;
  for (int64_t j = 0; j < c; ++j) {
    invstd[j] = T(1) / std::sqrt(var[j] + eps);
    scale[j] = gamma ? gamma[j] * invstd[j] : invstd[j];
    shift[j] = beta ? beta[j] : T(0);
  }
  parallel_for(rows, norm_grain(c), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) apply_row(c, x + r * c, mean, scale, shift, y + r * c);
  });
}

template <class T>
void batch_norm_backward(int64_t rows, int64_t c, bool batch, const T* x, const T* gy, const T* mean, const T* invstd,
                         const T* gamma, T* gx, T* ggamma, T* gbeta, void* memory) {
  Room whole(memory);
  const NormRoom<T> room(rows, c, whole);
  const double* sums = room.sums;
  if (ggamma || gbeta || (gx && batch))
    column_sums<T, 2>(rows, c, room,
                      [=](int64_t r, T* acc) { add_gradients(c, x + r * c, gy + r * c, mean, invstd, acc, acc + c); });
  for (int64_t j = 0; j < c; ++j) {
    if (gbeta) gbeta[j] = static_cast<T>(sums[j]);
    if (ggamma) ggamma[j] = static_cast<T>(sums[c + j]);
  }
  if (!gx) return;
  T* k = room.factors;  // gx = k0 * gy + k1 * (x - mean) + k2
  for (int64_t j = 0; j < c; ++j) {
    T scale = gamma ? gamma[j] * invstd[j] : invstd[j];
    k[j] = scale;
    k[c + j] = batch ? -scale * invstd[j] * static_cast<T>(sums[c + j] / static_cast<double>(rows)) : T(0);
    k[2 * c + j] = batch ? -scale * static_cast<T>(sums[j] / static_cast<double>(rows)) : T(0);
  }
  parallel_for(rows, norm_grain(c), [&](int64_t begin, int64_t end) {
    const T *k0 = k, *k1 = k0 + c, *k2 = k1 + c;
    for (int64_t r = begin; r < end; ++r) gradient_row(c, x + r * c, gy + r * c, mean, k0, k1, k2, gx + r * c);
  });
}

#define NORM_OF(T)                                                                                                   \
  template size_t batch_norm_workspace<T>(int64_t, int64_t);                                                         \
  template void column_moments<T>(int64_t, int64_t, const T*, T*, T*, void*);                                        \
  template void batch_norm_apply<T>(int64_t, int64_t, const T*, const T*, const T*, T, const T*, const T*, T*, T*,   \
                                    void*);                                                                          \
  template void batch_norm_backward<T>(int64_t, int64_t, bool, const T*, const T*, const T*, const T*, const T*, T*, \
                                       T*, T*, void*);
NORM_OF(float)
NORM_OF(double)
#undef NORM_OF

}  // namespace tenon::kernels
