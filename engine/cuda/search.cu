#include <algorithm>

#include "engine/cuda/ordered.h"
#include "engine/cuda/rows.h"

// Where values stand among sorted boundaries, and how many lie in each of a row of equal bins.
namespace tenon::cuda {
namespace {

constexpr int kSearchThreads = 256;

/// Rows of n boundaries, each for `per` values.
__global__ void search_sorted(const void* boundaries, const void* values, DType dtype, int64_t* to, int64_t n,
                              int64_t per, int64_t count, bool right) {
  for (int64_t i = first_of_thread(); i < count; i += threads_of_grid()) {
    const uint64_t key = ordered::key<uint64_t>(values, dtype, i);
    const int64_t row = i / per * n;
    int64_t low = 0, high = n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      const uint64_t other = ordered::key<uint64_t>(boundaries, dtype, row + middle);
      if (right ? other <= key : other < key)
        low = middle + 1;
      else
        high = middle;
    }
    to[i] = low;
  }
}
void run_searchsorted(Args& c) {
  const Operand b = c.in(0), v = c.in(1);
  const rows::Target<int64_t> to(c, c.out(0));
  const int64_t n = b.size[b.ndim - 1], count = v.numel();
  const int64_t per = std::max<int64_t>(1, b.ndim == 1 ? count : v.size[v.ndim - 1]);
  int64_t* const places = to;
  launch(search_sorted, blocks_for(count, kSearchThreads), kSearchThreads, c, dense_of(c, b, b.type()).data,
         dense_of(c, v, v.type()).data, v.type(), places, n, per, count, c.flag("right"));
  to.finish(c);
}

// Counts are whole numbers, and those come out alike in whatever order they are added up.
__global__ void no_counts(unsigned long long* counts, int64_t bins) {
  for (int64_t i = first_of_thread(); i < bins; i += threads_of_grid()) counts[i] = 0;
}
__global__ void count_in_bins(const void* x, DType dtype, unsigned long long* counts, int64_t bins, double lo,
                              double hi, Strided<1> p) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[1];
    p.find(i, at);
    const double v = element::at<double>(x, dtype, at[0]);
    if (!(v >= lo && v <= hi)) continue;
    const auto bin = static_cast<int64_t>((v - lo) * static_cast<double>(bins) / (hi - lo));
    atomicAdd(counts + (bin < bins ? bin : bins - 1), 1ull);
  }
}
__global__ void put_counts(const unsigned long long* counts, void* y, DType dtype, int64_t bins, int64_t step) {
  for (int64_t i = first_of_thread(); i < bins; i += threads_of_grid())
    element::put(y, dtype, i * step, static_cast<double>(counts[i]));
}
void run_histc(Args& c) {
  const Operand x = c.in(0), y = c.out(0);
  const int64_t bins = c.whole("bins");
  double lo = c.number("min"), hi = c.number("max");
  if (lo == hi) {
    lo -= 1;
    hi += 1;
  }
  auto* counts = c.scratch<unsigned long long>(bins);
  launch(no_counts, blocks_for(bins, kSearchThreads), kSearchThreads, c, counts, bins);
  const Strided<1> p = strided_of<1>({x});
  launch(count_in_bins, blocks_for(p.numel, kSearchThreads), kSearchThreads, c, x.data, x.type(), counts, bins, lo, hi,
         p);
  launch(put_counts, blocks_for(bins, kSearchThreads), kSearchThreads, c, counts, y.data, y.type(), bins, y.stride[0]);
}

const KernelOf searchsorted_entry{"searchsorted", run_searchsorted};
const KernelOf histc_entry{"histc", run_histc};

}  // namespace
}  // namespace tenon::cuda
