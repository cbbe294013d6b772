#include <algorithm>

#include "engine/cuda/ordered.h"
#include "engine/cuda/rows.h"

// Note [Sorting on the GPU]
// An element and its place become one item, and items are compared as unsigned numbers: the key of the element first
// (engine/cuda/ordered.h), then the place. No two items of a row are alike, so the order is the CPU's whatever way
// leads to it. Tiles are sorted in shared memory. Of a row of several, all are merged pair by pair, where an item finds
// its place by how many of the other run stand before it; or, where only the first few are wanted, the first few of
// every tile are sorted again, until one tile is left.
namespace tenon::cuda {
namespace {

constexpr int kTile = 1024, kSortThreads = 256;

/// Of elements of up to 32 bits: the key above the place.
struct NarrowItem {
  using Key = uint32_t;
  uint64_t bits;
  static __device__ NarrowItem of(uint64_t key, uint32_t place) { return {key << 32 | place}; }
  static __device__ NarrowItem last() { return {~uint64_t{0}}; }
  __device__ uint64_t key() const { return bits >> 32; }
  __device__ uint32_t place() const { return static_cast<uint32_t>(bits); }
  __device__ bool before(const NarrowItem& o) const { return bits < o.bits; }
};
struct WideItem {
  using Key = uint64_t;
  uint64_t bits;
  uint32_t at;
  static __device__ WideItem of(uint64_t key, uint32_t place) { return {key, place}; }
  static __device__ WideItem last() { return {~uint64_t{0}, ~uint32_t{0}}; }
  __device__ uint64_t key() const { return bits; }
  __device__ uint32_t place() const { return at; }
  __device__ bool before(const WideItem& o) const { return bits < o.bits || (bits == o.bits && at < o.at); }
};

/// Rows of x along an axis. `kept` walks x, the values and the indices.
struct SortTask {
  const void* x;
  void* values;
  int64_t* indices;
  DType dtype;
  int width;  ///< bytes of an element
  rows::Walk<3> kept;
  int64_t n, step[3];  ///< of the axis
  bool descending;
  bool nan_first;  ///< the first NaN of a row before all else
};

template <class Item>
__device__ Item item_at(const SortTask& t, int64_t row, int64_t place) {
  int64_t at[3];
  t.kept.at(row, at);
  const int64_t i = at[0] + place * t.step[0];
  using Key = typename Item::Key;
  constexpr Key nan = ~Key{0};
  Key key = ordered::key<Key>(t.x, t.dtype, i);
  if (t.nan_first && key == nan && is_floating(t.dtype)) key = 0;
  if (t.descending) key = nan - key;
  return Item::of(key, static_cast<uint32_t>(place));
}

/// Sorts the tiles of every row and writes the first `keep` of each, one behind the other: `kept` a row. From the
/// task's elements where `from` is null. `tile` is a power of two; threads beyond half of it have nothing to compare.
template <class Item>
__global__ void __launch_bounds__(kSortThreads)
    sort_tiles(SortTask t, const Item* from, Item* to, int64_t n, int tile, int64_t keep, int64_t kept) {
  TENON_SHARED(Item, items, kTile);
  const int64_t tiles = (n + tile - 1) / tile;
  for (int64_t b = blockIdx.x; b < t.kept.count * tiles; b += gridDim.x) {
    const int64_t row = b / tiles, first = b % tiles * tile;
    for (int i = static_cast<int>(threadIdx.x); i < tile; i += static_cast<int>(blockDim.x)) {
      const int64_t place = first + i;
      items[i] = place >= n ? Item::last() : from ? from[row * n + place] : item_at<Item>(t, row, place);
    }
    __syncthreads();
    // Bitonic: blocks of `size` are ascending and descending in turns.
    for (int size = 2; size <= tile; size *= 2)
      for (int apart = size / 2; apart > 0; apart /= 2) {
        for (int i = static_cast<int>(threadIdx.x); i < tile / 2; i += static_cast<int>(blockDim.x)) {
          const int low = i / apart * apart * 2 + i % apart, high = low + apart;
          const Item a = items[low], c = items[high];
          if (c.before(a) == ((low & size) == 0)) {
            items[low] = c;
            items[high] = a;
          }
        }
        __syncthreads();
      }
    for (int64_t i = threadIdx.x; i < keep && first + i < n && i < tile; i += blockDim.x)
      to[row * kept + first / tile * keep + i] = items[i];
    __syncthreads();
  }
}

/// Runs of `run` items of a row, each sorted, become runs of twice as many.
template <class Item>
__global__ void merge_runs(const Item* from, Item* to, int64_t rows, int64_t n, int64_t run) {
  for (int64_t i = first_of_thread(); i < rows * n; i += threads_of_grid()) {
    const int64_t row = i / n, place = i % n, pair = place / (2 * run) * (2 * run), mine = place / run * run;
    int64_t low = mine == pair ? pair + run : pair;
    const int64_t other = low < n ? low : n;
    int64_t high = other + run < n ? other + run : n;
    low = other;
    const Item item = from[i];
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (from[row * n + middle].before(item))
        low = middle + 1;
      else
        high = middle;
    }
    to[row * n + pair + (place - mine) + (low - other)] = item;
  }
}

/// Results [begin, begin + count) of the sorted items of every row, `length` a row. `median`: where a NaN is the first
/// item, that instead.
template <class Item>
__global__ void write_chosen(SortTask t, const Item* sorted, int64_t length, int64_t begin, int64_t count,
                             bool median) {
  for (int64_t i = first_of_thread(); i < t.kept.count * count; i += threads_of_grid()) {
    const int64_t row = i / count, k = i % count;
    const Item* items = sorted + row * length;
    const Item item = median && is_floating(t.dtype) && items[0].key() == 0 ? items[0] : items[begin + k];
    int64_t at[3];
    t.kept.at(row, at);
    t.indices[at[2] + k * t.step[2]] = item.place();
    rows::copy_element(t.values, at[1] + k * t.step[1], t.x, at[0] + item.place() * t.step[0], t.width);
  }
}

/// Of every row the last element of the longest run of alike ones; of runs of one length the first.
template <class Item>
__global__ void __launch_bounds__(kSortThreads) write_modes(SortTask t, const Item* sorted, int lanes) {
  TENON_SHARED(uint64_t, shared, 32);
  for (rows::RowLoop r(t.kept.count, t.n, lanes); r.more(); r.next()) {
    const Item* items = sorted + r.row * t.n;
    uint64_t best = 0;  // the length above the place from behind
    for (int64_t i = r.lane; i < r.end; i += lanes) {
      if (i + 1 < t.n && items[i + 1].key() == items[i].key()) continue;
      int64_t low = 0, high = i;
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (items[middle].key() < items[i].key())
          low = middle + 1;
        else
          high = middle;
      }
      const uint64_t here = static_cast<uint64_t>(i + 1 - low) << 32 | (0xffffffffu - static_cast<uint32_t>(i));
      if (here > best) best = here;
    }
    best = rows::over_group<rows::Larger>(best, lanes, shared);
    if (!r.there || r.lane != 0) continue;
    const Item item = items[0xffffffffu - static_cast<uint32_t>(best)];
    int64_t at[3];
    t.kept.at(r.row, at);
    t.indices[at[2]] = item.place();
    rows::copy_element(t.values, at[1], t.x, at[0] + item.place() * t.step[0], t.width);
  }
}

/// The items of each row in order, at least the first `wanted`, and how many a row has.
template <class Item>
struct Sorted {
  const Item* items;
  int64_t length;
};
template <class Item>
Sorted<Item> sort_rows(const Args& c, const SortTask& t, int64_t wanted) {
  const bool few = wanted <= kTile / 2;
  const Item* from = nullptr;
  int64_t n = t.n;
  while (true) {
    const int tile = rows::power_of_two(n, kTile);
    const int64_t tiles = ceil_div(n, tile), keep = few && wanted < tile ? wanted : tile;
    const int64_t kept = (tiles - 1) * keep + std::min(keep, n - (tiles - 1) * tile);
    Item* to = c.scratch<Item>(t.kept.count * kept);
    const auto threads = static_cast<unsigned>(std::clamp(tile / 2, 32, kSortThreads));
    launch(sort_tiles<Item>, blocks_for(t.kept.count * tiles, 1), threads, c, t, from, to, n, tile, keep, kept);
    from = to;
    n = kept;
    if (tiles == 1) return {from, n};
    if (!few) break;
  }
  Item* to = c.scratch<Item>(t.kept.count * n);
  for (int64_t run = kTile; run < n; run *= 2) {
    launch(merge_runs<Item>, blocks_for(t.kept.count * n, kSortThreads), kSortThreads, c, from, to, t.kept.count, n,
           run);
    Item* const other = const_cast<Item*>(from);
    from = to;
    to = other;
  }
  return {from, n};
}

/// What an op wants of a sorted row.
struct Choice {
  int64_t begin = 0, count = 1;
  bool one = true;  ///< the outputs lack the axis, unless keepdim says otherwise
  bool descending = false, median = false, mode = false;
};

SortTask sort_task(const Args& c, const Choice& choice) {
  const Operand x = c.in(0), values = c.out(0), indices = c.out(1);
  const int axis = static_cast<int>(c.whole("axis"));
  const bool keeps = !choice.one || c.flag("keepdim");
  SortTask t{};
  t.x = x.data;
  t.values = values.data;
  t.indices = indices.at<int64_t>();
  t.dtype = x.type();
  t.width = static_cast<int>(itemsize(x.type()));
  t.n = x.size[axis];
  t.step[0] = x.stride[axis];
  t.step[1] = keeps ? values.stride[axis] : 0;
  t.step[2] = keeps ? indices.stride[axis] : 0;
  for (int d = 0, o = 0; d < x.ndim; ++d) {
    if (d != axis) t.kept.add(x.size[d], {x.stride[d], values.stride[o], indices.stride[o]});
    if (d != axis || keeps) ++o;
  }
  t.descending = choice.descending;
  t.nan_first = choice.median;
  return t;
}

template <class Item>
void choose_as(const Args& c, const SortTask& t, const Choice& choice) {
  const Sorted<Item> sorted = sort_rows<Item>(c, t, choice.mode ? t.n : choice.begin + choice.count);
  if (choice.mode) {
    const rows::RowPlan plan(t.kept.count, t.n);
    const int lanes = std::min(plan.lanes, kSortThreads);
    return launch(write_modes<Item>, blocks_for(t.kept.count, kSortThreads / lanes), kSortThreads, c, t, sorted.items,
                  lanes);
  }
  launch(write_chosen<Item>, blocks_for(t.kept.count * choice.count, kSortThreads), kSortThreads, c, t, sorted.items,
         sorted.length, choice.begin, choice.count, choice.median);
}
void choose(const Args& c, const Choice& choice) {
  const SortTask t = sort_task(c, choice);
  c.want(t.n < int64_t{0xffffffff});
  if (t.kept.count == 0 || choice.count == 0) return;
  if (ordered::narrow(t.dtype))
    choose_as<NarrowItem>(c, t, choice);
  else
    choose_as<WideItem>(c, t, choice);
}
int64_t along_axis(const Args& c) { return c.in(0).size[c.whole("axis")]; }

void run_sort(Args& c) { choose(c, {.count = along_axis(c), .one = false, .descending = c.flag("flag")}); }
void run_topk(Args& c) { choose(c, {.count = c.whole("k"), .one = false, .descending = c.flag("flag")}); }
void run_kthvalue(Args& c) { choose(c, {.begin = c.whole("k") - 1}); }
void run_median(Args& c) { choose(c, {.begin = (along_axis(c) + 1) / 2 - 1, .median = true}); }
void run_mode(Args& c) { choose(c, {.mode = true}); }

const KernelOf sort_entry{"sort", run_sort};
const KernelOf topk_entry{"topk", run_topk};
const KernelOf kthvalue_entry{"kthvalue", run_kthvalue};
const KernelOf median_entry{"median", run_median};
const KernelOf mode_entry{"mode", run_mode};

}  // namespace
}  // namespace tenon::cuda
