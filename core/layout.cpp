#include "core/layout.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/error.h"

namespace tenon {

Dims::Dims(std::initializer_list<int64_t> list) {
  for (int64_t x : list) push_back(x);
}
Dims::Dims(const std::vector<int64_t>& list) {
  for (int64_t x : list) push_back(x);
}
Dims Dims::filled(int n, int64_t value) {
  Dims d;
  for (int i = 0; i < n; ++i) d.push_back(value);
  return d;
}
void Dims::push_back(int64_t x) {
  if (n == kMaxDims) throw Error(fmt::format("a tensor can have at most {} dimensions", kMaxDims));
  v[n++] = x;
}
void Dims::erase(int i) {
  for (; i + 1 < n; ++i) v[i] = v[i + 1];
  --n;
}
void Dims::insert(int i, int64_t x) {
  push_back(0);
  for (int k = n - 1; k > i; --k) v[k] = v[k - 1];
  v[i] = x;
}

std::string to_string(const Dims& d) { return fmt::format("[{}]", fmt::join(d.begin(), d.end(), ", ")); }

int wrap_axis(int64_t axis, int ndim) {
  int64_t limit = ndim == 0 ? 1 : ndim;  // a scalar accepts axis 0 and -1, as in PyTorch
  if (axis < -limit || axis >= limit)
    throw Error(fmt::format("axis {} is out of range for a tensor of {} dimensions", axis, ndim));
  return static_cast<int>(axis < 0 ? axis + limit : axis);
}

Layout Layout::contiguous(const Shape& size) {
  Layout l;
  l.size = size;
  l.stride.n = size.n;
  int64_t step = 1;
  for (int i = size.n - 1; i >= 0; --i) {
    l.stride[i] = step;
    step *= std::max<int64_t>(size[i], 1);
  }
  return l;
}

Layout Layout::channels_last(const Shape& size) {
  if (size.n != 4) return contiguous(size);
  Layout l;
  l.size = size;
  l.stride.n = 4;
  l.stride[1] = 1;
  l.stride[3] = std::max<int64_t>(size[1], 1);
  l.stride[2] = l.stride[3] * std::max<int64_t>(size[3], 1);
  l.stride[0] = l.stride[2] * std::max<int64_t>(size[2], 1);
  return l;
}

bool Layout::is_channels_last() const {
  if (size.n != 4) return false;
  int64_t step = 1;
  for (int i : {1, 3, 2, 0}) {
    if (size[i] != 1 && stride[i] != step) return false;
    step *= size[i];
  }
  return true;
}

// At most kMaxDims axes by rising |stride|: insertion sort.
static void sort_axes(int* order, int n, const Dims& stride) {
  for (int i = 1; i < n; ++i)
    for (int j = i; j > 0 && std::abs(stride[order[j]]) < std::abs(stride[order[j - 1]]); --j)
      std::swap(order[j], order[j - 1]);
}

bool Layout::is_dense() const {
  int order[kMaxDims], k = 0;
  for (int i = 0; i < size.n; ++i) {
    if (size[i] == 0) return true;
    if (size[i] > 1) order[k++] = i;
  }
  sort_axes(order, k, stride);
  int64_t step = 1;
  for (int j = 0; j < k; ++j) {
    if (stride[order[j]] != step) return false;
    step *= size[order[j]];
  }
  return true;
}

void Layout::extent(int64_t& lo, int64_t& hi) const {
  lo = hi = offset;
  for (int i = 0; i < size.n; ++i) {
    if (size[i] == 0) {
      lo = 0;
      hi = -1;
      return;
    }
    int64_t span = (size[i] - 1) * stride[i];
    (span < 0 ? lo : hi) += span;
  }
}

bool Layout::may_overlap() const {
  int order[kMaxDims], k = 0;
  for (int i = 0; i < size.n; ++i)
    if (size[i] > 1) order[k++] = i;
  sort_axes(order, k, stride);
  int64_t reach = 0;  // largest distance spanned by the axes seen so far
  for (int j = 0; j < k; ++j) {
    int64_t s = std::abs(stride[order[j]]);
    if (s <= reach) return true;
    reach += s * (size[order[j]] - 1);
  }
  return false;
}

Layout Layout::permute(const Dims& axes) const {
  if (axes.n != size.n)
    throw Error(fmt::format("permute: {} axes given for a tensor of size {}", axes.n, to_string(size)));
  Layout l = *this;
  uint32_t seen = 0;
  for (int i = 0; i < size.n; ++i) {
    int a = wrap_axis(axes[i], size.n);
    if (seen & (1u << a)) throw Error(fmt::format("permute: axis {} appears twice in {}", a, to_string(axes)));
    seen |= 1u << a;
    l.size[i] = size[a];
    l.stride[i] = stride[a];
  }
  return l;
}

Layout Layout::transpose(int a, int b) const {
  Layout l = *this;
  if (size.n == 0) return l;
  a = wrap_axis(a, size.n);
  b = wrap_axis(b, size.n);
  std::swap(l.size[a], l.size[b]);
  std::swap(l.stride[a], l.stride[b]);
  return l;
}

Layout Layout::expand(const Shape& to) const {
  int lead = to.n - size.n;
  if (lead < 0)
    throw Error(
        fmt::format("expand: size {} has fewer dimensions than the tensor's {}", to_string(to), to_string(size)));
  Layout l;
  l.offset = offset;
  l.size.n = l.stride.n = to.n;
  for (int i = to.n - 1; i >= 0; --i) {
    bool fresh = i < lead;
    int64_t have = fresh ? 1 : size[i - lead], want = to[i] == -1 && !fresh ? have : to[i];
    if (want < 0 || (have != 1 && have != want))
      throw Error(fmt::format("expand: size {} of axis {} cannot become {} (from {} to {})", have, i, to[i],
                              to_string(size), to_string(to)),
                  "only axes of size 1 can be expanded");
    l.size[i] = want;
    // A new axis of size 1 is never stepped along; like PyTorch, it gets the stride that a step over all behind it
    // would have.
    l.stride[i] = have != want || size.n == 0 ? 0
                  : !fresh                    ? stride[i - lead]
                  : i + 1 < to.n              ? l.size[i + 1] * l.stride[i + 1]
                                              : 1;
  }
  int64_t count = 1;
  for (int64_t n : l.size)
    if (n && __builtin_mul_overflow(count, n, &count))
      throw Error(fmt::format("expand: size {} has more elements than can be counted", to_string(to)));
  return l;
}

Layout Layout::slice(int axis, int64_t start, int64_t end, int64_t step) const {
  axis = wrap_axis(axis, size.n);
  if (size.n == 0) throw Error("slice: a tensor without dimensions cannot be sliced");
  if (step == 0) throw Error("slice: the step must not be 0");
  int64_t n = size[axis];
  auto clamp = [&](int64_t x, int64_t lo, int64_t hi) { return std::clamp(x < 0 ? x + n : x, lo, hi); };
  Layout l = *this;
  if (step > 0) {
    start = clamp(start, 0, n);
    end = clamp(end, 0, n);
    l.size[axis] = end > start ? (end - start + step - 1) / step : 0;
  } else {
    start = clamp(start, -1, n - 1);
    end = end < -n ? -1 : clamp(end, -1, n - 1);
    l.size[axis] = start > end ? (start - end - step - 1) / -step : 0;
  }
  if (l.size[axis] > 0) l.offset += start * stride[axis];
  l.stride[axis] = stride[axis] * step;
  return l;
}

Layout Layout::select(int axis, int64_t index) const {
  axis = wrap_axis(axis, size.n);
  if (size.n == 0) throw Error("select: a tensor without dimensions has no axis to select from");
  int64_t i = index < 0 ? index + size[axis] : index;
  if (i < 0 || i >= size[axis])
    throw Error(fmt::format("select: index {} is out of range for axis {} of size {}", index, axis, size[axis]));
  Layout l = *this;
  l.offset += i * stride[axis];
  l.size.erase(axis);
  l.stride.erase(axis);
  return l;
}

Layout Layout::squeeze(int axis) const {
  axis = wrap_axis(axis, size.n);
  Layout l = *this;
  if (size.n && size[axis] == 1) {
    l.size.erase(axis);
    l.stride.erase(axis);
  }
  return l;
}

Layout Layout::unsqueeze(int axis) const {
  axis = wrap_axis(axis, size.n + 1);
  Layout l = *this;
  l.stride.insert(axis, axis < size.n ? size[axis] * stride[axis] : 1);
  l.size.insert(axis, 1);
  return l;
}

Layout Layout::flip(int axis) const {
  axis = wrap_axis(axis, size.n);
  Layout l = *this;
  if (size.n && size[axis] > 0) {
    l.offset += (size[axis] - 1) * stride[axis];
    l.stride[axis] = -stride[axis];
  }
  return l;
}

Layout Layout::diagonal(int64_t shift, int a, int b) const {
  a = wrap_axis(a, size.n);
  b = wrap_axis(b, size.n);
  if (a == b) throw Error(fmt::format("diagonal: the two axes must differ (both are {})", a));
  int64_t n =
      std::max<int64_t>(shift >= 0 ? std::min(size[a], size[b] - shift) : std::min(size[a] + shift, size[b]), 0);
  Layout l = *this;
  if (n > 0) l.offset += shift >= 0 ? shift * stride[b] : -shift * stride[a];
  int64_t step = stride[a] + stride[b];
  for (int i : {std::max(a, b), std::min(a, b)}) {
    l.size.erase(i);
    l.stride.erase(i);
  }
  l.size.push_back(n);
  l.stride.push_back(step);
  return l;
}

Layout Layout::unfold(int axis, int64_t width, int64_t step) const {
  axis = wrap_axis(axis, size.n);
  int64_t have = size.n ? size[axis] : 1;
  if (width < 0 || width > have)
    throw Error(fmt::format("unfold: windows of {} do not fit axis {} of size {}", width, axis, have));
  if (step <= 0) throw Error(fmt::format("unfold: the step must be positive, not {}", step));
  Layout l = *this;
  int64_t along = size.n ? stride[axis] : 1;
  if (size.n) {
    l.size[axis] = (have - width) / step + 1;
    l.stride[axis] = along * step;
  }
  l.size.push_back(width);
  l.stride.push_back(along);
  return l;
}

Shape infer_view_size(const Shape& from, const Shape& to) {
  Shape out = to;
  int unknown = -1;
  int64_t known = 1, count = from.product();
  for (int i = 0; i < to.n; ++i) {
    if (to[i] == -1 && unknown < 0)
      unknown = i;
    else if (to[i] < 0)
      throw Error(fmt::format("view: size {} is not valid", to_string(to)));
    else
      known *= to[i];
  }
  if (unknown >= 0 && known > 0 && count % known == 0)
    out[unknown] = count / known;
  else if (unknown >= 0 || known != count)
    throw Error(fmt::format("view: {} elements of size {} do not fit size {}", count, to_string(from), to_string(to)));
  return out;
}

// Axes of `this` are grouped into runs that are contiguous among themselves; each run must be covered exactly by new
// axes.
bool Layout::view(const Shape& to, Layout& out) const {
  Shape want = infer_view_size(size, to);
  out.size = want;
  out.offset = offset;
  out.stride.n = want.n;
  if (numel() == 0) {
    out.stride = size == want ? stride : contiguous(want).stride;
    return true;
  }
  if (size.n == 0) {
    for (int i = 0; i < want.n; ++i) out.stride[i] = 1;
    return true;
  }
  int j = want.n - 1;
  int64_t base = stride.back(), run = 1, filled = 1;
  for (int i = size.n - 1; i >= 0; --i) {
    run *= size[i];
    bool ends = i == 0 || (size[i - 1] != 1 && stride[i - 1] != run * base);
    if (!ends) continue;
    while (j >= 0 && (filled < run || want[j] == 1)) {
      out.stride[j] = filled * base;
      filled *= want[j];
      --j;
    }
    if (filled != run) return false;
    if (i > 0) {
      base = stride[i - 1];
      run = filled = 1;
    }
  }
  return j == -1;
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  Shape out;
  out.n = std::max(a.n, b.n);
  for (int i = 1; i <= out.n; ++i) {
    int64_t x = i <= a.n ? a[a.n - i] : 1, y = i <= b.n ? b[b.n - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw Error(fmt::format("sizes {} and {} do not broadcast: {} against {} at axis -{}", to_string(a), to_string(b),
                              x, y, i),
                  "sizes are matched from the last axis; each pair must be equal or contain a 1");
    out[out.n - i] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace tenon
