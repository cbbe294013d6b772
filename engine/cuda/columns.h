#pragma once
#include "engine/cuda/rows.h"

// Sums down the columns of [rows, columns], as normalisations need them: several at once, each the value of a function
// of a row and a column. Up to 16 values are added in their own type before they go into a double.
namespace tenon::cuda::rows {

inline constexpr int kColumnThreads = 256;

/// Where a thread of a ColumnPlan's kernel stands in a block's tile of columns and rows.
struct ColumnPlace {
  int across, down, high;
  __device__ explicit ColumnPlace(int width)
      : across(static_cast<int>(threadIdx.x) % width),
        down(static_cast<int>(threadIdx.x) / width),
        high(kColumnThreads / width) {}
};

/// f(row, column, sums) adds to K sums of T; end(piece, column, sums) takes what a piece of rows comes to.
template <class T, int K, class F, class End>
static __global__ void __launch_bounds__(kColumnThreads)
    add_columns(F f, End end, int64_t n, int64_t columns, int width, int64_t tiles, int64_t pieces, int64_t length) {
  TENON_SHARED(double, shared, kColumnThreads);
  const ColumnPlace at(width);
  for (int64_t b = blockIdx.x; b < tiles * pieces; b += gridDim.x) {
    const int64_t column = b % tiles * width + at.across, piece = b / tiles;
    const bool there = column < columns;
    const int64_t last = (piece + 1) * length < n ? (piece + 1) * length : n;
    double sums[K] = {};
    for (int64_t r = piece * length + at.down; there && r < last;) {
      T few[K] = {};
      for (int q = 0; q < 16 && r < last; ++q, r += at.high) f(r, column, few);
      for (int k = 0; k < K; ++k) sums[k] += static_cast<double>(few[k]);
    }
    for (int k = 0; k < K; ++k) {
      shared[threadIdx.x] = sums[k];
      __syncthreads();
      for (int half = at.high / 2; half > 0; half /= 2) {
        if (at.down < half) shared[threadIdx.x] += shared[static_cast<int>(threadIdx.x) + half * width];
        __syncthreads();
      }
      sums[k] = shared[at.across];
      __syncthreads();
    }
    if (there && at.down == 0) end(piece, column, sums);
  }
}

/// The sums of pieces, as they are written and read again.
template <int K>
struct ColumnParts {
  double* parts;
  int64_t columns;
  __device__ void operator()(int64_t piece, int64_t column, const double (&sums)[K]) const {
    for (int k = 0; k < K; ++k) parts[(piece * K + k) * columns + column] = sums[k];
  }
};
template <int K>
struct ColumnPartsAgain {
  const double* parts;
  int64_t columns;
  __device__ void operator()(int64_t piece, int64_t column, double (&sums)[K]) const {
    for (int k = 0; k < K; ++k) sums[k] += parts[(piece * K + k) * columns + column];
  }
};

/// Adds up and gives end(0, column, sums) the sums of every column.
template <class T, int K, class F, class End>
void column_sums(const Args& c, int64_t n, int64_t columns, const F& f, const End& end) {
  const ColumnPlan plan(n, columns);
  const ColumnParts<K> parts{c.scratch<double>(plan.pieces * columns * K), columns};
  launch(add_columns<T, K, F, ColumnParts<K>>, plan.blocks(), kColumnThreads, c, f, parts, n, columns, plan.width,
         plan.tiles, plan.pieces, plan.length);
  const int wide = power_of_two(columns, 32);
  const int64_t tiles = ceil_div(columns, wide);
  launch(add_columns<double, K, ColumnPartsAgain<K>, End>, blocks_for(tiles, 1), kColumnThreads, c,
         ColumnPartsAgain<K>{parts.parts, columns}, end, plan.pieces, columns, wide, tiles, 1, plan.pieces);
}

/// f(row, column) for every place. f holds what belongs to a column in device memory that a cache keeps.
template <class F>
static __global__ void __launch_bounds__(kColumnThreads)
    each_place(F f, int64_t n, int64_t columns, int width, int64_t tiles, int64_t pieces, int64_t length) {
  const ColumnPlace at(width);
  for (int64_t b = blockIdx.x; b < tiles * pieces; b += gridDim.x) {
    const int64_t column = b % tiles * width + at.across, piece = b / tiles;
    const int64_t last = (piece + 1) * length < n ? (piece + 1) * length : n;
    if (column < columns) f(piece * length + at.down, last, at.high, column);
  }
}
/// f(first row, end, step, column) for the rows of every thread.
template <class F>
void for_columns(const Args& c, int64_t n, int64_t columns, const F& f) {
  const int width = power_of_two(columns, 64), high = kColumnThreads / width;
  const int64_t tiles = ceil_div(columns, width), length = 8 * high, pieces = ceil_div(n, length);
  launch(each_place<F>, blocks_for(tiles * pieces, 1), kColumnThreads, c, f, n, columns, width, tiles, pieces, length);
}

}  // namespace tenon::cuda::rows
