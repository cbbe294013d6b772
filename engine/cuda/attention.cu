#include "engine/cuda/attention.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "engine/cuda/gemm_tile.h"
#include "engine/op/scalar.h"

// Note [Attention in tiles]
// After Dao et al., "FlashAttention" (2022): a block holds 64 queries (or 64 keys, of the backward pass), walks over
// the other side in tiles of 64, and keeps the sums of its rows in registers, so that no matrix of scores lies in
// memory. A tile of scores is a product as any other (multiply_tile); the shares made of it go through shared memory
// and are the left side of a second product, whose right side comes in strips of kStrip rows. Thread (x, y) of 16 by 16
// has the scores of 4 queries (by y) and 4 keys (by x). The backward pass computes the scores again, once for the
// gradient of the queries and once for those of keys and values: each sum has one order, and nothing is added across
// blocks.
namespace tenon::cuda {
namespace {

constexpr int kAttentionTile = 64, kStrip = 8, kShareLine = kAttentionTile / 4 + 1;
/// Of elements of type T.
template <class T>
using AttentionSum = typename SumOf<T>::type;
/// f64 has tiles of the same size, so thinner pieces of the inner axis, to fit the shared memory.
template <class T>
constexpr int kScoreDepth = sizeof(T) == 8 ? 8 : 16;

/// A thread's place in a tile of queries and keys of problem b.
struct AttentionPlace {
  int64_t b, from_query, from_key;
  int x, y;
  __device__ int64_t query(int i) const { return from_query + y * 4 + i; }
  __device__ int64_t key(int j) const { return from_key + x * 4 + j; }
};

/// s = the products of 4 by 4 rows of `left` (from row i0 of `rows`) and `right` (from j0 of `cols`).
template <class T>
__device__ void attention_products(const AttentionRows<const T>& left, int64_t i0, int64_t rows,
                                   const AttentionRows<const T>& right, int64_t j0, int64_t cols, int64_t inner,
                                   AttentionSum<T> (&s)[4][4]) {
  MatrixSource<T, kAttentionTile, kScoreDepth<T>> a(left.data, left.row, left.col, i0, rows, inner);
  MatrixSource<T, kAttentionTile, kScoreDepth<T>> b(right.data, right.row, right.col, j0, cols, inner);
  for (auto& row : s)
    for (auto& v : row) v = 0;
  multiply_tile<AttentionSum<T>, kAttentionTile, kScoreDepth<T>>(a, b, 0, inner, s);
}

/// Scales and masks scores; those outside the matrix are -inf.
template <class T>
__device__ void attention_mask(const AttentionSizes& a, const AttentionPlace& at, AttentionSum<T> (&s)[4][4]) {
  using Sum = AttentionSum<T>;
  const Sum scale = static_cast<Sum>(a.scale);
  const int64_t from = a.mask.data ? a.offset(a.mask, at.b) : 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t query = at.query(i), key = at.key(j);
      Sum v = s[i][j] * scale;
      if (query < a.lq && key < a.lk && !(a.causal && key > query)) {
        if (a.mask.data) v = a.masked<T>(v, from, query, key);
      } else {
        v = -std::numeric_limits<Sum>::infinity();
      }
      s[i][j] = v;
    }
}

/// What each share is multiplied with.
template <class Sum>
__device__ void attention_keep(const AttentionSizes& a, const AttentionPlace& at, Sum (&z)[4][4]) {
  AttentionDraws<Sum> draws(a);
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      z[i][j] = draws.factor(static_cast<uint64_t>((at.b * a.lq + at.query(i)) * a.lk + at.key(j)));
}

/// Shares as the left side of a product over keys (lines are queries), or over queries (lines are keys).
template <class T>
__device__ void share_by_key(const AttentionPlace& at, const T (&s)[4][4], Quad<T>* shares) {
#pragma unroll
  for (int j = 0; j < 4; ++j) shares[(at.x * 4 + j) * kShareLine + at.y] = {{s[0][j], s[1][j], s[2][j], s[3][j]}};
}
template <class T>
__device__ void share_by_query(const AttentionPlace& at, const T (&s)[4][4], Quad<T>* shares) {
#pragma unroll
  for (int i = 0; i < 4; ++i) shares[(at.y * 4 + i) * kShareLine + at.x] = {{s[i][0], s[i][1], s[i][2], s[i][3]}};
}

/// out += shares times rows from `row0` of `rows` and columns from `col0` of `cols`. Begins and ends with a barrier.
template <class T, int Groups>
__device__ void attention_apply(const Quad<AttentionSum<T>>* shares, const AttentionRows<const T>& m, int64_t row0,
                                int64_t rows, int64_t col0, int64_t cols, AttentionSum<T> (&out)[4][4 * Groups]) {
  using Sum = AttentionSum<T>;
  constexpr int kWide = 64 * Groups, kLine = kWide / 4 + 1, kEach = kStrip * kWide / kTileThreads;
  TENON_SHARED(Quad<Sum>, strip, kStrip * kLine);
  const int t = static_cast<int>(threadIdx.x), x = t % 16, y = t / 16;
  const auto last = static_cast<int>(rows - row0 < kAttentionTile ? rows - row0 : kAttentionTile);
  for (int first = 0; first < last; first += kStrip) {
    Sum held[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int e = t + i * kTileThreads, row = first + e / kWide;
      const int64_t col = col0 + e % kWide;
      held[i] = row < last && col < cols ? widened(m.data[(row0 + row) * m.row + col * m.col]) : Sum(0);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int e = t + i * kTileThreads;
      strip[e / kWide * kLine + e % kWide / 4].v[e % 4] = held[i];
    }
    __syncthreads();
#pragma unroll 2
    for (int d = 0; d < kStrip; ++d) {
      const Quad<Sum> p = shares[(first + d) * kShareLine + y];
#pragma unroll
      for (int g = 0; g < Groups; ++g) {
        const Quad<Sum> q = strip[d * kLine + g * 16 + x];
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) out[i][g * 4 + j] = multiply_add(p.v[i], q.v[j], out[i][g * 4 + j]);
      }
    }
  }
  __syncthreads();
}

template <class T, int Groups>
__device__ void attention_write(const AttentionRows<T>& m, int64_t row0, int64_t rows, int64_t col0, int64_t cols,
                                const AttentionSum<T> (&out)[4][4 * Groups]) {
  const int x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4 * Groups; ++j) {
      const int64_t row = row0 + tile_line(y, i), col = col0 + tile_line(x, j);
      if (row < rows && col < cols) put(m.data + row * m.row + col * m.col, out[i][j]);
    }
}

// Of the 16 threads that have the same queries.
template <class T>
__device__ T attention_row_max(T v) {
#pragma unroll
  for (int bits = 8; bits > 0; bits /= 2) {
    const T other = __shfl_xor_sync(0xffffffffu, v, bits);
    v = other > v ? other : v;
  }
  return v;
}
template <class T>
__device__ T attention_row_sum(T v) {
#pragma unroll
  for (int bits = 8; bits > 0; bits /= 2) v += __shfl_xor_sync(0xffffffffu, v, bits);
  return v;
}

/// A block has 64 queries and 64 Groups columns of the result.
template <class T, int Groups>
__global__ void __launch_bounds__(kTileThreads, sizeof(T) < 8 ? 2 : 1) attention_forward(AttentionForward f) {
  using Sum = AttentionSum<T>;
  constexpr Sum kOut = -std::numeric_limits<Sum>::infinity();
  TENON_SHARED(Quad<Sum>, shares, kAttentionTile * kShareLine);
  const AttentionSizes& a = f.sizes;
  const int64_t col0 = int64_t{blockIdx.y} * 64 * Groups;
  AttentionPlace at{0, int64_t{blockIdx.x} * kAttentionTile, 0, static_cast<int>(threadIdx.x) % 16,
                    static_cast<int>(threadIdx.x) / 16};
  const int64_t seen = a.causal && at.from_query + kAttentionTile < a.lk ? at.from_query + kAttentionTile : a.lk;
  for (at.b = blockIdx.z; at.b < a.batch; at.b += gridDim.z) {
    const auto q = a.rows<const T>(f.q, at.b), k = a.rows<const T>(f.k, at.b), v = a.rows<const T>(f.v, at.b);
    Sum top[4] = {kOut, kOut, kOut, kOut}, total[4] = {}, out[4][4 * Groups] = {};
    for (at.from_key = 0; at.from_key < seen; at.from_key += kAttentionTile) {
      Sum s[4][4], z[4][4];
      attention_products<T>(q, at.from_query, a.lq, k, at.from_key, seen, a.d, s);
      attention_mask<T>(a, at, s);
      if (a.p > 0) attention_keep(a, at, z);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        Sum largest = top[i];
#pragma unroll
        for (int j = 0; j < 4; ++j) largest = s[i][j] > largest ? s[i][j] : largest;
        largest = attention_row_max(largest);
        const bool nothing = largest == kOut;  // no key is seen yet
        const Sum shrink = nothing ? Sum(1) : sc::exp(top[i] - largest);
        Sum sum = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          s[i][j] = nothing ? Sum(0) : sc::exp(s[i][j] - largest);
          sum += s[i][j];
          if (a.p > 0) s[i][j] *= z[i][j];
        }
        total[i] = total[i] * shrink + attention_row_sum(sum);
        top[i] = largest;
#pragma unroll
        for (int j = 0; j < 4 * Groups; ++j) out[i][j] *= shrink;
      }
      share_by_key(at, s, shares);
      attention_apply<T, Groups>(shares, v, at.from_key, seen, col0, a.dv, out);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Sum inverse = total[i] != Sum(0) ? Sum(1) / total[i] : Sum(0);
#pragma unroll
      for (int j = 0; j < 4 * Groups; ++j) out[i][j] *= inverse;
      if (at.x == 0 && blockIdx.y == 0 && at.query(i) < a.lq) {
        const auto lse = a.rows<Sum>(f.lse, at.b);
        lse.data[at.query(i) * lse.row] = total[i] != Sum(0) ? top[i] + std::log(total[i]) : kOut;
      }
    }
    attention_write<T, Groups>(a.rows<T>(f.y, at.b), at.from_query, a.lq, col0, a.dv, out);
  }
}

/// A warp a row.
template <class T>
__global__ void attention_delta(AttentionGradient g) {
  const AttentionSizes& a = g.sizes;
  const int64_t warps = int64_t{gridDim.x} * (blockDim.x / 32);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int64_t row = int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32; row < a.batch * a.lq; row += warps) {
    const auto y = a.rows<const T>(g.y, row / a.lq), gy = a.rows<const T>(g.gy, row / a.lq);
    const int64_t i = row % a.lq;
    AttentionSum<T> sum = 0;
    for (int64_t c = lane; c < a.dv; c += 32)
      sum += widened(gy.data[i * gy.row + c * gy.col]) * widened(y.data[i * y.row + c * y.col]);
    for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bits);
    if (lane == 0) static_cast<AttentionSum<T>*>(g.delta)[row] = sum;
  }
}

/// A tile of shares (of what they were multiplied with after dropout) and of the gradients of scores.
template <class T>
__device__ void attention_scores_back(const AttentionGradient& g, const AttentionPlace& at,
                                      AttentionSum<T> (&share)[4][4], AttentionSum<T> (&grad)[4][4]) {
  using Sum = AttentionSum<T>;
  const AttentionSizes& a = g.sizes;
  Sum z[4][4];
  attention_products<T>(a.rows<const T>(g.q, at.b), at.from_query, a.lq, a.rows<const T>(g.k, at.b), at.from_key, a.lk,
                        a.d, share);
  attention_mask<T>(a, at, share);
  attention_products<T>(a.rows<const T>(g.gy, at.b), at.from_query, a.lq, a.rows<const T>(g.v, at.b), at.from_key, a.lk,
                        a.dv, grad);
  if (a.p > 0) attention_keep(a, at, z);
  const auto lse = a.rows<const Sum>(g.lse, at.b);
  const Sum scale = static_cast<Sum>(a.scale);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t query = at.query(i);
    const bool there = query < a.lq;
    const Sum total = there ? lse.data[query * lse.row] : Sum(0),
              delta = there ? static_cast<const Sum*>(g.delta)[at.b * a.lq + query] : Sum(0);
    const bool nothing = !there || total == -std::numeric_limits<Sum>::infinity();
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const Sum p = nothing ? Sum(0) : sc::exp(share[i][j] - total), keep = a.p > 0 ? z[i][j] : Sum(1);
      grad[i][j] = nothing ? Sum(0) : p * (grad[i][j] * keep - delta) * scale;
      share[i][j] = nothing ? Sum(0) : p * keep;
    }
  }
}

template <class T, int Groups>
__global__ void __launch_bounds__(kTileThreads, sizeof(T) < 8 ? 2 : 1) attention_query_gradient(AttentionGradient g) {
  using Sum = AttentionSum<T>;
  TENON_SHARED(Quad<Sum>, shares, kAttentionTile * kShareLine);
  const AttentionSizes& a = g.sizes;
  const int64_t col0 = int64_t{blockIdx.y} * 64 * Groups;
  AttentionPlace at{0, int64_t{blockIdx.x} * kAttentionTile, 0, static_cast<int>(threadIdx.x) % 16,
                    static_cast<int>(threadIdx.x) / 16};
  const int64_t seen = a.causal && at.from_query + kAttentionTile < a.lk ? at.from_query + kAttentionTile : a.lk;
  for (at.b = blockIdx.z; at.b < a.batch; at.b += gridDim.z) {
    Sum out[4][4 * Groups] = {};
    for (at.from_key = 0; at.from_key < seen; at.from_key += kAttentionTile) {
      Sum share[4][4], grad[4][4];
      attention_scores_back<T>(g, at, share, grad);
      share_by_key(at, grad, shares);
      attention_apply<T, Groups>(shares, a.rows<const T>(g.k, at.b), at.from_key, seen, col0, a.d, out);
    }
    attention_write<T, Groups>(a.rows<T>(g.gq, at.b), at.from_query, a.lq, col0, a.d, out);
  }
}

template <class T, int Groups>
__global__ void __launch_bounds__(kTileThreads, sizeof(T) < 8 ? 2 : 1) attention_key_gradient(AttentionGradient g) {
  using Sum = AttentionSum<T>;
  TENON_SHARED(Quad<Sum>, shares, kAttentionTile * kShareLine);
  const AttentionSizes& a = g.sizes;
  const int64_t col0 = int64_t{blockIdx.y} * 64 * Groups;
  AttentionPlace at{0, 0, int64_t{blockIdx.x} * kAttentionTile, static_cast<int>(threadIdx.x) % 16,
                    static_cast<int>(threadIdx.x) / 16};
  for (at.b = blockIdx.z; at.b < a.batch; at.b += gridDim.z) {
    Sum key[4][4 * Groups] = {}, value[4][4 * Groups] = {};
    for (at.from_query = a.causal ? at.from_key : 0; at.from_query < a.lq; at.from_query += kAttentionTile) {
      Sum share[4][4], grad[4][4];
      attention_scores_back<T>(g, at, share, grad);
      if (col0 < a.dv) {
        share_by_query(at, share, shares);
        attention_apply<T, Groups>(shares, a.rows<const T>(g.gy, at.b), at.from_query, a.lq, col0, a.dv, value);
      }
      if (col0 < a.d) {
        share_by_query(at, grad, shares);
        attention_apply<T, Groups>(shares, a.rows<const T>(g.q, at.b), at.from_query, a.lq, col0, a.d, key);
      }
    }
    attention_write<T, Groups>(a.rows<T>(g.gk, at.b), at.from_key, a.lk, col0, a.d, key);
    attention_write<T, Groups>(a.rows<T>(g.gv, at.b), at.from_key, a.lk, col0, a.dv, value);
  }
}

AttentionSide attention_side(const Operand& x) {
  AttentionSide s{x.data, x.stride[x.ndim - 2], x.stride[x.ndim - 1], {}};
  for (int i = 0; i < x.ndim - 2; ++i) s.batch[i] = x.stride[i];
  return s;
}
/// Of [.., rows].
AttentionSide attention_column(const Operand& x) {
  AttentionSide s{x.data, x.stride[x.ndim - 1], 0, {}};
  for (int i = 0; i < x.ndim - 1; ++i) s.batch[i] = x.stride[i];
  return s;
}

/// `key`: which input holds that of the dropout.
AttentionSizes attention_sizes(const Args& c, int key) {
  const Operand q = c.in(0), k = c.in(1), v = c.in(2), mask = c.in(3), draws = c.in(key);
  AttentionSizes a{};
  a.axes = q.ndim - 2;
  a.batch = 1;
  for (int i = 0; i < a.axes; ++i) a.batch *= a.size[i] = q.size[i];
  a.lq = q.size[a.axes], a.lk = k.size[a.axes], a.d = q.size[a.axes + 1], a.dv = v.size[a.axes + 1];
  a.causal = c.flag("causal");
  a.scale = c.number("scale");
  a.p = c.number("dropout");
  a.stream = static_cast<uint64_t>(c.whole("stream"));
  a.first = static_cast<uint64_t>(c.whole("first"));
  c.want(k.dtype == q.dtype && v.dtype == q.dtype);
  if (a.p > 0) {
    c.want(draws.is(DType::i64));
    a.key = draws.at<const int64_t>();
    a.key_stride = draws.stride[0];
  }
  if (!mask.there()) return a;
  a.mask_keeps = mask.is(DType::boolean);
  c.want(a.mask_keeps || mask.dtype == q.dtype);
  // Aligned with the scores' last axis; a side of one repeats.
  const auto stride = [&](int axis) {
    const int at = axis - (q.ndim - mask.ndim);
    return at < 0 || mask.size[at] == 1 ? int64_t{0} : mask.stride[at];
  };
  a.mask.data = mask.data;
  a.mask.row = stride(q.ndim - 2), a.mask.col = stride(q.ndim - 1);
  for (int i = 0; i < a.axes; ++i) a.mask.batch[i] = stride(i);
  return a;
}

dim3 attention_grid(int64_t rows, int64_t cols, int groups, int64_t batch) {
  const int64_t chunks = cols > 64 * groups ? ceil_div(cols, 64 * groups) : 1;
  return {static_cast<unsigned>(ceil_div(rows, kAttentionTile)), static_cast<unsigned>(chunks), tile_layers(batch)};
}

/// f with a value of the type, and how many columns a thread of a block keeps: of f64 the fewest.
template <class F>
void with_attention_tiles(DType t, int64_t cols, F&& f) {
  with_product_type(t, [&](auto one) {
    if constexpr (sizeof(one) < 8)
      if (cols > 64) return f(one, std::integral_constant<int, 2>{});
    f(one, std::integral_constant<int, 1>{});
  });
}

void run_attention(Args& c) {
  const AttentionSizes a = attention_sizes(c, 4);
  const AttentionForward f{a,
                           attention_side(c.in(0)),
                           attention_side(c.in(1)),
                           attention_side(c.in(2)),
                           attention_side(c.out(0)),
                           attention_column(c.out(1))};
  if (attention_of_halves(c, c.out(0).type(), f)) return;
  with_attention_tiles(c.out(0).type(), a.dv, [&](auto one, auto groups) {
    launch(attention_forward<decltype(one), groups()>, attention_grid(a.lq, a.dv, groups(), a.batch), kTileThreads, c,
           f);
  });
}

/// Inputs q, k, v, mask, y, lse, gy, key.
void run_attention_backward(Args& c) {
  const AttentionSizes a = attention_sizes(c, 7);
  const DType type = c.out(0).type();
  for (const int i : {0, 4, 6}) c.want(c.in(i).is(type));
  c.want(c.in(5).is(type == DType::f64 ? DType::f64 : DType::f32));
  AttentionGradient g{a,
                      attention_side(c.in(0)),
                      attention_side(c.in(1)),
                      attention_side(c.in(2)),
                      attention_side(c.in(4)),
                      attention_column(c.in(5)),
                      attention_side(c.in(6)),
                      attention_side(c.out(0)),
                      attention_side(c.out(1)),
                      attention_side(c.out(2)),
                      nullptr};
  const int64_t widest = a.d > a.dv ? a.d : a.dv;
  with_product_type(type, [&](auto one) {
    using T = decltype(one);
    AttentionSum<T>* delta = c.scratch<AttentionSum<T>>(a.batch * a.lq);
    g.delta = delta;
    launch(attention_delta<T>, blocks_for(a.batch * a.lq, 8), 256, c, g);
  });
  if (attention_gradient_of_halves(c, type, g)) return;
  with_attention_tiles(type, widest, [&](auto one, auto groups) {
    using T = decltype(one);
    launch(attention_query_gradient<T, groups()>, attention_grid(a.lq, a.d, groups(), a.batch), kTileThreads, c, g);
    launch(attention_key_gradient<T, groups()>, attention_grid(a.lk, widest, groups(), a.batch), kTileThreads, c, g);
  });
}

const KernelOf attention_entry{"scaled_dot_product_attention", run_attention};
const KernelOf attention_backward_entry{"attention_backward", run_attention_backward};

}  // namespace
}  // namespace tenon::cuda
