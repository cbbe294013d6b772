#include "engine/cuda/strided.h"

// Note [Views by their places]
// The strided ops are about two layouts of one memory, a base and a view, of which neither is in memory here. Where the
// base has no gaps and its operand lies as the base does, that operand is the memory, and a copy will do. Else a thread
// takes an element of the one layout, and from its place finds the elements of the other that lie there: axis by axis,
// passing over what the remaining axes cannot reach. Elements over each other are met in the order of their numbers.
namespace tenon::cuda {
namespace {

constexpr int kPlaceThreads = 256;

/// A layout as an attribute holds it: an operand without memory.
struct PlaceLayout {
  Operand as;
  int64_t offset;

  explicit PlaceLayout(const AttrArg& a) : as{{nullptr, -1, static_cast<int32_t>(a.list[1]), {}, {}}} {
    offset = a.list[0];
    for (int d = 0; d < as.ndim; ++d) {
      as.size[d] = a.list[2 + d];
      as.stride[d] = a.list[2 + as.ndim + d];
    }
  }
  /// The first and the last place; none where last < first.
  void extent(int64_t& first, int64_t& last) const {
    first = last = offset;
    for (int d = 0; d < as.ndim; ++d) {
      if (as.size[d] == 0) {
        last = first - 1;
        return;
      }
      (as.stride[d] < 0 ? first : last) += as.stride[d] * (as.size[d] - 1);
    }
  }
  /// Axes longer than 1 by falling |stride|; returns how many.
  int by_stride(int (&order)[kDims]) const {
    int n = 0;
    for (int d = 0; d < as.ndim; ++d) {
      if (as.size[d] == 1) continue;
      int k = n++;
      for (; k > 0 && length(order[k - 1]) < length(d); --k) order[k] = order[k - 1];
      order[k] = d;
    }
    return n;
  }
  /// Layout::may_overlap().
  bool may_overlap() const {
    int order[kDims];
    int64_t reach = 0;
    for (int k = by_stride(order) - 1; k >= 0; --k) {
      if (length(order[k]) <= reach) return true;
      reach += length(order[k]) * (as.size[order[k]] - 1);
    }
    return false;
  }
  int64_t length(int d) const { return as.stride[d] < 0 ? -as.stride[d] : as.stride[d]; }
};

/// Finds the elements of a layout at a place.
struct PlaceFinder {
  int ndim = 0;  ///< -1: the layout has no elements
  int64_t offset = 0;
  int64_t size[kDims], stride[kDims], step[kDims];  ///< step: strides of the operand that holds the elements
  int64_t low[kDims], high[kDims];                  ///< how far the axes after this one reach

  /// f(where the operand holds it) for each of them.
  template <class F>
  __device__ void each(int64_t place, const F& f) const {
    if (ndim < 0) return;
    if (ndim == 0) {
      if (place == offset) f(int64_t{0});
      return;
    }
    int64_t at[kDims], last[kDims], left[kDims], found[kDims];
    left[0] = place - offset;
    found[0] = 0;
    range(0, left[0], at[0], last[0]);
    for (int d = 0; d >= 0;) {
      if (at[d] > last[d]) {
        if (--d >= 0) ++at[d];
        continue;
      }
      const int64_t next = found[d] + at[d] * step[d];
      if (d == ndim - 1) {
        f(next);
        ++at[d];
        continue;
      }
      left[d + 1] = left[d] - at[d] * stride[d];
      found[d + 1] = next;
      ++d;
      range(d, left[d], at[d], last[d]);
    }
  }

 private:
  /// The indices of axis d from which the axes after it reach what is left.
  __device__ void range(int d, int64_t left, int64_t& first, int64_t& last) const {
    const int64_t s = stride[d], from = left - high[d], to = left - low[d];  // i * s lies within
    first = 0;
    last = size[d] - 1;
    if (s == 0) {
      if (from > 0 || to < 0) last = -1;
      return;
    }
    const int64_t a = s > 0 ? from : -to, b = s > 0 ? to : -from, by = s > 0 ? s : -s;
    if (b < 0) {
      last = -1;
      return;
    }
    if (a > 0) first = (a + by - 1) / by;
    if (b / by < last) last = b / by;
  }
};

/// The elements of `holder`, which lie as l says. In the order of their numbers, or (where no two share a place) of
/// falling strides, which finds them soonest.
PlaceFinder finder_of(const PlaceLayout& l, const Operand& holder, bool in_order) {
  PlaceFinder f;
  f.offset = l.offset;
  int order[kDims], n = 0;
  if (in_order) {
    for (int d = 0; d < l.as.ndim; ++d)
      if (l.as.size[d] != 1) order[n++] = d;
  } else {
    n = l.by_stride(order);
  }
  if (l.as.numel() == 0) n = -1;
  f.ndim = n;
  int64_t low = 0, high = 0;
  for (int k = n - 1; k >= 0; --k) {
    const int d = order[k];
    f.size[k] = l.as.size[d];
    f.stride[k] = l.as.stride[d];
    f.step[k] = holder.stride[d];
    f.low[k] = low;
    f.high[k] = high;
    (f.stride[k] < 0 ? low : high) += f.stride[k] * (f.size[k] - 1);
  }
  return f;
}

/// Each element of y: the one at its place (of several the last), else `other`'s, else 0. The plan is of y, its places
/// and `other`.
template <class T>
__global__ void pick_places(const T* from, const T* other, T* y, int64_t offset, Strided<3> p, PlaceFinder f) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[3];
    p.find(i, at);
    T v = other ? other[at[2]] : T(0);
    f.each(offset + at[1], [&](int64_t k) { v = from[k]; });
    y[at[0]] = v;
  }
}
template <class T>
__global__ void sum_places(const void* from, DType type, void* y, int64_t offset, Strided<3> p, PlaceFinder f) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[3];
    p.find(i, at);
    T sum = 0;
    f.each(offset + at[1], [&](int64_t k) { sum += element::at<T>(from, type, k); });
    element::put(y, type, at[0], sum);
  }
}

void pick(const Args& c, const Operand& y, const PlaceLayout& of_y, const Operand& from, const PlaceLayout& of_from,
          const Operand* other) {
  const Strided<3> p = strided_of<3>({y, of_y.as, other ? *other : y});
  const PlaceFinder f = finder_of(of_from, from, of_from.may_overlap());
  with_width(y.type(), [&]<class T>(T) {
    launch(pick_places<T>, blocks_for(p.numel, kPlaceThreads), kPlaceThreads, c, from.at<const T>(),
           other ? other->at<const T>() : nullptr, y.at<T>(), of_y.offset, p, f);
  });
}

/// Whether x, which is of the base, is the memory in which the view's elements lie; `seen` are they.
bool is_memory(const Operand& x, const PlaceLayout& base, const PlaceLayout& view, Operand& seen) {
  int64_t first, last, view_first, view_last;
  base.extent(first, last);
  view.extent(view_first, view_last);
  if (base.may_overlap() || last - first + 1 != x.numel() || view_last < view_first || view_first < first ||
      view_last > last)
    return false;
  for (int d = 0; d < x.ndim; ++d)
    if (x.size[d] != 1 && x.stride[d] != base.as.stride[d]) return false;
  seen = view.as;
  seen.dtype = x.dtype;
  seen.data = x.data;
  seen = moved_by(seen, view.offset - base.offset);
  return true;
}

void run_strided_gather(Args& c) {
  const PlaceLayout base(c.attr("base")), view(c.attr("view"));
  if (Operand seen; is_memory(c.in(0), base, view, seen)) return copy_elements(c, c.out(0), seen);
  pick(c, c.out(0), view, c.in(0), base, nullptr);
}

void run_strided_scatter(Args& c) {
  const PlaceLayout base(c.attr("base")), view(c.attr("view"));
  const Operand x = c.in(0), y = c.out(0);
  if (!view.may_overlap()) {
    Operand seen;
    if (!is_memory(y, base, view, seen)) return pick(c, y, base, x, view, nullptr);
    fill_elements(c, y, 0);
    return copy_elements(c, seen, x);
  }
  const Strided<3> p = strided_of<3>({y, base.as, y});
  const PlaceFinder f = finder_of(view, x, true);
  const auto run = [&]<class T>(T) {
    launch(sum_places<T>, blocks_for(p.numel, kPlaceThreads), kPlaceThreads, c, static_cast<const void*>(x.data),
           x.type(), y.data, base.offset, p, f);
  };
  if (x.is(DType::f64))
    run(double{});
  else if (is_floating(x.type()))
    run(float{});
  else
    run(int64_t{});
}

void run_strided_replace(Args& c) {
  const PlaceLayout base(c.attr("base")), view(c.attr("view"));
  const Operand x = c.in(0), y = c.out(0);
  if (Operand seen; is_memory(y, base, view, seen)) {
    if (x.data != y.data) copy_elements(c, y, x);
    return copy_elements(c, seen, c.in(1));
  }
  pick(c, y, base, c.in(1), view, &x);
}

const KernelOf strided_gather_entry{"strided_gather", run_strided_gather};
const KernelOf strided_scatter_entry{"strided_scatter", run_strided_scatter};
const KernelOf strided_replace_entry{"strided_replace", run_strided_replace};

}  // namespace
}  // namespace tenon::cuda
