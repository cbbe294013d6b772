#include "engine/cuda/gemm.h"
#include "engine/cuda/gemm_tile.h"
#include "engine/cuda/product.h"

namespace tenon::cuda {
namespace {

constexpr int kLargeTile = 128, kLargeDepth = 8, kSmallTile = 64, kSmallDepth = 16;
constexpr int64_t kEnoughTiles = 132;

/// A plan as a kernel reads it.
template <class T>
struct GemmCall {
  GemmPlan plan;
  int64_t column_tiles, batches, slice;
  typename SumOf<T>::type* parts;  ///< [slice, batch, m, n] where the inner axis is split; else null

  __device__ T* matrix(const GemmMatrix& x, int64_t batch) const {
    int64_t offset = 0;
    for (int i = plan.axes - 1; i >= 0; --i) {
      offset += batch % plan.size[i] * x.batch[i];
      batch /= plan.size[i];
    }
    return static_cast<T*>(x.data) + offset;
  }
  /// What ends a sum: the bias and what is there, and the one rounding.
  __device__ void finish(T* c, int64_t row, int64_t col, typename SumOf<T>::type sum) const {
    T* to = c + row * plan.c.row + col * plan.c.col;
    if (plan.bias) sum += element::number(static_cast<const T*>(plan.bias)[col * plan.bias_stride]);
    if (plan.add) sum += element::number(*to);
    *to = element::made<T>(sum);
  }
};

template <class T, int Side, int Depth>
__global__ void __launch_bounds__(kTileThreads, 2) gemm_tiles(GemmCall<T> g) {
  using Sum = typename SumOf<T>::type;
  const GemmPlan& p = g.plan;
  const int64_t row0 = blockIdx.x / g.column_tiles * Side, col0 = blockIdx.x % g.column_tiles * Side;
  const int64_t begin = blockIdx.y * g.slice, end = begin + g.slice < p.k ? begin + g.slice : p.k;
  const int x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;
  for (int64_t batch = blockIdx.z; batch < g.batches; batch += gridDim.z) {
    MatrixSource<T, Side, Depth> a(g.matrix(p.a, batch), p.a.row, p.a.col, row0, p.m, end);
    MatrixSource<T, Side, Depth> b(g.matrix(p.b, batch), p.b.col, p.b.row, col0, p.n, end);
    Sum sum[Side / 16][Side / 16] = {};
    multiply_tile<Sum, Side, Depth>(a, b, begin, end, sum);
    T* c = g.matrix(p.c, batch);
    Sum* part = g.parts ? g.parts + (blockIdx.y * g.batches + batch) * p.m * p.n : nullptr;
#pragma unroll
    for (int i = 0; i < Side / 16; ++i) {
      const int64_t row = row0 + tile_line(y, i);
#pragma unroll
      for (int j = 0; j < Side / 16; ++j) {
        const int64_t col = col0 + tile_line(x, j);
        if (row >= p.m || col >= p.n) continue;
        if (part)
          part[row * p.n + col] = sum[i][j];
        else
          g.finish(c, row, col, sum[i][j]);
      }
    }
  }
}

/// The slices of a split inner axis, in their order.
template <class T>
__global__ void gemm_add_parts(GemmCall<T> g, int64_t slices) {
  const int64_t each = g.plan.m * g.plan.n, all = each * g.batches, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < all; at += step) {
    typename SumOf<T>::type sum = g.parts[at];
    for (int64_t s = 1; s < slices; ++s) sum += g.parts[s * all + at];
    const int64_t in_matrix = at % each;
    g.finish(g.matrix(g.plan.c, at / each), in_matrix / g.plan.n, in_matrix % g.plan.n, sum);
  }
}

/// How a merged plan is cut.
struct GemmCut {
  bool large;  ///< tiles, which do more with what they read and leave a part of the machine idle where they are few
  int64_t rows, columns;  ///< of tiles
  InnerSplit split;
  explicit GemmCut(const GemmPlan& p)
      : large(p.type != DType::f64 && p.m > kSmallTile && p.n > kSmallTile &&
              ceil_div(p.m, kLargeTile) * ceil_div(p.n, kLargeTile) * p.batches() >= kEnoughTiles),
        rows(ceil_div(p.m, large ? kLargeTile : kSmallTile)),
        columns(ceil_div(p.n, large ? kLargeTile : kSmallTile)),
        split(rows * columns * p.batches(), p.k, large ? kLargeDepth : kSmallDepth) {}
  int64_t room(const GemmPlan& p) const {
    const int64_t sum = p.type == DType::f64 ? 8 : 4;
    return split.slices > 1 ? split.slices * p.batches() * p.m * p.n * sum : 0;
  }
};

template <class T, int Side, int Depth>
void gemm_by_tiles(const Args& c, const GemmPlan& p, const GemmCut& cut) {
  const int64_t batches = p.batches();
  GemmCall<T> g{p, cut.columns, batches, cut.split.length, nullptr};
  if (cut.split.slices > 1)
    g.parts = static_cast<typename SumOf<T>::type*>(p.room ? p.room : c.scratch<double>(cut.room(p) / 8 + 1));
  const dim3 grid(static_cast<unsigned>(cut.rows * cut.columns), static_cast<unsigned>(cut.split.slices),
                  tile_layers(batches));
  launch(gemm_tiles<T, Side, Depth>, grid, kTileThreads, c, g);
  if (g.parts) launch(gemm_add_parts<T>, blocks_for(batches * p.m * p.n, 256), 256, c, g, cut.split.slices);
}

void drop_axis(GemmPlan& p, int axis) {
  --p.axes;
  for (int i = axis; i < p.axes; ++i) {
    p.size[i] = p.size[i + 1];
    for (GemmMatrix* x : {&p.a, &p.b, &p.c}) x->batch[i] = x->batch[i + 1];
  }
}

GemmMatrix gemm_operand(const Operand& x, bool transposed, int batch_axes) {
  GemmMatrix m{x.data, x.stride[x.ndim - 2], x.stride[x.ndim - 1], {}};
  if (transposed) m.row = x.stride[x.ndim - 1], m.col = x.stride[x.ndim - 2];
  for (int i = 0; i < batch_axes; ++i) m.batch[i] = x.ndim > 2 ? x.stride[i] : 0;
  return m;
}

void run_matmul(Args& c) {
  const Operand a = c.in(0), b = c.in(1), y = c.out(0);
  const bool ta = c.flag("transpose_a"), tb = c.flag("transpose_b");
  c.want(a.dtype == y.dtype && b.dtype == y.dtype);
  GemmPlan p;
  p.type = y.type();
  p.axes = y.ndim - 2;
  for (int i = 0; i < p.axes; ++i) p.size[i] = y.size[i];
  p.m = y.size[y.ndim - 2], p.n = y.size[y.ndim - 1], p.k = a.size[ta ? a.ndim - 2 : a.ndim - 1];
  p.a = gemm_operand(a, ta, p.axes);
  p.b = gemm_operand(b, tb, p.axes);
  p.c = gemm_operand(y, false, p.axes);
  gemm(c, p);
}

void run_linear(Args& c) {
  const Operand x = c.in(0), w = c.in(1), bias = c.in(2), y = c.out(0);
  c.want(x.dtype == y.dtype && w.dtype == y.dtype && (!bias.there() || bias.dtype == y.dtype));
  GemmPlan p;
  p.type = y.type();
  p.m = x.size[0], p.n = w.size[0], p.k = x.size[1];
  p.a = gemm_operand(x, false, 0);
  p.b = gemm_operand(w, true, 0);
  p.c = gemm_operand(y, false, 0);
  if (bias.there()) p.bias = bias.data, p.bias_stride = bias.stride[0];
  gemm(c, p);
}

const KernelOf matmul_entry{"matmul", run_matmul};
const KernelOf linear_entry{"linear", run_linear};

}  // namespace

GemmPlan GemmPlan::merged() const {
  GemmPlan p = *this;
  for (int i = p.axes - 1; i >= 0; --i)
    if (p.size[i] == 1) drop_axis(p, i);
  for (int i = p.axes - 2; i >= 0; --i) {
    bool one = true;
    for (const GemmMatrix* x : {&p.a, &p.b, &p.c}) one = one && x->batch[i] == x->batch[i + 1] * p.size[i + 1];
    if (!one) continue;
    p.size[i + 1] *= p.size[i];
    drop_axis(p, i);
  }
  while (p.axes > 0) {
    const int last = p.axes - 1;
    if (p.m == 1) p.a.row = p.a.batch[last], p.c.row = p.c.batch[last];
    if (p.b.batch[last] != 0 || p.a.batch[last] != p.a.row * p.m || p.c.batch[last] != p.c.row * p.m) break;
    p.m *= p.size[last];
    drop_axis(p, last);
  }
  return p;
}

int64_t gemm_room(const GemmPlan& plan) {
  const GemmPlan p = plan.merged();
  return p.m == 0 || p.n == 0 || p.batches() == 0 ? 0 : GemmCut(p).room(p);
}

void gemm(const Args& c, const GemmPlan& plan) {
  const GemmPlan p = plan.merged();
  with_product_type(p.type, [&](auto one) {
    using T = decltype(one);
    if (p.m == 0 || p.n == 0 || p.batches() == 0 || product_by_cublas(c, p)) return;
    const GemmCut cut(p);
    if constexpr (sizeof(T) < 8)
      if (cut.large) return gemm_by_tiles<T, kLargeTile, kLargeDepth>(c, p, cut);
    gemm_by_tiles<T, kSmallTile, kSmallDepth>(c, p, cut);
  });
}

}  // namespace tenon::cuda
