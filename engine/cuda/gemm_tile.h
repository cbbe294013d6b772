#pragma once
#include "engine/cuda/product_types.h"

// Note [Tiles of a product]
// A block of 256 threads computes a square tile of C, `Side` wide: thread (x, y) of 16 by 16 the rows 4 y .. 4 y + 3
// and columns 4 x .. 4 x + 3 of every 64 by 64 of it. `Depth` of the inner axis at a time lie in shared memory, by
// depth and then by line (a row of A, a column of B), in quads that are read at once; the next ones are on their way
// into registers meanwhile. Where elements come from is the business of a source: of a matrix by strides
// (MatrixSource), of an image (conv.cu). It has
//   bool by_depth() const;                              // neighbouring threads read along the inner axis
//   void fetch(int64_t k, Sum* held);                   // what this thread carries of the inner axis from k on
// and gives zeros outside.
namespace tenon::cuda {

inline constexpr int kTileThreads = 256;

template <class T>
struct alignas(16) Quad {
  T v[4];
};

/// Which elements of a side's piece [Side lines, Depth] a thread carries: i = 0 .. kEach - 1.
template <int Side, int Depth>
struct Carried {
  static constexpr int kEach = Side * Depth / kTileThreads;
  bool by_depth;
  int line0, line_step, depth0, depth_step;
  __device__ explicit Carried(bool along_depth) : by_depth(along_depth) {
    const int t = static_cast<int>(threadIdx.x);
    line0 = by_depth ? t / Depth : t % Side;
    line_step = by_depth ? kTileThreads / Depth : 0;
    depth0 = by_depth ? t % Depth : t / Side;
    depth_step = by_depth ? 0 : kTileThreads / Side;
  }
  __device__ int line(int i) const { return line0 + i * line_step; }
  __device__ int depth(int i) const { return depth0 + i * depth_step; }
};

/// Lines of a strided matrix.
template <class T, int Side, int Depth>
struct MatrixSource {
  using Sum = typename SumOf<T>::type;
  Carried<Side, Depth> own;
  const T* at;  ///< of the first element that is carried, at k = 0
  int64_t k_stride, step, end;
  int lines;
  /// Lines from `first` of `count`; the inner axis ends at `k_end`.
  __device__ MatrixSource(const T* data, int64_t line_stride, int64_t inner_stride, int64_t first, int64_t count,
                          int64_t k_end)
      : own(inner_stride == 1 || (line_stride != 1 && magnitude(inner_stride) < magnitude(line_stride))),
        at(data + (first + own.line0) * line_stride + own.depth0 * inner_stride),
        k_stride(inner_stride),
        step(own.line_step * line_stride + own.depth_step * inner_stride),
        end(k_end),
        lines(static_cast<int>(count - first < Side ? count - first : Side)) {}
  __device__ static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }
  __device__ bool by_depth() const { return own.by_depth; }
  __device__ void fetch(int64_t k, Sum* held) const {
    const T* from = at + k * k_stride;
    const int depth = static_cast<int>(end - k < Depth ? end - k : Depth);
#pragma unroll
    for (int i = 0; i < Carried<Side, Depth>::kEach; ++i, from += step)
      held[i] = own.line(i) < lines && own.depth(i) < depth ? element::number(*from) : Sum(0);
  }
};

/// The position within the tile of number i of a thread's rows (by its y) or columns (by its x).
__device__ inline int tile_line(int thread, int i) { return i / 4 * 64 + thread * 4 + i % 4; }

/// sum += A B over the inner axis from k_begin to k_end.
template <class Sum, int Side, int Depth, class A, class B>
__device__ void multiply_tile(A& a, B& b, int64_t k_begin, int64_t k_end, Sum (&sum)[Side / 16][Side / 16]) {
  constexpr int kEach = Carried<Side, Depth>::kEach, kLine = Side / 4 + 1, kGroups = Side / 64;
  TENON_SHARED(Quad<Sum>, left, Depth * kLine);
  TENON_SHARED(Quad<Sum>, right, Depth * kLine);
  const Carried<Side, Depth> own_a(a.by_depth()), own_b(b.by_depth());
  const int x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;
  Sum held_a[kEach], held_b[kEach];
  if (k_begin < k_end) a.fetch(k_begin, held_a), b.fetch(k_begin, held_b);
  for (int64_t k = k_begin; k < k_end; k += Depth) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int la = own_a.line(i), lb = own_b.line(i);
      left[own_a.depth(i) * kLine + la / 4].v[la % 4] = held_a[i];
      right[own_b.depth(i) * kLine + lb / 4].v[lb % 4] = held_b[i];
    }
    __syncthreads();
    if (k + Depth < k_end) a.fetch(k + Depth, held_a), b.fetch(k + Depth, held_b);
#pragma unroll 4
    for (int d = 0; d < Depth; ++d) {
      Quad<Sum> p[kGroups], q[kGroups];
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        p[g] = left[d * kLine + g * 16 + y];
        q[g] = right[d * kLine + g * 16 + x];
      }
#pragma unroll
      for (int i = 0; i < Side / 16; ++i)
#pragma unroll
        for (int j = 0; j < Side / 16; ++j) sum[i][j] = multiply_add(p[i / 4].v[i % 4], q[j / 4].v[j % 4], sum[i][j]);
    }
    __syncthreads();
  }
}

// Note [A split inner axis]
// Where the result is small and the inner axis long, its tiles are too few for the machine. Slices of the inner axis
// are then products of their own, whose results lie one after the other in working memory and are added up in their
// order by a second kernel. How many there are depends on the sizes alone, so that every GPU adds in one order.
struct InnerSplit {
  int64_t slices, length;  ///< of the inner axis each
  /// `blocks`: tiles of the result, of all batches.
  InnerSplit(int64_t blocks, int64_t k, int depth) : slices(1), length(k) {
    constexpr int64_t kEnough = 264, kShortest = 256, kMost = 128;
    if (blocks >= kEnough / 2 || k < 2 * kShortest) return;
    int64_t count = ceil_div(kEnough, blocks > 0 ? blocks : 1);
    if (count > k / kShortest) count = k / kShortest;
    if (count > kMost) count = kMost;
    length = ceil_div(ceil_div(k, count), depth) * depth;
    slices = ceil_div(k, length);
  }
};

/// Blocks along z: kernels go on by their number.
inline unsigned tile_layers(int64_t n) { return static_cast<unsigned>(n < 65535 ? n : 65535); }

}  // namespace tenon::cuda
