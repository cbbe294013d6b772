#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <vector>

#include "core/backend.h"
#include "engine/ops/by_dtype.h"
#include "engine/ops/create.h"
#include "engine/ops/dense.h"
#include "engine/ops/index.h"
#include "engine/ops/sort.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

using namespace ops;

// Slices are rows of a dense matrix; a value of all elements is a row of one.
struct RowSet {
  Tensor rows;
  int64_t count, width;
  RowSet(const Tensor& x, int axis) {
    Tensor y = axis == kFlat ? reshape(x, {x.numel(), 1}) : transpose(x, 0, wrap_axis(axis, x.ndim()));
    y = cast(y, widened(y.dtype()));
    count = y.size(0);
    width = 1;
    for (int i = 1; i < y.ndim(); ++i) width *= y.size(i);
    rows = to_host(contiguous(y));
  }
};

struct Groups {
  std::vector<int64_t> first, inverse, counts;
};

Unique result(const Tensor& x, int axis, const Groups& g) {
  auto tensor = [&](const std::vector<int64_t>& v) { return integers(v, x.device()); };
  Unique u{{}, tensor(g.inverse), tensor(g.counts), tensor(g.first)};
  if (axis == kFlat) {
    u.values = index_select(reshape(x, {x.numel()}), 0, u.first);
    u.inverse = reshape(u.inverse, x.size());
  } else {
    u.values = index_select(x, axis, u.first);
  }
  return u;
}

}  // namespace

Unique unique(const Tensor& x, int axis, bool sorted) {
  const NoGrad off;
  const RowSet set(x, axis);
  Groups g;
  g.inverse.resize(static_cast<size_t>(set.count));
  by_arithmetic(set.rows.dtype(), [&](auto unit) {
    using T = decltype(unit);
    const T* v = set.rows.data<T>();
    // -1, 0 or 1; NaN is the largest, and no NaN equals another (as in PyTorch).
    auto order = [&](int64_t a, int64_t b) {
      for (int64_t k = 0; k < set.width; ++k) {
        const T p = v[a * set.width + k], q = v[b * set.width + k];
        if (p < q || (q != q && p == p)) return -1;
        if (q < p || (p != p && q == q)) return 1;
      }
      return 0;
    };
    auto equal = [&](int64_t a, int64_t b) {
      return std::equal(v + a * set.width, v + (a + 1) * set.width, v + b * set.width);
    };
    std::vector<int64_t> by_value(static_cast<size_t>(set.count));
    std::iota(by_value.begin(), by_value.end(), 0);
    std::stable_sort(by_value.begin(), by_value.end(), [&](int64_t a, int64_t b) { return order(a, b) < 0; });
    for (int64_t i : by_value) {
      if (g.first.empty() || !equal(g.first.back(), i)) {
        g.first.push_back(i);
        g.counts.push_back(0);
      }
      ++g.counts.back();
      g.inverse[static_cast<size_t>(i)] = static_cast<int64_t>(g.first.size()) - 1;
    }
  });
  if (sorted) return result(x, axis, g);
  // In order of first occurrence instead.
  std::vector<int64_t> order(g.first.size()), rank(g.first.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return g.first[static_cast<size_t>(a)] < g.first[static_cast<size_t>(b)]; });
  Groups by_place;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<size_t>(order[i]);
    rank[from] = static_cast<int64_t>(i);
    by_place.first.push_back(g.first[from]);
    by_place.counts.push_back(g.counts[from]);
  }
  for (int64_t i : g.inverse) by_place.inverse.push_back(rank[static_cast<size_t>(i)]);
  return result(x, axis, by_place);
}

Unique unique_consecutive(const Tensor& x, int axis) {
  const NoGrad off;
  const RowSet set(x, axis);
  Groups g;
  by_arithmetic(set.rows.dtype(), [&](auto unit) {
    using T = decltype(unit);
    const T* v = set.rows.data<T>();
    for (int64_t i = 0; i < set.count; ++i) {
      if (i == 0 || !std::equal(v + i * set.width, v + (i + 1) * set.width, v + (i - 1) * set.width)) {
        g.first.push_back(i);
        g.counts.push_back(0);
      }
      ++g.counts.back();
      g.inverse.push_back(static_cast<int64_t>(g.first.size()) - 1);
    }
  });
  return result(x, axis, g);
}

}  // namespace tenon
