#include "engine/cuda/attention_halves.h"

namespace tenon::cuda {
namespace {

/// One of the two walks of the backward pass: the queries stay and their gradient is added up, or (ByKey) the keys
/// stay, and those of keys and values are.
template <int Wide, bool ByKey>
struct HalvesBack {
  /// The side that stays is kept in registers, but where two wide sums leave no room for it.
  static constexpr bool kHeld = !ByKey || Wide <= 64;
  static constexpr int kMoving = Wide <= 64 ? 32 : 16;  ///< rows of a tile
  static constexpr int kLine = half_line(Wide), kSteps = Wide / 16, kBlockLine = 24;
  static constexpr int kStaying = kHeld ? 0 : 2 * kHalfLines * kLine;  ///< halves in shared memory all along
  static constexpr int kRoom =
      kHeld ? (2 * kMoving > kHalfLines ? 2 * kMoving : kHalfLines) * kLine : kStaying + 2 * kMoving * kLine;
};

/// 16 rows of the side that stays.
template <warp::Half Type, int Wide, bool Held>
struct StayingHalves {
  static constexpr int kSteps = Wide / 16, kLine = half_line(Wide);
  warp::Left<Type> held[Held ? kSteps : 1];
  const uint16_t* from = nullptr;

  __device__ void take(const uint16_t* rows) {
    from = rows;
    if constexpr (Held) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) held[step].load(from + step * 16, kLine);
    }
  }
  /// The products with 16 rows of the other side.
  __device__ warp::Sums products(const uint16_t* other) {
    warp::Sums s;
    s.fill(0);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      warp::RightTurned<Type> side;
      side.load(other + step * 16, kLine);
      if constexpr (!Held) held[0].load(from + step * 16, kLine);
      warp::multiply(s, held[Held ? step : 0], side);
    }
    return s;
  }
};

/// sums += a block of 16 by 16 times 16 rows.
template <warp::Half Type, int Steps>
__device__ void add_half_products(warp::Sums (&sums)[Steps], const warp::Left<Type>& block, const uint16_t* rows) {
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    warp::Right<Type> side;
    side.load(rows + step * 16, half_line(Steps * 16));
    warp::multiply(sums[step], block, side);
  }
}

/// Makes a block of a warp's sums a side of a product. `room`: of the warp; it is free for the next block afterwards.
template <class T, int Line>
__device__ void block_of_halves(const warp::Sums& sums, const SumPlaces& places, uint16_t* room,
                                warp::Left<kHalfType<T>>& block) {
#pragma unroll
  for (int i = 0; i < warp::Sums::kEach; ++i)
    room[places.row(i) * Line + places.col(i)] = element::made<T>(sums.x[i]).bits;
  __syncwarp();
  block.load(room, Line);
  __syncwarp();
}

/// Scores s and gradients of shares, of 16 by 16, become shares (of what they are multiplied with after dropout) and
/// gradients of scores, but for the scale. `stat`: of the block's queries, the log-sum-exp of each and, kHalfLines
/// further on, its delta.
template <class T, bool ByKey>
__device__ void half_scores_back(const AttentionSizes& a, int64_t b, int64_t mask_from, int64_t query0, int64_t key0,
                                 const SumPlaces& places, const float* stat, warp::Sums& s, warp::Sums& grad) {
  const auto scale = static_cast<float>(a.scale);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto within = [](int64_t n) { return static_cast<int>(n < -16 ? -16 : n < 16 ? n : 16); };
  const int queries = within(a.lq - query0), keys = within(a.lk - key0);
  const int ahead = a.causal ? within(key0 - query0) : -16;  // of the first query, the first key
  uint32_t kept = 0;                                         // of query lane / 2, eight keys
  float factor = 1;
  if (a.p > 0) {
    AttentionDraws<float> draws(a);
    factor = draws.scale;
    const int64_t first = (b * a.lq + query0 + lane / 2) * a.lk + key0 + lane % 2 * 8;
#pragma unroll
    for (int j = 0; j < 8; ++j) kept |= static_cast<uint32_t>(draws.kept(static_cast<uint64_t>(first + j))) << j;
  }
#pragma unroll
  for (int i = 0; i < warp::Sums::kEach; ++i) {
    const int row = places.row(i), col = places.col(i), in_query = ByKey ? col : row, in_key = ByKey ? row : col;
    float keep = 1;
    if (a.p > 0) {
      const uint32_t eight = __shfl_sync(0xffffffffu, kept, in_query * 2 + in_key / 8);
      keep = eight >> in_key % 8 & 1u ? factor : 0.0f;
    }
    const float total = stat[in_query], delta = stat[kHalfLines + in_query];
    const bool seen = in_query < queries && in_key < keys && in_key + ahead <= in_query &&
                      total != -std::numeric_limits<float>::infinity();
    float v = s.x[i] * scale;
    if (a.mask.data && seen) v = a.masked<T>(v, mask_from, query0 + in_query, key0 + in_key);
    const float p = seen ? half_exp(v - total) : 0.0f;
    grad.x[i] = seen ? p * (grad.x[i] * keep - delta) : 0.0f;
    s.x[i] = p * keep;
  }
}

/// Of queries from `query0` on. Zeros past the last.
template <class T>
__device__ void fetch_stats(const AttentionGradient& g, int64_t b, int64_t query0, int count, float* stat) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= count) return;
  const int64_t query = query0 + i;
  const bool there = query < g.sizes.lq;
  const auto lse = g.sizes.rows<const float>(g.lse, b);
  stat[i] = there ? lse.data[query * lse.row] : 0.0f;
  stat[kHalfLines + i] = there ? static_cast<const float*>(g.delta)[b * g.sizes.lq + query] : 0.0f;
}

template <class T, int Wide, bool ByKey>
__global__ void __launch_bounds__(kHalfThreads, Wide == 32 ? 3 : 2) attention_backward_halves(AttentionGradient g) {
  using Shape = HalvesBack<Wide, ByKey>;
  constexpr warp::Half kType = kHalfType<T>;
  constexpr int kMoving = Shape::kMoving, kLine = Shape::kLine, kSteps = Shape::kSteps, kBlock = 16 * Shape::kBlockLine;
  TENON_SHARED(MatrixRoom<uint16_t>, tiles, Shape::kRoom / MatrixRoom<uint16_t>::kCount);
  TENON_SHARED(MatrixRoom<uint16_t>, blocks, kHalfThreads / 32 * kBlock / MatrixRoom<uint16_t>::kCount);
  TENON_SHARED(float, stats, 2 * kHalfLines);
  const AttentionSizes& a = g.sizes;
  const int number = static_cast<int>(threadIdx.x) / 32, own = number * 16;
  uint16_t *staying = tiles->v, *moving = staying + Shape::kStaying, *block = blocks->v + number * kBlock;
  float* sum_room = reinterpret_cast<float*>(tiles->v) + number * 256;  // while no tiles are there
  // Blocks that see the most begin first.
  const int64_t from = int64_t{ByKey ? blockIdx.x : gridDim.x - 1 - blockIdx.x} * kHalfLines,
                lines = ByKey ? a.lk : a.lq;
  const int64_t begin = ByKey && a.causal ? from : 0, end = ByKey                                  ? a.lq
                                                            : a.causal && from + kHalfLines < a.lk ? from + kHalfLines
                                                                                                   : a.lk;
  SumPlaces places(sum_room);
  for (int64_t b = blockIdx.z; b < a.batch; b += gridDim.z) {
    const auto q = a.rows<const T>(g.q, b), k = a.rows<const T>(g.k, b), v = a.rows<const T>(g.v, b),
               gy = a.rows<const T>(g.gy, b);
    const int64_t mask_from = a.mask.data ? a.offset(a.mask, b) : 0;
    // Queries and keys are `d` wide, values and gradients of the result `dv`.
    StayingHalves<kType, Wide, Shape::kHeld> first, second;
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      HalfRows<kHalfLines, Wide> rows;
      rows.fetch(side == 0 ? (ByKey ? k : q) : (ByKey ? v : gy), from, lines, side == 0 ? a.d : a.dv);
      uint16_t* to = staying + (Shape::kHeld ? 0 : side * kHalfLines * kLine);
      __syncthreads();
      rows.put(to);
      __syncthreads();
      (side == 0 ? first : second).take(to + own * kLine);
    }
    warp::Sums of_first[kSteps], of_second[ByKey ? kSteps : 1];
#pragma unroll
    for (auto& s : of_first) s.fill(0);
#pragma unroll
    for (auto& s : of_second) s.fill(0);
    if (!ByKey) fetch_stats<T>(g, b, from, kHalfLines, stats);
    HalfRows<kMoving, Wide> next_first, next_second;
    const auto fetch = [&](int64_t row) {
      next_first.fetch(ByKey ? q : k, row, end, a.d);
      next_second.fetch(ByKey ? gy : v, row, end, a.dv);
    };
    if (begin < end) fetch(begin);
    for (int64_t row = begin; row < end; row += kMoving) {
      __syncthreads();
      next_first.put(moving);
      next_second.put(moving + kMoving * kLine);
      if (ByKey) fetch_stats<T>(g, b, row, kMoving, stats);
      __syncthreads();
      if (row + kMoving < end) fetch(row + kMoving);
#pragma unroll
      for (int n = 0; n < kMoving; n += 16) {
        const uint16_t *other_first = moving + n * kLine, *other_second = other_first + kMoving * kLine;
        places.forget_what_follows();
        warp::Sums s = first.products(other_first), grad = second.products(other_second);
        half_scores_back<T, ByKey>(a, b, mask_from, ByKey ? row + n : from + own, ByKey ? from + own : row + n, places,
                                   stats + (ByKey ? n : own), s, grad);
        warp::Left<kType> left;
        if constexpr (ByKey) {
          block_of_halves<T, Shape::kBlockLine>(s, places, block, left);
          add_half_products<kType>(of_second, left, other_second);
        }
        block_of_halves<T, Shape::kBlockLine>(grad, places, block, left);
        add_half_products<kType>(of_first, left, other_first);
      }
    }
    __syncthreads();
    const auto scale = static_cast<float>(a.scale);
    const auto gradient = a.rows<T>(ByKey ? g.gk : g.gq, b), of_values = a.rows<T>(g.gv, b);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step * 16 < a.d) {
#pragma unroll
        for (float& x : of_first[step].x) x *= scale;
        write_half_sums(of_first[step], sum_room, gradient, from + own, lines, step * 16, a.d);
        __syncwarp();
      }
      if (ByKey && step * 16 < a.dv) {
        write_half_sums(of_second[ByKey ? step : 0], sum_room, of_values, from + own, lines, step * 16, a.dv);
        __syncwarp();
      }
    }
  }
}

}  // namespace

bool attention_gradient_of_halves(const Args& c, DType type, const AttentionGradient& g) {
  for (const AttentionSide* s : {&g.q, &g.k, &g.v, &g.gy, &g.gq, &g.gk, &g.gv})
    if (!attention_in_pieces(g.sizes, *s)) return false;
  return with_halves(type, g.sizes, [&](auto one, auto wide) {
    using T = decltype(one);
    launch(attention_backward_halves<T, wide(), false>, half_grid(g.sizes.lq, g.sizes.batch), kHalfThreads, c, g);
    launch(attention_backward_halves<T, wide(), true>, half_grid(g.sizes.lk, g.sizes.batch), kHalfThreads, c, g);
  });
}

}  // namespace tenon::cuda
