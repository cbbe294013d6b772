#include "engine/cuda/row_lists.h"

namespace tenon::cuda {
namespace {

// A stable radix sort of (row, source) by eight bits at a time. A block has a piece of the elements, which it takes 256
// at a time: where an element goes is where its digit begins for this block, and how many of that digit came before.
constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits, kSortThreads = kDigits, kSortWarps = kSortThreads / 32;
constexpr int kSortPiece = 8 * kSortThreads;

/// The lanes of the warp that come with this digit; none for a lane without an element.
__device__ uint32_t lanes_alike(uint32_t digit, bool there) {
  uint32_t alike = __ballot_sync(0xffffffffu, there);
  for (int b = 0; b < kDigitBits; ++b) {
    const bool one = digit >> b & 1;
    const uint32_t votes = __ballot_sync(0xffffffffu, one);
    alike &= one ? votes : ~votes;
  }
  return there ? alike : 0;
}

__device__ uint32_t ones_below(uint32_t bits, unsigned lane) {
  return static_cast<uint32_t>(std::popcount(bits & ((1u << lane) - 1)));
}

/// Counts [digit][block] of a pass.
__global__ void digit_counts(const uint32_t* row, int64_t n, int shift, uint32_t* counts) {
  TENON_SHARED(uint32_t, held, kSortWarps * kDigits);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int w = 0; w < kSortWarps; ++w) held[w * kDigits + threadIdx.x] = 0;
  __syncthreads();
  const int64_t piece = static_cast<int64_t>(blockIdx.x) * kSortPiece;
  for (int64_t first = piece; first < n && first < piece + kSortPiece; first += kSortThreads) {
    const int64_t i = first + threadIdx.x;
    const uint32_t digit = i < n ? row[i] >> shift & (kDigits - 1) : 0;
    const uint32_t alike = lanes_alike(digit, i < n);
    // Of each digit the warp's first lane counts for all.
    if (alike && ones_below(alike, lane) == 0)
      held[warp * kDigits + digit] += static_cast<uint32_t>(std::popcount(alike));
    __syncwarp();
  }
  __syncthreads();
  uint32_t sum = 0;
  for (int w = 0; w < kSortWarps; ++w) sum += held[w * kDigits + threadIdx.x];
  counts[static_cast<int64_t>(threadIdx.x) * gridDim.x + blockIdx.x] = sum;
}

/// What the warp's lanes hold up to this one, added up.
__device__ uint32_t sum_to_lane(uint32_t v, unsigned lane) {
  for (unsigned by = 1; by < 32; by *= 2) {
    const uint32_t other = __shfl_up_sync(0xffffffffu, v, by);
    if (lane >= by) v += other;
  }
  return v;
}

/// A warp makes of its digit's counts where each piece begins among that digit's elements, and says how many they are.
__global__ void digit_begins(uint32_t* counts, int64_t pieces, uint32_t* totals) {
  const unsigned digit = blockIdx.x * kSortWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t* mine = counts + digit * pieces;
  uint32_t before = 0;
  for (int64_t first = 0; first < pieces; first += 32) {
    const int64_t i = first + lane;
    const uint32_t count = i < pieces ? mine[i] : 0, upto = sum_to_lane(count, lane);
    if (i < pieces) mine[i] = before + upto - count;
    before += __shfl_sync(0xffffffffu, upto, 31);
  }
  if (lane == 0) totals[digit] = before;
}

/// `source` is null in the first pass: sources are their own numbers.
__global__ void by_digit(const uint32_t* row, const uint32_t* source, int64_t n, int shift, const uint32_t* begins,
                         const uint32_t* totals, uint32_t* to_row, uint32_t* to_source) {
  TENON_SHARED(uint32_t, held, kSortWarps * kDigits);
  TENON_SHARED(uint32_t, sums, kSortWarps);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t total = totals[threadIdx.x], upto = sum_to_lane(total, lane);
  if (lane == 31) sums[warp] = upto;
  __syncthreads();
  uint32_t begin = upto - total + begins[static_cast<int64_t>(threadIdx.x) * gridDim.x + blockIdx.x];
  for (unsigned w = 0; w < warp; ++w) begin += sums[w];
  const int64_t piece = static_cast<int64_t>(blockIdx.x) * kSortPiece;
  for (int64_t first = piece; first < n && first < piece + kSortPiece; first += kSortThreads) {
    const int64_t i = first + threadIdx.x;
    for (int w = 0; w < kSortWarps; ++w) held[w * kDigits + threadIdx.x] = 0;
    __syncthreads();
    const uint32_t key = i < n ? row[i] : 0, digit = key >> shift & (kDigits - 1);
    const uint32_t alike = lanes_alike(digit, i < n);
    if (alike && ones_below(alike, lane) == 0)
      held[warp * kDigits + digit] = static_cast<uint32_t>(std::popcount(alike));
    __syncthreads();
    for (int w = 0; w < kSortWarps; ++w) {  // this thread's digit, warp by warp
      const uint32_t count = held[w * kDigits + threadIdx.x];
      held[w * kDigits + threadIdx.x] = begin;
      begin += count;
    }
    __syncthreads();
    if (i < n) {
      const uint32_t to = held[warp * kDigits + digit] + ones_below(alike, lane);
      to_row[to] = key;
      to_source[to] = source ? source[i] : static_cast<uint32_t>(i);
    }
    __syncthreads();
  }
}

/// A thread for every element of every source; the one at a list's head joins the list.
template <class T, Join How>
__global__ void join_rows(RowLists l, Divider count, Divider inner, int64_t n, const T* values, T* y, bool fresh) {
  for (int64_t t = first_of_thread(); t < n; t += threads_of_grid()) {
    const int64_t q = inner.of(t), i = t - q * inner.by, o = count.of(q);
    int64_t k = q - o * count.by;
    const uint32_t row = l.row[k];
    if (row >= l.rows || (k > 0 && l.row[k - 1] == row)) continue;
    const T* from = values + o * count.by * inner.by + i;
    T* to = y + (o * l.rows + row) * inner.by + i;
    T v = fresh ? from[l.source[k++] * inner.by] : *to;
    for (; k < l.count && l.row[k] == row; ++k) v = joined<T, How>(v, from[l.source[k] * inner.by]);
    *to = v;
  }
}
/// The last of a list alone.
template <class T>
__global__ void last_rows(RowLists l, Divider count, Divider inner, int64_t n, const T* values, T* y) {
  for (int64_t t = first_of_thread(); t < n; t += threads_of_grid()) {
    const int64_t q = inner.of(t), i = t - q * inner.by, o = count.of(q), k = q - o * count.by;
    const uint32_t row = l.row[k];
    if (row >= l.rows || (k + 1 < l.count && l.row[k + 1] == row)) continue;
    y[(o * l.rows + row) * inner.by + i] = values[(o * count.by + l.source[k]) * inner.by + i];
  }
}

/// row[i] (+)= what the numbers give. The plan is of row and of the numbers.
__global__ void add_row_parts(int64_t* row, RowNumbers numbers, bool first, Strided<2> p) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[2];
    p.find(i, at);
    const int64_t before = first ? 0 : row[at[0]], more = numbers(at[1]);
    row[at[0]] = before == RowNumbers::kNowhere || more == RowNumbers::kNowhere ? RowNumbers::kNowhere : before + more;
  }
}

}  // namespace

RowNumbers numbers_of(const Operand& index, int64_t size, int64_t step) {
  return {index.data, index.is(DType::i64), true, size, step};
}

Operand combined_rows(const Args& c, int from, const int64_t* size, const int64_t* step) {
  const Operand row = row_major(c, c.in(from), DType::i64);
  for (int k = 0; from + k < c.inputs(); ++k) {
    const Operand index = c.in(from + k);
    const Strided<2> p = strided_of<2>({row, index});
    launch(add_row_parts, blocks_for(p.numel, 256), 256, c, row.at<int64_t>(), numbers_of(index, size[k], step[k]),
           k == 0, p);
  }
  return row;
}

bool sortable(int64_t count, int64_t rows) {
  return count < std::numeric_limits<int32_t>::max() && rows < std::numeric_limits<int32_t>::max();
}

RowLists row_lists(const Args& c, uint32_t* row, int64_t count, int64_t rows) {
  uint32_t* source = c.scratch<uint32_t>(count);
  if (count == 0) return {row, source, 0, rows};
  uint32_t *to_row = c.scratch<uint32_t>(count), *to_source = c.scratch<uint32_t>(count);
  const int64_t pieces = ceil_div(count, kSortPiece);
  uint32_t *counts = c.scratch<uint32_t>(pieces * kDigits), *totals = c.scratch<uint32_t>(kDigits);
  const auto blocks = static_cast<unsigned>(pieces);
  for (int shift = 0; shift == 0 || rows >> shift > 0; shift += kDigitBits) {
    launch(digit_counts, blocks, kSortThreads, c, row, count, shift, counts);
    launch(digit_begins, kDigits / kSortWarps, kSortThreads, c, counts, pieces, totals);
    launch(by_digit, blocks, kSortThreads, c, row, shift ? source : nullptr, count, shift, counts, totals, to_row,
           to_source);
    std::swap(row, to_row);
    std::swap(source, to_source);
  }
  return {row, source, count, rows};
}

void join_lists(const Args& c, const RowLists& l, int64_t outer, int64_t inner, const Operand& values, const Operand& y,
                Join how, bool fresh) {
  const int64_t n = outer * l.count * inner;
  if (n == 0) return;
  const unsigned blocks = blocks_for(n, 256);
  const Divider by_count(l.count), by_inner(inner);
  if (how == Join::last) {
    with_width(y.type(), [&]<class T>(T) {
      launch(last_rows<T>, blocks, 256, c, l, by_count, by_inner, n, values.at<const T>(), y.at<T>());
    });
    return;
  }
  with_compute_type<true>(y.type(), [&]<class T>(T) {
    const auto run = [&](auto* kernel) {
      launch(kernel, blocks, 256, c, l, by_count, by_inner, n, values.at<const T>(), y.at<T>(), fresh);
    };
    if (how == Join::sum) run(join_rows<T, Join::sum>);
    if (how == Join::prod) run(join_rows<T, Join::prod>);
    if (how == Join::amax) run(join_rows<T, Join::amax>);
    if (how == Join::amin) run(join_rows<T, Join::amin>);
  });
}

}  // namespace tenon::cuda
