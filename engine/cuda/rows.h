#pragma once
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "engine/cuda/strided.h"

// Note [Rows and columns]
// Kernels that make one value of many, or of a row another row, give each result to a group of threads: a part of a
// warp, a warp or a block, by what the sizes say. A group's running values are joined as a tree. A result of many
// values is cut into pieces, and what these come to is reduced again. How it is cut depends on sizes and on which axes
// lie side by side in memory, never on the machine, so the bits are the same on all GPUs.
namespace tenon::cuda::rows {

/// Axes that K operands are walked along together, the last fastest. Axes of size 1 are left out.
template <int K>
struct Walk {
  int axes = 0;
  int64_t count = 1;
  int64_t size[kDims] = {};
  int64_t stride[K][kDims] = {};

  /// Where element i lies in each operand, i < count.
  __device__ void at(int64_t i, int64_t (&offset)[K]) const {
    for (int k = 0; k < K; ++k) offset[k] = 0;
    if (count <= std::numeric_limits<int32_t>::max())
      follow(static_cast<uint32_t>(i), offset);
    else
      follow(static_cast<uint64_t>(i), offset);
  }

  /// Adds an axis inside those that are there; one that all operands go on along is joined to the last.
  void add(int64_t n, const int64_t (&by)[K]) {
    count *= n;
    if (n == 1) return;
    bool joins = axes > 0;
    for (int k = 0; k < K && joins; ++k) joins = stride[k][axes - 1] == by[k] * n;
    if (!joins) size[axes++] = 1;
    size[axes - 1] *= n;
    for (int k = 0; k < K; ++k) stride[k][axes - 1] = by[k];
  }

 private:
  template <class U>
  __device__ void follow(U rest, int64_t (&offset)[K]) const {
    for (int d = axes - 1; d > 0; --d) {
      const U n = static_cast<U>(size[d]), up = rest / n;
      for (int k = 0; k < K; ++k) offset[k] += static_cast<int64_t>(rest - up * n) * stride[k][d];
      rest = up;
    }
    for (int k = 0; k < K && axes > 0; ++k) offset[k] += static_cast<int64_t>(rest) * stride[k][0];
  }
};

/// All axes of operands of one size.
template <class... More>
Walk<1 + sizeof...(More)> walk_of(const Operand& first, const More&... more) {
  Walk<1 + sizeof...(More)> w;
  for (int d = 0; d < first.ndim; ++d) w.add(first.size[d], {first.stride[d], more.stride[d]...});
  return w;
}

/// to[at] = from[i], of elements of `width` bytes.
inline __device__ void copy_element(void* to, int64_t at, const void* from, int64_t i, int width) {
  if (width == 1) static_cast<uint8_t*>(to)[at] = static_cast<const uint8_t*>(from)[i];
  if (width == 2) static_cast<uint16_t*>(to)[at] = static_cast<const uint16_t*>(from)[i];
  if (width == 4) static_cast<uint32_t*>(to)[at] = static_cast<const uint32_t*>(from)[i];
  if (width == 8) static_cast<uint64_t*>(to)[at] = static_cast<const uint64_t*>(from)[i];
}

struct Add {
  template <class T>
  static __device__ T join(T a, T b) {
    return a + b;
  }
};
/// The larger; a NaN is passed over.
struct Larger {
  template <class T>
  static __device__ T join(T a, T b) {
    return b > a ? b : a;
  }
};

/// Joins the values of each group of `lanes` threads and gives all of them the result: a power of two up to 32, or the
/// whole block, for which `shared` has 32 places. Every thread of the block comes here.
template <class J, class T>
__device__ T over_group(T v, int lanes, T* shared) {
  for (int by = (lanes < 32 ? lanes : 32) / 2; by > 0; by /= 2) v = J::join(v, __shfl_xor_sync(0xffffffffu, v, by));
  if (lanes <= 32) return v;
  const int warps = lanes / 32, lane = static_cast<int>(threadIdx.x % 32);
  if (lane == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = shared[lane % warps];
  for (int by = warps / 2; by > 0; by /= 2) v = J::join(v, __shfl_xor_sync(0xffffffffu, v, by));
  __syncthreads();
  return v;
}

inline int power_of_two(int64_t n, int most) {
  int p = 1;
  while (p < n && p < most) p *= 2;
  return p;
}

/// How many threads share a row, and how many there are.
struct RowPlan {
  int lanes;
  unsigned threads, blocks;
  RowPlan(int64_t rows, int64_t n) {
    if (n > 8192 || (n > 2048 && rows < 128))
      lanes = 1024;
    else if (n > 1024 || (n > 128 && rows < 2048))
      lanes = 256;
    else
      lanes = power_of_two(n, 32);
    threads = lanes > 256 ? 1024 : 256;
    blocks = blocks_for(rows, static_cast<int>(threads) / lanes);
  }
};
/// The rows of a thread, in a kernel launched by a RowPlan. All threads of a block go through the loop alike:
///   for (RowLoop r(rows, n, lanes); r.more(); r.next()) { ... for (j = r.lane; j < r.end; j += lanes) ... }
struct RowLoop {
  int64_t first, step, rows, n;
  int group, lane;
  int64_t row, end;  ///< a group beyond the last row has one without elements
  bool there;
  __device__ RowLoop(int64_t all, int64_t length, int lanes) : rows(all), n(length) {
    const int groups = static_cast<int>(blockDim.x) / lanes;
    group = static_cast<int>(threadIdx.x) / lanes;
    lane = static_cast<int>(threadIdx.x) % lanes;
    first = static_cast<int64_t>(blockIdx.x) * groups;
    step = static_cast<int64_t>(gridDim.x) * groups;
    place();
  }
  __device__ bool more() const { return first < rows; }
  __device__ void next() {
    first += step;
    place();
  }

 private:
  __device__ void place() {
    there = first + group < rows;
    row = there ? first + group : 0;
    end = there ? n : 0;
  }
};

/// How columns are added down: a block has `width` columns and 256 / width rows at once, and rows are cut into pieces.
struct ColumnPlan {
  int width;
  int64_t tiles, pieces, length;
  ColumnPlan(int64_t n, int64_t columns) {
    const int deep = power_of_two(n, 8);
    width = power_of_two(columns, 256 / deep);
    tiles = ceil_div(columns, width);
    const int64_t fill = ceil_div(1024, tiles > 0 ? tiles : 1), most = ceil_div(n, 8 * (256 / width));
    pieces = fill < most ? fill : most;
    if (pieces < ceil_div(n, 16384)) pieces = ceil_div(n, 16384);
    if (pieces < 1) pieces = 1;
    length = ceil_div(n, pieces);
    if (length > 0) pieces = ceil_div(n, length);
  }
  unsigned blocks() const { return blocks_for(tiles * pieces, 1); }
};

/// The elements of an input in order: where they lie, or a copy. Null for one that is left out.
template <class T>
const T* dense(const Args& c, const Operand& x) {
  return x.there() ? dense_of(c, x, x.type()).template at<const T>() : nullptr;
}
/// Where a kernel writes the elements of an output in order; finish() brings them where they belong.
template <class T>
class Target {
 public:
  Target(const Args& c, const Operand& out) : out_(out), at_(target_of(c, out, out.type())) {}
  operator T*() const { return at_.at<T>(); }
  void finish(const Args& c) const { cuda::finish(c, out_, at_); }

 private:
  Operand out_, at_;
};

}  // namespace tenon::cuda::rows
