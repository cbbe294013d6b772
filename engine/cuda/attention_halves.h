#pragma once
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/cuda/warp_matrix.h"
#include "engine/cuda/attention.h"
#include "engine/cuda/gemm_tile.h"
#include "engine/op/scalar.h"

// Note [Attention of halves]
// The tiles of Note [Attention in tiles], multiplied on tensor cores (Note [Products by tensor cores]). A block has
// four warps with 16 lines each of a side that stays (the queries; for the gradients of keys and values, the keys) and
// walks over the other side, whose rows come into shared memory as they are, with zeros up to a width of 32, 64 or 128.
// Scores, statistics and sums are f32; shares, and in the backward pass the gradients of scores, are rounded to the
// type of the operands to be multiplied, and so is the result, once. The scale is applied to sums and not to what is
// rounded, since f16 has few small numbers. A warp knows which elements of its sums a lane has from a matrix of their
// places that it loads.
namespace tenon::cuda {

inline constexpr int kHalfLines = 64, kHalfThreads = 128, kWidestHalves = 128;

template <class T>
inline constexpr warp::Half kHalfType = std::is_same_v<T, element::Bfloat> ? warp::Half::bf16 : warp::Half::f16;

/// Shared memory that matrices are read from.
template <class T>
struct alignas(32) MatrixRoom {
  static constexpr int kCount = 32 / sizeof(T);
  T v[kCount];
};
using HalfPiece = Quad<uint32_t>;  ///< eight halves

/// Halves between the rows of a tile: rows begin in different banks, at multiples of 16 bytes.
constexpr int half_line(int wide) { return wide + 8; }

/// Rows of a side on their way to shared memory.
template <int Rows, int Wide>
struct HalfRows {
  static constexpr int kEach = Rows * Wide / 8 / kHalfThreads;
  HalfPiece held[kEach];

  __device__ static int row(int i) {
    return static_cast<int>(threadIdx.x) / (Wide / 8) + i * (kHalfThreads / (Wide / 8));
  }
  __device__ static int col() { return static_cast<int>(threadIdx.x) % (Wide / 8) * 8; }

  /// Rows from `row0` of `rows`, zeros outside.
  template <class T>
  __device__ void fetch(const AttentionRows<const T>& m, int64_t row0, int64_t rows, int64_t cols) {
    const int there = static_cast<int>(rows - row0 < Rows ? rows - row0 : Rows), width = static_cast<int>(cols);
    const T* from = m.data + (row0 + row(0)) * m.row + col();
    const int64_t step = kHalfThreads / (Wide / 8) * m.row;
#pragma unroll
    for (int i = 0; i < kEach; ++i, from += step) {
      held[i] = {};
      if (row(i) < there && col() < width) held[i] = *reinterpret_cast<const HalfPiece*>(from);
    }
  }
  __device__ void put(uint16_t* to) const {
#pragma unroll
    for (int i = 0; i < kEach; ++i) *reinterpret_cast<HalfPiece*>(to + row(i) * half_line(Wide) + col()) = held[i];
  }
};

/// Where the elements of Sums are that this lane has.
class SumPlaces {
 public:
  /// `room`: 256 floats of the warp.
  __device__ explicit SumPlaces(float* room) {
    static_assert(warp::Sums::kEach == 8);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int i = lane; i < 256; i += 32) room[i] = static_cast<float>(i);
    __syncwarp();
    warp::Sums places;
    places.load(room, 16);
#pragma unroll
    for (int i = 0; i < 8; ++i) four_[i / 4] |= static_cast<uint32_t>(places.x[i]) << i % 4 * 8;
  }
  __device__ int row(int i) const { return static_cast<int>(four_[i / 4] >> (i % 4 * 8 + 4) & 15u); }
  __device__ int col(int i) const { return static_cast<int>(four_[i / 4] >> i % 4 * 8 & 15u); }
  /// Without it all that follows from the places is kept in registers over a loop, which has none to spare.
  __device__ void forget_what_follows() {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(four_[0]), "+r"(four_[1]));
#endif
  }

 private:
  uint32_t four_[2] = {};
};

/// Writes sums of 16 rows from `row0` of `rows`, 16 columns from `col0` of `cols`, rounded. `room`: 256 floats of the
/// warp, which is done with them at the next __syncwarp().
template <class T>
__device__ void write_half_sums(const warp::Sums& sums, float* room, const AttentionRows<T>& m, int64_t row0,
                                int64_t rows, int col0, int64_t cols) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = lane / 2, col = lane % 2 * 8;
  sums.store(room, 16);
  __syncwarp();
  HalfPiece piece;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const T low = element::made<T>(room[row * 16 + col + 2 * i]),
            high = element::made<T>(room[row * 16 + col + 2 * i + 1]);
    piece.v[i] = low.bits | static_cast<uint32_t>(high.bits) << 16;
  }
  if (row0 + row < rows && col0 + col < cols)
    *reinterpret_cast<HalfPiece*>(m.data + (row0 + row) * m.row + col0 + col) = piece;
}

/// Of a share that is rounded to a half afterwards.
__device__ inline float half_exp(float x) {
#ifdef __CUDA_ARCH__
  return __expf(x);  // a few instructions; wrong by less than 1e-5 of it
#else
  return sc::exp(x);
#endif
}

/// Calls f with a value of the type of a half and the width that rows have in shared memory. False for what no kernel
/// for tensor cores takes.
template <class F>
bool with_halves(DType t, const AttentionSizes& a, F&& f) {
  const int64_t widest = a.d > a.dv ? a.d : a.dv;
  if ((t != DType::f16 && t != DType::bf16) || widest > kWidestHalves) return false;
  const auto of = [&](auto one) {
    if (widest <= 32)
      f(one, std::integral_constant<int, 32>{});
    else if (widest <= 64)
      f(one, std::integral_constant<int, 64>{});
    else
      f(one, std::integral_constant<int, kWidestHalves>{});
  };
  if (t == DType::f16)
    of(element::Half{});
  else
    of(element::Bfloat{});
  return true;
}

inline dim3 half_grid(int64_t rows, int64_t batch) {
  return {static_cast<unsigned>(ceil_div(rows, kHalfLines)), 1, tile_layers(batch)};
}

}  // namespace tenon::cuda
