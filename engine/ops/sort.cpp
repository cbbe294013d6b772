#include "engine/ops/sort.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "core/backend.h"
#include "core/error.h"
#include "core/parallel.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/op/strided_loop.h"
#include "engine/ops/by_dtype.h"
#include "engine/ops/create.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/gather.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

// Note [Choosing elements]
// Every op here chooses elements of rows along one axis and says which: values and indices. They differ in a rule that
// fills the indices of a row; the rest (layout, values, gradient) is Chooser's. Half precision is compared as f32.

namespace tenon {
namespace {

using namespace ops;

struct SortAttrs {
  int64_t axis, k;
  bool flag, keep;  ///< flag: descending, or largest
  template <class F>
  void fields(F&& f) const {
    f("axis", axis);
    f("k", k);
    f("flag", flag);
    f("keepdim", keep);
  }
};

template <class T>
bool is_nan(T v) {
  return v != v;
}
/// a before b in ascending order, NaN last.
template <class T>
bool before(T a, T b) {
  return a < b || (is_nan(b) && !is_nan(a));
}
template <class T>
bool alike(T a, T b) {
  return a == b || (is_nan(a) && is_nan(b));
}

template <class T>
struct ByValue {
  const T* v;
  bool descending;
  // A strict total order: ties by place.
  bool operator()(int64_t i, int64_t j) const {
    if (before(v[i], v[j])) return !descending;
    if (before(v[j], v[i])) return descending;
    return i < j;
  }
};

void check_k(int64_t k, int64_t low, int64_t n) {
  if (k < low || k > n) throw Error(fmt::format("k = {} is outside {} to {}, the size of the axis", k, low, n));
}
void check_any(int64_t n) {
  if (n == 0) throw Error("the axis has no elements to choose from");
}

struct SortRule {
  static constexpr const char *name = "sort", *onnx = "";
  static constexpr bool one = false;
  static int64_t count(const SortAttrs&, int64_t n) { return n; }
  template <class T>
  static void choose(const SortAttrs& a, const T* v, int64_t n, int64_t* order, int64_t) {
    std::iota(order, order + n, 0);
    std::sort(order, order + n, ByValue<T>{v, a.flag});
  }
};
struct TopKRule {
  static constexpr const char *name = "topk", *onnx = "TopK";
  static constexpr bool one = false;
  static int64_t count(const SortAttrs& a, int64_t n) {
    check_k(a.k, 0, n);
    return a.k;
  }
  template <class T>
  static void choose(const SortAttrs& a, const T* v, int64_t n, int64_t* order, int64_t k) {
    std::iota(order, order + n, 0);
    std::partial_sort(order, order + k, order + n, ByValue<T>{v, a.flag});
  }
};
struct KthRule {
  static constexpr const char *name = "kthvalue", *onnx = "";
  static constexpr bool one = true;
  static int64_t count(const SortAttrs& a, int64_t n) {
    check_k(a.k, 1, n);
    return 1;
  }
  template <class T>
  static void choose(const SortAttrs& a, const T* v, int64_t n, int64_t* order, int64_t) {
    std::iota(order, order + n, 0);
    std::nth_element(order, order + a.k - 1, order + n, ByValue<T>{v, false});
    order[0] = order[a.k - 1];
  }
};
struct MedianRule {
  static constexpr const char *name = "median", *onnx = "";
  static constexpr bool one = true;
  static int64_t count(const SortAttrs&, int64_t n) {
    check_any(n);
    return 1;
  }
  template <class T>
  static void choose(const SortAttrs&, const T* v, int64_t n, int64_t* order, int64_t) {
    for (int64_t i = 0; i < n; ++i)
      if (is_nan(v[i])) {
        order[0] = i;
        return;
      }
    KthRule::choose(SortAttrs{0, (n + 1) / 2, false, false}, v, n, order, 1);
  }
};
struct ModeRule {
  static constexpr const char *name = "mode", *onnx = "";
  static constexpr bool one = true;
  static int64_t count(const SortAttrs&, int64_t n) {
    check_any(n);
    return 1;
  }
  template <class T>
  static void choose(const SortAttrs&, const T* v, int64_t n, int64_t* order, int64_t) {
    std::iota(order, order + n, 0);
    std::sort(order, order + n, ByValue<T>{v, false});
    int64_t best = 0, at = 0;
    for (int64_t i = 0, j; i < n; i = j) {
      for (j = i; j < n && alike(v[order[j]], v[order[i]]); ++j) {
      }
      if (j - i > best) {
        best = j - i;
        at = order[j - 1];
      }
    }
    order[0] = at;
  }
};
template <bool Max>
struct ExtremeRule {
  static constexpr const char *name = Max ? "max_dim" : "min_dim", *onnx = "";
  static constexpr bool one = true;
  static int64_t count(const SortAttrs&, int64_t n) {
    check_any(n);
    return 1;
  }
  template <class T>
  static void choose(const SortAttrs&, const T* v, int64_t n, int64_t* order, int64_t) {
    int64_t best = 0;
    for (int64_t i = 1; i < n && !is_nan(v[best]); ++i)
      if ((Max ? v[i] > v[best] : v[i] < v[best]) || is_nan(v[i])) best = i;
    order[0] = best;
  }
};

template <class Rule>
struct Chooser {
  static constexpr OpInfo info{Rule::name, Rule::onnx, OpKind::index, 2};
  using Attrs = SortAttrs;
  static void infer(const Attrs& a, const Tensor* in, int, Meta* out) {
    const Shape& x = in[0].size();
    if (a.axis < 0 || a.axis >= x.n)
      throw Error(fmt::format("axis {} is out of range for size {}", a.axis, to_string(x)));
    const int axis = static_cast<int>(a.axis);
    Shape s = x;
    s[axis] = Rule::count(a, x[axis]);
    if (Rule::one && !a.keep) s.erase(axis);
    out[0] = in[0].meta();
    out[0].shape = s;
    out[1].dtype = DType::i64;
    out[1].shape = s;
  }
  static size_t workspace(const Attrs&, const Call& c) {
    kernels::Room room;
    dense_as(c.in[0], widened(c.in[0].dtype()), room);
    target(c, 0, widened(c.in[0].dtype()), room);
    return room.used();
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    const DType t = widened(c.in[0].dtype());
    kernels::Room room(c.workspace);
    const Tensor x = dense_as(c.in[0], t, room), y = target(c, 0, t, room);
    const int axis = static_cast<int>(a.axis);
    const int64_t n = x.size(axis), k = Rule::count(a, n);
    int64_t inner = 1, rows = 1;
    for (int i = 0; i < axis; ++i) rows *= x.size(i);
    for (int i = axis + 1; i < x.ndim(); ++i) inner *= x.size(i);
    rows *= inner;
    by_arithmetic(t, [&](auto unit) {
      using T = decltype(unit);
      parallel_for(rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
        std::vector<int64_t> order(static_cast<size_t>(std::max<int64_t>(n, 1)));
        auto held = std::make_unique<T[]>(static_cast<size_t>(n));
        for (int64_t r = begin; r < end; ++r) {
          const int64_t base = r / inner * n * inner + r % inner, to = r / inner * k * inner + r % inner;
          for (int64_t i = 0; i < n; ++i) held[static_cast<size_t>(i)] = x.data<T>()[base + i * inner];
          Rule::template choose<T>(a, held.get(), n, order.data(), k);
          for (int64_t i = 0; i < k; ++i) {
            y.data<T>()[to + i * inner] = held[static_cast<size_t>(order[static_cast<size_t>(i)])];
            c.out[1].data<int64_t>()[to + i * inner] = order[static_cast<size_t>(i)];
          }
        }
      });
    });
    finished(c, 0, y);
  }
  static constexpr Saves saves{.inputs = 0, .outputs = 0b10};
  static void backward(Grad& d) {
    if (!d.out()) return;
    const auto& a = d.as<Attrs>();
    const int axis = static_cast<int>(a.axis);
    Tensor g = d.out(), at = d.y(1);
    if (Rule::one && !a.keep) {
      g = unsqueeze(g, axis);
      at = unsqueeze(at, axis);
    }
    d.in(0) = scatter_add(zeros(d.meta(0).shape, g.dtype(), g.device()), axis, at, g);
  }
  static void onnx(const Attrs& a, OnnxOp& o) {
    o.set("axis", a.axis);
    o.set("largest", static_cast<int64_t>(a.flag));
    o.add_input(Dims{a.k});
  }
  static void samples(Samples& s) {
    for (bool flag : {false, true}) {
      s.add(flag ? "rows, other way" : "rows", Attrs{1, 2, flag, flag}, {s.values({3, 5})});
      s.add(flag ? "columns, other way" : "columns", Attrs{0, 3, flag, !flag}, {s.values({4, 2, 3})});
    }
    s.add("integers with ties", Attrs{0, 4, true, false}, {s.indices({9}, 4)});
  }
};

struct SearchSorted {
  static constexpr OpInfo info{"searchsorted", "", OpKind::index};
  struct Attrs {
    bool right;
    template <class F>
    void fields(F&& f) const {
      f("right", right);
    }
  };
  static Meta infer(const Attrs&, const Meta& b, const Meta& v) {
    bool fits = b.shape.n == 1 || b.shape.n == v.shape.n;
    for (int i = 0; fits && b.shape.n > 1 && i < b.shape.n - 1; ++i) fits = b.shape[i] == v.shape[i];
    if (!fits || b.shape.n == 0)
      throw Error(fmt::format("boundaries of size {} do not fit values of size {}: one axis, or the same leading axes",
                              to_string(b.shape), to_string(v.shape)));
    if (b.dtype != v.dtype)
      throw Error(fmt::format("boundaries of {} and values of {}", name(b.dtype), name(v.dtype)), "cast() one of them");
    Meta m = v;
    m.dtype = DType::i64;
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) {
    kernels::Room room;
    for (int i = 0; i < 2; ++i) dense_as(c.in[i], widened(c.in[0].dtype()), room);
    return room.used();
  }
  static void cpu(const Call& c) {
    const DType t = widened(c.in[0].dtype());
    kernels::Room room(c.workspace);
    const Tensor b = dense_as(c.in[0], t, room), v = dense_as(c.in[1], t, room);
    const int64_t n = b.size(-1),
                  per = b.ndim() == 1 ? std::max<int64_t>(1, v.numel()) : std::max<int64_t>(1, v.size(-1));
    by_arithmetic(t, [&](auto unit) {
      using T = decltype(unit);
      const bool right = c.as<Attrs>().right;
      parallel_for(v.numel(), kLoopGrain / 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* row = b.data<T>() + i / per * n;
          const T x = v.data<T>()[i];
          const T* at =
              right ? std::upper_bound(row, row + n, x, before<T>) : std::lower_bound(row, row + n, x, before<T>);
          c.out[0].data<int64_t>()[i] = at - row;
        }
      });
    });
  }
  static void samples(Samples& s) {
    Tensor edges = empty({4}, DType::f64);
    for (int i = 0; i < 4; ++i) edges.data<double>()[i] = 0.5 * i - 0.75;
    s.add("left", Attrs{false}, {clone(edges), s.values({3, 4})});
    s.add("right", Attrs{true}, {edges, s.values({5})});
  }
};

struct Histc {
  static constexpr OpInfo info{"histc", "", OpKind::index};
  struct Attrs {
    int64_t bins;
    double lo, hi;
    template <class F>
    void fields(F&& f) const {
      f("bins", bins);
      f("min", lo);
      f("max", hi);
    }
  };
  static Meta infer(const Attrs& a, const Meta& x) {
    if (a.bins <= 0) throw Error(fmt::format("{} bins; one at least", a.bins));
    if (!is_floating(x.dtype))
      throw Error(fmt::format("it works on floating point, not on {}", name(x.dtype)), "cast() the tensor first");
    if (!(a.lo <= a.hi) || !std::isfinite(a.lo) || !std::isfinite(a.hi))
      throw Error(fmt::format("the range {} to {} is none", a.lo, a.hi));
    Meta m = x;
    m.shape = {a.bins};
    return m;
  }
  static size_t workspace(const Attrs& a, const Call& c) {
    kernels::Room room;
    dense_as(c.in[0], DType::f64, room);
    room.take<double>(a.bins);
    return room.used();
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    kernels::Room room(c.workspace);
    const Tensor x = dense_as(c.in[0], DType::f64, room);
    const bool point = a.lo == a.hi;
    const double lo = point ? a.lo - 1 : a.lo, hi = point ? a.hi + 1 : a.hi;
    double* counts = room.take<double>(a.bins);
    std::fill_n(counts, a.bins, 0.0);
    for (int64_t i = 0; i < x.numel(); ++i) {
      const double v = x.data<double>()[i];
      if (!(v >= lo && v <= hi)) continue;
      counts[std::min(a.bins - 1, static_cast<int64_t>((v - lo) * static_cast<double>(a.bins) / (hi - lo)))] += 1;
    }
    write_output(c.out[0], from_blob(counts, static_cast<size_t>(a.bins) * sizeof(double), Layout::contiguous({a.bins}),
                                     DType::f64, [](Storage* s) { delete s; }));
  }
  static void samples(Samples& s) { s.add("ten bins", Attrs{10, -0.8, 0.9}, {s.values({5, 9})}); }
};

using Sort = Chooser<SortRule>;
using TopK = Chooser<TopKRule>;
using Kth = Chooser<KthRule>;
using Median = Chooser<MedianRule>;
using Mode = Chooser<ModeRule>;
using MaxDim = Chooser<ExtremeRule<true>>;
using MinDim = Chooser<ExtremeRule<false>>;
const Register<Sort> sort_op;
const Register<TopK> topk_op;
const Register<Kth> kth_op;
const Register<Median> median_op;
const Register<Mode> mode_op;
const Register<MaxDim> max_op;
const Register<MinDim> min_op;
const Register<SearchSorted> searchsorted_op;
const Register<Histc> histc_op;

template <class Op>
Ordered ordered_by(const Tensor& x, int axis, int64_t k, bool flag, bool keep) {
  const bool scalar = x.ndim() == 0;
  Tensor in = scalar ? reshape(x, {1}) : x, out[2];
  apply_many<Op>({wrap_axis(axis, in.ndim()), k, flag, keep}, &in, 1, out);
  if (scalar)
    for (Tensor& t : out) t = t.numel() == 1 ? reshape(t, {}) : t;
  return {out[0], out[1]};
}

}  // namespace

Ordered sort(const Tensor& x, int axis, bool descending) { return ordered_by<Sort>(x, axis, 0, descending, false); }
Tensor argsort(const Tensor& x, int axis, bool descending) { return sort(x, axis, descending).indices; }
Ordered topk(const Tensor& x, int64_t k, int axis, bool largest) {
  return ordered_by<TopK>(x, axis, k, largest, false);
}
Ordered kthvalue(const Tensor& x, int64_t k, int axis, bool keep) { return ordered_by<Kth>(x, axis, k, false, keep); }
Ordered median(const Tensor& x, int axis, bool keep) { return ordered_by<Median>(x, axis, 0, false, keep); }
Tensor median(const Tensor& x) { return median(reshape(x, {x.numel()}), 0).values; }
Ordered mode_of(const Tensor& x, int axis, bool keep) { return ordered_by<Mode>(x, axis, 0, false, keep); }
Ordered max_dim(const Tensor& x, int axis, bool keep) { return ordered_by<MaxDim>(x, axis, 0, false, keep); }
Ordered min_dim(const Tensor& x, int axis, bool keep) { return ordered_by<MinDim>(x, axis, 0, false, keep); }
Tensor argmin(const Tensor& x, int axis, bool keep) { return min_dim(x, axis, keep).indices; }

Tensor searchsorted(const Tensor& boundaries, const Tensor& values, bool right) {
  return apply<SearchSorted>({right}, boundaries, values);
}
Tensor bucketize(const Tensor& values, const Tensor& boundaries, bool right) {
  if (boundaries.ndim() != 1)
    throw Error(fmt::format("bucketize: boundaries of size {}; they have one axis", to_string(boundaries.size())));
  return searchsorted(boundaries, values, right);
}

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t min_length) {
  if (!is_integral(x.dtype()) || x.ndim() != 1)
    throw Error(
        fmt::format("bincount: {} of size {}; integers of one axis are counted", name(x.dtype()), to_string(x.size())));
  if (weights && !(weights.size() == x.size()))
    throw Error(fmt::format("bincount: weights of size {} for {} numbers", to_string(weights.size()), x.numel()));
  if (min_length < 0) throw Error(fmt::format("bincount: a length of {}", min_length));
  const Tensor at = contiguous(cast(x, DType::i64)), seen = to_host(at);
  int64_t length = min_length;
  for (int64_t i = 0; i < seen.numel(); ++i) {
    const int64_t v = seen.data<int64_t>()[i];
    if (v < 0) throw Error(fmt::format("bincount: element {} is {}; only numbers from 0 on are counted", i, v));
    length = std::max(length, v + 1);
  }
  Tensor values = weights ? (is_floating(weights.dtype()) ? weights : cast(weights, DType::f64)) : ones_like(at);
  return scatter_add(zeros({length}, values.dtype(), values.device()), 0, at, values);
}

Tensor histc(const Tensor& x, int64_t bins, double lo, double hi) {
  if (lo == hi && x.numel() > 0) {
    Tensor all = reshape(x, {x.numel()});
    lo = item(min_dim(all, 0).values);
    hi = item(max_dim(all, 0).values);
  }
  return apply<Histc>({bins, lo, hi}, x);
}

}  // namespace tenon
