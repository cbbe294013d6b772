#include "engine/cuda/attention_halves.h"

namespace tenon::cuda {
namespace {

template <int Wide>
struct HalvesForward {
  static constexpr int kKeys = 32;  ///< of a tile
  static constexpr int kLine = half_line(Wide), kScores = kKeys + 8, kSteps = Wide / 16;
  static_assert(2 * kKeys >= kHalfLines, "the queries' tile lies where keys and values lie afterwards");
};

/// The scores of a warp's 16 queries and one tile of keys, in `scores`, become shares there, halves in the first half
/// of each row. Lanes 2 r and 2 r + 1 have query r, in fours of keys by turns.
template <class T, int Wide>
struct HalfSoftmax {
  using Shape = HalvesForward<Wide>;
  float top = -std::numeric_limits<float>::infinity(), total = 0;

  /// Returns what the sums so far are multiplied with.
  __device__ float take(const AttentionSizes& a, int64_t b, int64_t mask_from, int64_t query, int64_t from_key,
                        float* scores) {
    constexpr float kOut = -std::numeric_limits<float>::infinity();
    constexpr int kFours = Shape::kKeys / 8;
    const int lane = static_cast<int>(threadIdx.x) % 32, turn = lane % 2;
    float* row = scores + lane / 2 * Shape::kScores;
    const int64_t end = a.causal && query + 1 < a.lk ? query + 1 : a.lk;
    const int seen = query < a.lq ? static_cast<int>(end - from_key < Shape::kKeys ? end - from_key : Shape::kKeys) : 0;
    const auto scale = static_cast<float>(a.scale);
    float s[kFours][4], largest = top;
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      const int key = (2 * i + turn) * 4;
      const Quad<float> four = *reinterpret_cast<const Quad<float>*>(row + key);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float v = four.v[j] * scale;
        if (a.mask.data && key + j < seen) v = a.masked<T>(v, mask_from, query, from_key + key + j);
        s[i][j] = v = key + j < seen ? v : kOut;
        largest = v > largest ? v : largest;
      }
    }
    const float other = __shfl_xor_sync(0xffffffffu, largest, 1);
    largest = other > largest ? other : largest;
    const bool nothing = largest == kOut;  // no key is seen yet
    const float shrink = nothing ? 1.0f : half_exp(top - largest);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kFours; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        s[i][j] = nothing ? 0.0f : half_exp(s[i][j] - largest);
        sum += s[i][j];
      }
    if (a.p > 0) {
      AttentionDraws<float> draws(a);
      const int64_t first = (b * a.lq + query) * a.lk + from_key;
#pragma unroll
      for (int i = 0; i < kFours; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) s[i][j] *= draws.factor(static_cast<uint64_t>(first + (2 * i + turn) * 4 + j));
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    total = total * shrink + sum;
    top = largest;
    __syncwarp();
    auto* shares = reinterpret_cast<uint32_t*>(row);
#pragma unroll
    for (int i = 0; i < kFours; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const T low = element::made<T>(s[i][2 * j]), high = element::made<T>(s[i][2 * j + 1]);
        shares[(2 * i + turn) * 2 + j] = low.bits | static_cast<uint32_t>(high.bits) << 16;
      }
    return shrink;
  }
};

template <class T, int Wide>
__global__ void __launch_bounds__(kHalfThreads, Wide <= 64 ? 3 : 2) attention_forward_halves(AttentionForward f) {
  using Shape = HalvesForward<Wide>;
  constexpr warp::Half kType = kHalfType<T>;
  constexpr int kKeys = Shape::kKeys, kLine = Shape::kLine, kSteps = Shape::kSteps, kScores = Shape::kScores;
  TENON_SHARED(MatrixRoom<uint16_t>, tiles, 2 * kKeys * kLine / MatrixRoom<uint16_t>::kCount);
  TENON_SHARED(MatrixRoom<float>, score_room, kHalfLines * kScores / MatrixRoom<float>::kCount);
  TENON_SHARED(float, factors, kHalfLines);
  const AttentionSizes& a = f.sizes;
  const int own = static_cast<int>(threadIdx.x) / 32 * 16, lane = static_cast<int>(threadIdx.x) % 32;
  uint16_t *keys = tiles->v, *values = keys + kKeys * kLine;
  float *scores = score_room->v + own * kScores, *factor = factors + own;
  // Blocks that see the most keys begin first.
  const int64_t from_query = int64_t{gridDim.x - 1 - blockIdx.x} * kHalfLines, query = from_query + own + lane / 2;
  const int64_t seen = a.causal && from_query + kHalfLines < a.lk ? from_query + kHalfLines : a.lk;
  SumPlaces places(scores);
  for (int64_t b = blockIdx.z; b < a.batch; b += gridDim.z) {
    const auto k = a.rows<const T>(f.k, b), v = a.rows<const T>(f.v, b);
    const int64_t mask_from = a.mask.data ? a.offset(a.mask, b) : 0;
    __syncthreads();
    {
      HalfRows<kHalfLines, Wide> rows;
      rows.fetch(a.rows<const T>(f.q, b), from_query, a.lq, a.d);
      rows.put(keys);
    }
    __syncthreads();
    warp::Left<kType> q[kSteps];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) q[step].load(keys + own * kLine + step * 16, kLine);
    warp::Sums out[kSteps];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) out[step].fill(0);
    HalfSoftmax<T, Wide> softmax;
    HalfRows<kKeys, Wide> next_keys, next_values;
    next_keys.fetch(k, 0, seen, a.d);
    next_values.fetch(v, 0, seen, a.dv);
    for (int64_t from_key = 0; from_key < seen; from_key += kKeys) {
      __syncthreads();
      next_keys.put(keys);
      next_values.put(values);
      __syncthreads();
      if (from_key + kKeys < seen) {
        next_keys.fetch(k, from_key + kKeys, seen, a.d);
        next_values.fetch(v, from_key + kKeys, seen, a.dv);
      }
#pragma unroll
      for (int n = 0; n < kKeys; n += 16) {
        warp::Sums s;
        s.fill(0);
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
          warp::RightTurned<kType> side;
          side.load(keys + n * kLine + step * 16, kLine);
          warp::multiply(s, q[step], side);
        }
        s.store(scores + n, kScores);
      }
      __syncwarp();
      places.forget_what_follows();
      const float shrink = softmax.take(a, b, mask_from, query, from_key, scores);
      if (lane % 2 == 0) factor[lane / 2] = shrink;
      __syncwarp();
#pragma unroll
      for (int i = 0; i < warp::Sums::kEach; ++i) {
        const float each = factor[places.row(i)];
#pragma unroll
        for (int step = 0; step < kSteps; ++step) out[step].x[i] *= each;
      }
#pragma unroll
      for (int n = 0; n < kKeys; n += 16) {
        warp::Left<kType> shares;
        shares.load(reinterpret_cast<const uint16_t*>(scores) + n, 2 * kScores);
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
          warp::Right<kType> side;
          side.load(values + n * kLine + step * 16, kLine);
          warp::multiply(out[step], shares, side);
        }
      }
    }
    const float total = softmax.total;
    __syncwarp();
    if (lane % 2 == 0) {
      factor[lane / 2] = total != 0.0f ? 1.0f / total : 0.0f;
      const auto lse = a.rows<float>(f.lse, b);
      if (query < a.lq)
        lse.data[query * lse.row] =
            total != 0.0f ? softmax.top + std::log(total) : -std::numeric_limits<float>::infinity();
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < warp::Sums::kEach; ++i) {
      const float each = factor[places.row(i)];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) out[step].x[i] *= each;
    }
    const auto y = a.rows<T>(f.y, b);
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      if (step * 16 < a.dv) {
        write_half_sums(out[step], scores, y, from_query + own, a.lq, step * 16, a.dv);
        __syncwarp();
      }
  }
}

}  // namespace

bool attention_in_pieces(const AttentionSizes& a, const AttentionSide& s) {
  bool pieces = s.col == 1 && s.row % 8 == 0 && reinterpret_cast<uintptr_t>(s.data) % sizeof(HalfPiece) == 0;
  for (int i = 0; i < a.axes; ++i) pieces = pieces && s.batch[i] % 8 == 0;
  return pieces && a.d % 8 == 0 && a.dv % 8 == 0;
}

bool attention_of_halves(const Args& c, DType type, const AttentionForward& f) {
  for (const AttentionSide* s : {&f.q, &f.k, &f.v, &f.y})
    if (!attention_in_pieces(f.sizes, *s)) return false;
  return with_halves(type, f.sizes, [&](auto one, auto wide) {
    launch(attention_forward_halves<decltype(one), wide()>, half_grid(f.sizes.lq, f.sizes.batch), kHalfThreads, c, f);
  });
}

}  // namespace tenon::cuda
