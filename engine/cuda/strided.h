#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/cuda/kernel.h"
#include "engine/op/element.h"

// Elements that lie anywhere: how a kernel finds those of several operands at once, and how one dtype becomes another.
namespace tenon::cuda {

/// Division by a number that is known before the launch: one multiplication where both numbers are below 2^31.
struct Divider {
  int64_t by = 1;
  uint32_t factor = 1;
  int32_t shift = 0;  ///< -1: `by` is too large

  Divider() = default;
  explicit Divider(int64_t n) : by(n) {
    shift = 0;
    while (shift < 31 && (int64_t{1} << shift) < n) ++shift;
    if ((int64_t{1} << shift) < n)
      shift = -1;
    else if (n > 0)
      factor = static_cast<uint32_t>(
          ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - static_cast<uint64_t>(n))) / static_cast<uint64_t>(n) + 1);
  }
  TENON_HD int64_t of(int64_t n) const {
    if (n >> 31 || shift < 0) return n / by;
    const auto low = static_cast<uint32_t>(n);
    return (static_cast<uint32_t>(static_cast<uint64_t>(low) * factor >> 32) + low) >> shift;
  }
};

/// The elements of K operands of one size (smaller ones are broadcast to it), numbered as a kernel takes them.
template <int K>
struct Strided {
  int ndim = 1;
  int64_t numel = 0;
  Divider size[kDims];
  int64_t stride[kDims][K] = {};  ///< in elements; axis 0 is innermost

  TENON_HD void find(int64_t i, int64_t (&at)[K]) const {
    for (int k = 0; k < K; ++k) at[k] = 0;
    for (int d = 0; d < ndim - 1; ++d) {
      const int64_t q = size[d].of(i), index = i - q * size[d].by;
      for (int k = 0; k < K; ++k) at[k] += index * stride[d][k];
      i = q;
    }
    for (int k = 0; k < K; ++k) at[k] += i * stride[ndim - 1][k];
  }
};

/// Which number an element has: its place in row-major order, or where the first operand's memory has it (axes of the
/// smallest stride first, so that neighbouring threads meet neighbouring elements).
enum class Count { row_major, by_memory };

/// Of the size of the first operand. Axes that lie together in all operands become one.
template <int K>
Strided<K> strided_of(const Operand (&o)[K], Count count = Count::by_memory) {
  Strided<K> p;
  int order[kDims], n = 0;
  for (int d = o[0].ndim - 1; d >= 0; --d)
    if (o[0].size[d] != 1) order[n++] = d;
  const auto far = [&](int d) { return o[0].stride[d] < 0 ? -o[0].stride[d] : o[0].stride[d]; };
  for (int i = 1; i < n && count == Count::by_memory; ++i)
    for (int j = i; j > 0 && far(order[j]) < far(order[j - 1]); --j) {
      const int t = order[j];
      order[j] = order[j - 1];
      order[j - 1] = t;
    }
  int64_t sizes[kDims];
  p.ndim = 0;
  p.numel = o[0].numel();
  for (int i = 0; i < n; ++i) {
    int64_t s[K];
    for (int k = 0; k < K; ++k) {
      const int d = order[i] - (o[0].ndim - o[k].ndim);
      s[k] = d < 0 || o[k].size[d] == 1 ? 0 : o[k].stride[d];
    }
    bool joins = p.ndim > 0;
    for (int k = 0; joins && k < K; ++k) joins = s[k] == p.stride[p.ndim - 1][k] * sizes[p.ndim - 1];
    if (joins) {
      sizes[p.ndim - 1] *= o[0].size[order[i]];
    } else {
      for (int k = 0; k < K; ++k) p.stride[p.ndim][k] = s[k];
      sizes[p.ndim++] = o[0].size[order[i]];
    }
  }
  if (p.ndim == 0) sizes[p.ndim++] = 1;
  for (int d = 0; d < p.ndim; ++d) p.size[d] = Divider(sizes[d]);
  return p;
}

struct alignas(16) Unit16 {
  uint64_t low, high;
};

/// Calls f with an unsigned integer as wide as an element: for kernels that only move values.
template <class F>
void with_width(DType t, F&& f) {
  switch (itemsize(t)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

/// The first number of a thread in a loop over all, and how far apart its numbers are.
__device__ inline int64_t first_of_thread() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t threads_of_grid() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

/// to = from, broadcast and converted. Bits are moved where the dtypes are one.
void copy_elements(const Args& c, const Operand& to, const Operand& from);
/// Every element the given bits.
void fill_elements(const Args& c, const Operand& to, uint64_t bits);

/// Memory of this call for row-major elements of type t.
Operand row_major(const Args& c, const Operand& like, DType t);
/// x itself where it is row-major and of type t, else a copy that is.
Operand dense_of(const Args& c, const Operand& x, DType t);
/// Where a kernel writes row-major elements of type t: `out` where it is such, else memory that finish() copies there.
Operand target_of(const Args& c, const Operand& out, DType t);
void finish(const Args& c, const Operand& out, const Operand& target);
/// The same operand from `elements` on.
Operand moved_by(Operand o, int64_t elements);

}  // namespace tenon::cuda
