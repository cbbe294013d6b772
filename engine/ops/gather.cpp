#include "engine/ops/gather.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/op/strided_loop.h"
#include "engine/ops/by_dtype.h"
#include "engine/ops/create.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/index.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

using namespace ops;

struct AxisAttrs {
  int64_t axis;
  template <class F>
  void fields(F&& f) const {
    f("axis", axis);
  }
};

void check(const AxisAttrs& a, const Shape& x, const Meta& index) {
  if (index.dtype != DType::i64 && index.dtype != DType::i32)
    throw Error(fmt::format("an index is i64 or i32, not {}", name(index.dtype)));
  if (index.shape.n != x.n)
    throw Error(fmt::format("an index of size {} has other axes than {}", to_string(index.shape), to_string(x)));
  if (a.axis < 0 || a.axis >= x.n) throw Error(fmt::format("axis {} is out of range for {} axes", a.axis, x.n));
  for (int i = 0; i < x.n; ++i)
    if (i != a.axis && index.shape[i] > x[i])
      throw Error(
          fmt::format("an index of size {} is longer than {} in axis {}", to_string(index.shape), to_string(x), i));
}

/// Index elements as [outer, n, inner]; where their columns begin in a dense tensor that may be larger.
struct Walk {
  int64_t outer = 1, n = 1, inner = 1;
  Tensor index;  ///< dense i64
  struct Side {
    int64_t step = 1, size = 1;               ///< along the axis
    std::vector<int64_t> outer_at, inner_at;  ///< offsets
  };
  Walk(const Tensor& i, int axis, kernels::Room& room) : index(dense_as(i, DType::i64, room)), axis_(axis) {
    for (int k = 0; k < axis; ++k) outer *= i.size(k);
    n = i.size(axis);
    for (int k = axis + 1; k < i.ndim(); ++k) inner *= i.size(k);
  }
  Side side(const Shape& x) const {
    Layout l = Layout::contiguous(x);
    Side s{l.stride[axis_], x[axis_], {}, {}};
    s.outer_at = offsets(l, 0, axis_, outer);
    s.inner_at = offsets(l, axis_ + 1, x.n, inner);
    return s;
  }
  int64_t column(const Side& s, int64_t o, int64_t i) const {
    return s.outer_at[static_cast<size_t>(o)] + s.inner_at[static_cast<size_t>(i)];
  }
  int64_t at(int64_t position, int64_t size) const {
    int64_t v = index.data<int64_t>()[position];
    if (v < -size || v >= size)
      throw Error(fmt::format("index {} is out of range for axis {} of size {}", v, axis_, size));
    return v < 0 ? v + size : v;
  }

 private:
  std::vector<int64_t> offsets(const Layout& l, int from, int to, int64_t count) const {
    std::vector<int64_t> out(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, sum = 0;
      for (int k = to - 1; k >= from; --k) {
        sum += rest % index.size(k) * l.stride[k];
        rest /= index.size(k);
      }
      out[static_cast<size_t>(i)] = sum;
    }
    return out;
  }
  int axis_;
};

struct Gather {
  static constexpr OpInfo info{"gather", "GatherElements", OpKind::index};
  using Attrs = AxisAttrs;
  static Meta infer(const Attrs& a, const Meta& x, const Meta& index) {
    check(a, x.shape, index);
    Meta m = x;
    m.shape = index.shape;
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) {
    kernels::Room room;
    dense(c.in[0], room);
    dense_as(c.in[1], DType::i64, room);
    return room.used();
  }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const Tensor x = dense(c.in[0], room);
    const Walk w(c.in[1], static_cast<int>(c.as<Attrs>().axis), room);
    const Walk::Side from = w.side(x.size());
    by_width(x.dtype(), [&](auto unit) {
      using T = decltype(unit);
      const T* v = static_cast<const T*>(x.raw());
      T* y = static_cast<T*>(c.out[0].raw());
      parallel_for(w.outer * w.n, std::max<int64_t>(1, kLoopGrain / std::max<int64_t>(w.inner, 1)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t r = begin; r < end; ++r)
                       for (int64_t i = 0; i < w.inner; ++i)
                         y[r * w.inner + i] =
                             v[w.column(from, r / w.n, i) + w.at(r * w.inner + i, from.size) * from.step];
                   });
    });
  }
  static constexpr Saves saves{.inputs = 0b10};
  static void backward(Grad& d) {
    d.in(0) = scatter_add(zeros(d.meta(0).shape, d.out().dtype(), d.out().device()),
                          static_cast<int>(d.as<Attrs>().axis), d.x(1), d.out());
  }
  static void onnx(const Attrs& a, OnnxOp& o) { o.set("axis", a.axis); }
  static void samples(Samples& s) {
    s.add("rows", Attrs{1}, {s.values({3, 5}), s.indices({3, 4}, 5)});
    s.add("fewer rows than x", Attrs{0}, {s.values({4, 3, 2}), s.indices({6, 2, 1}, 4)});
    s.add("one axis", Attrs{0}, {s.values({5}), s.indices({3}, 5)});
    s.add("nothing", Attrs{0}, {s.values({3, 2}), s.indices({0, 2}, 3)});
  }
};

/// f(target, source) for every index element; a column (all elements that differ in the axis only) has one writer, in
/// index order.
template <class T, class F>
void write(const Walk& w, const Walk::Side& to, T* y, const T* src, const F& f) {
  parallel_for(w.outer * w.inner, std::max<int64_t>(1, kLoopGrain / std::max<int64_t>(w.n, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t col = begin; col < end; ++col) {
                   const int64_t o = col / w.inner, i = col % w.inner, base = w.column(to, o, i);
                   for (int64_t k = 0; k < w.n; ++k) {
                     const int64_t from = (o * w.n + k) * w.inner + i;
                     f(y[base + w.at(from, to.size) * to.step], src[from]);
                   }
                 }
               });
}

Meta infer_scatter(const AxisAttrs& a, const Meta& x, const Meta& index, const Meta& src) {
  check(a, x.shape, index);
  if (!(src.shape == index.shape))
    throw Error(fmt::format("a source of size {} and an index of size {} differ", to_string(src.shape),
                            to_string(index.shape)));
  if (src.dtype != x.dtype)
    throw Error(fmt::format("a source of {} cannot be written into a tensor of {}", name(src.dtype), name(x.dtype)),
                "cast() it");
  return x;
}

/// What a scatter of elements of type t works on: the places, a dense copy of x to write into (the output itself where
/// it is one), and the source.
struct Scattered {
  Walk at;
  Tensor y, src;
  Scattered(const Call& c, int64_t axis, DType t, kernels::Room& room)
      : at(c.in[1], static_cast<int>(axis), room), y(target(c, 0, t, room)), src(dense_as(c.in[2], t, room)) {
    if (y.raw() != c.in[0].raw()) write_output(y, c.in[0]);
  }
  static size_t bytes(const Call& c, DType t) {
    kernels::Room room;
    dense_as(c.in[1], DType::i64, room);
    target(c, 0, t, room);
    dense_as(c.in[2], t, room);
    return room.used();
  }
};

struct Scatter {
  static constexpr OpInfo info{"scatter", "ScatterElements", OpKind::index};
  using Attrs = AxisAttrs;
  static Meta infer(const Attrs& a, const Meta& x, const Meta& index, const Meta& src) {
    return infer_scatter(a, x, index, src);
  }
  static size_t workspace(const Attrs&, const Call& c) { return Scattered::bytes(c, c.out[0].dtype()); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const Scattered s(c, c.as<Attrs>().axis, c.out[0].dtype(), room);
    const Walk& w = s.at;
    const Tensor &y = s.y, &src = s.src;
    by_width(y.dtype(), [&](auto unit) {
      using T = decltype(unit);
      write<T>(w, w.side(y.size()), static_cast<T*>(y.raw()), static_cast<const T*>(src.raw()),
               [](T& to, T from) { to = from; });
    });
    finished(c, 0, y);
  }
  static constexpr Saves saves{.inputs = 0b010};
  static void backward(Grad& d) {
    int axis = static_cast<int>(d.as<Attrs>().axis);
    if (d.needs(0)) d.in(0) = scatter(d.out(), axis, d.x(1), 0.0);
    if (d.needs(2)) d.in(2) = gather(d.out(), axis, d.x(1));
  }
  static void onnx(const Attrs& a, OnnxOp& o) { o.set("axis", a.axis); }
  static void samples(Samples& s) {
    Tensor once = empty({2, 2}, DType::i64);
    for (int i = 0; i < 4; ++i) once.data<int64_t>()[i] = i % 2 ? -1 : i;
    s.add("rows", Attrs{1}, {s.values({3, 5}), once, s.values({2, 2})});
    s.add("columns", Attrs{0}, {s.values({4, 2}), transpose(once, 0, 1), s.values({2, 2})});
  }
};

struct ScatterAdd {
  static constexpr OpInfo info{"scatter_add", "ScatterElements", OpKind::index};
  using Attrs = AxisAttrs;
  static Meta infer(const Attrs& a, const Meta& x, const Meta& index, const Meta& src) {
    return infer_scatter(a, x, index, src);
  }
  static size_t workspace(const Attrs&, const Call& c) { return Scattered::bytes(c, widened(c.out[0].dtype())); }
  static void cpu(const Call& c) {
    const DType t = widened(c.out[0].dtype());
    kernels::Room room(c.workspace);
    const Scattered s(c, c.as<Attrs>().axis, t, room);
    const Walk& w = s.at;
    const Tensor &y = s.y, &src = s.src;
    by_arithmetic(t, [&](auto unit) {
      using T = decltype(unit);
      write<T>(w, w.side(y.size()), y.data<T>(), src.data<T>(), [](T& to, T from) { to = static_cast<T>(to + from); });
    });
    finished(c, 0, y);
  }
  static constexpr Saves saves{.inputs = 0b010};
  static void backward(Grad& d) {
    if (d.needs(0)) d.in(0) = d.out();
    if (d.needs(2)) d.in(2) = gather(d.out(), static_cast<int>(d.as<Attrs>().axis), d.x(1));
  }
  static void onnx(const Attrs& a, OnnxOp& o) {
    o.set("axis", a.axis);
    o.set("reduction", std::string("add"));
  }
  static void samples(Samples& s) {
    s.add("rows", Attrs{1}, {s.values({3, 5}), s.indices({3, 4}, 5), s.values({3, 4})});
  }
};

struct ScatterReduce {
  static constexpr OpInfo info{"scatter_reduce", "", OpKind::index};
  struct Attrs {
    int64_t axis, how;
    bool include_self;
    template <class F>
    void fields(F&& f) const {
      f("axis", axis);
      f("reduce", how);
      f("include_self", include_self);
    }
  };
  static Meta infer(const Attrs& a, const Meta& x, const Meta& index, const Meta& src) {
    return infer_scatter({a.axis}, x, index, src);
  }
  static size_t workspace(const Attrs&, const Call& c) { return Scattered::bytes(c, widened(c.out[0].dtype())); }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    const DType t = widened(c.out[0].dtype());
    kernels::Room room(c.workspace);
    const Scattered s(c, a.axis, t, room);
    const Walk& w = s.at;
    const Tensor &y = s.y, &src = s.src;
    by_arithmetic(t, [&](auto unit) {
      using T = decltype(unit);
      const Walk::Side to = w.side(y.size());
      auto run = [&](const auto& join) {
        if (!a.include_self) {
          // What is written to starts from its first source element, which is then joined only from the second on.
          std::vector<uint8_t> seen(static_cast<size_t>(y.numel()), 0);
          T* base = y.data<T>();
          write<T>(w, to, base, src.data<T>(), [&](T& target, T v) {
            uint8_t& s = seen[static_cast<size_t>(&target - base)];
            target = s ? join(target, v) : v;
            s = 1;
          });
        } else {
          write<T>(w, to, y.data<T>(), src.data<T>(), [&](T& target, T v) { target = join(target, v); });
        }
      };
      switch (static_cast<Reduce>(a.how)) {
        case Reduce::sum:
          run([](T p, T q) { return static_cast<T>(p + q); });
          break;
        case Reduce::prod:
          run([](T p, T q) { return static_cast<T>(p * q); });
          break;
        case Reduce::amax:
          run([](T p, T q) { return q > p || q != q ? q : p; });
          break;
        case Reduce::amin:
          run([](T p, T q) { return q < p || q != q ? q : p; });
          break;
        case Reduce::mean:
          throw Error("a mean is a sum divided by its count");
      }
    });
    finished(c, 0, y);
  }
  static constexpr Saves saves{.inputs = 0b111, .outputs = 0b1};
  // Those equal to the extreme share its gradient evenly; a product's gradient is the product of the others, by
  // division (zero has none).
  static void backward(Grad& d) {
    const auto& a = d.as<Attrs>();
    const int axis = static_cast<int>(a.axis);
    const auto how = static_cast<Reduce>(a.how);
    const Tensor g = d.out(), index = d.x(1);
    auto untouched = [&](const Tensor& t) { return a.include_self ? t : scatter(t, axis, index, 0.0); };
    Tensor of_x, of_src;
    if (how == Reduce::sum) {
      of_x = untouched(g);
      of_src = gather(g, axis, index);
    } else if (how == Reduce::prod) {
      // The product of the others is the product with this factor as 1; two zeros that meet leave no gradient to
      // either.
      const Tensor x = d.x(0), src = d.x(2), none = eq(x, 0), zero = eq(src, 0);
      const Tensor x_safe = masked_fill(x, none, 1), src_safe = masked_fill(src, zero, 1);
      of_x = a.include_self ? div(mul(g, scatter_reduce(x_safe, axis, index, src, how)), x_safe) : untouched(g);
      const Tensor zeros_met = gather(
          scatter_add(zeros(x.size(), DType::i64, x.device()), axis, index, cast(zero, DType::i64)), axis, index);
      const Tensor lone = where(eq(zeros_met, 1), zero, zeros_like(zero));
      const Tensor others = scatter_reduce(x, axis, index, masked_fill(src, lone, 1), how, a.include_self);
      of_src = where(lone, gather(mul(g, others), axis, index), div(gather(mul(g, d.y()), axis, index), src_safe));
    } else {
      const Tensor x = d.x(0), src = d.x(2), y = d.y();
      const Tensor own =
          a.include_self ? cast(eq(x, y), g.dtype()) : scatter(cast(eq(x, x), g.dtype()), axis, index, 0.0);
      const Tensor hits = cast(eq(src, gather(y, axis, index)), g.dtype());
      const Tensor share = div(g, maximum(scatter_add(own, axis, index, hits), 1.0));
      of_x = mul(own, share);
      of_src = mul(hits, gather(share, axis, index));
    }
    if (d.needs(0)) d.in(0) = of_x;
    if (d.needs(2)) d.in(2) = of_src;
  }
  static void samples(Samples& s) {
    for (Reduce how : {Reduce::sum, Reduce::prod, Reduce::amax, Reduce::amin})
      for (bool self : {true, false})
        s.add(std::to_string(static_cast<int>(how)) + (self ? " with self" : " without self"),
              Attrs{1, static_cast<int64_t>(how), self},
              {s.values({3, 5}, {0.5, 2}), s.indices({3, 4}, 5), s.values({3, 4}, {0.5, 2})});
  }
};

const Register<Gather> gather_op;
const Register<Scatter> scatter_op;
const Register<ScatterAdd> scatter_add_op;
const Register<ScatterReduce> scatter_reduce_op;

/// A number is a tensor of one axis here, as in PyTorch.
Tensor one_axis(const Tensor& t) { return t.ndim() ? t : reshape(t, {1}); }

/// Of a source that is larger than the index only that much is read, from its beginning.
Tensor cut(const Tensor& src, const Tensor& index) {
  Tensor y = one_axis(src);
  const Shape size = one_axis(index).size();
  for (int i = 0; y.ndim() == size.n && i < size.n; ++i)
    if (y.size(i) > size[i]) y = narrow(y, i, 0, size[i]);
  return y;
}

template <class F>
Tensor on_axes(const Tensor& x, int axis, const F& f) {
  if (x.ndim()) return f(x, wrap_axis(axis, x.ndim()));
  Tensor y = f(one_axis(x), 0);
  return y.numel() == 1 ? reshape(y, {}) : y;
}

}  // namespace

Tensor gather(const Tensor& x, int axis, const Tensor& index) {
  return on_axes(x, axis, [&](const Tensor& t, int a) { return apply<Gather>({a}, t, one_axis(index)); });
}

Tensor take_along_dim(const Tensor& x, const Tensor& index, int axis) {
  int a = wrap_axis(axis, x.ndim());
  if (index.ndim() != x.ndim())
    throw Error(fmt::format("take_along_dim: an index of size {} has other axes than {}", to_string(index.size()),
                            to_string(x.size())));
  Shape sx = x.size(), si = index.size();
  sx[a] = si[a] = 1;
  Shape common = broadcast_shape(sx, si);
  sx = si = common;
  sx[a] = x.size(a);
  si[a] = index.size(a);
  return apply<Gather>({a}, expand(x, sx), expand(index, si));
}

Tensor scatter(const Tensor& x, int axis, const Tensor& index, const Tensor& src) {
  return on_axes(x, axis,
                 [&](const Tensor& t, int a) { return apply<Scatter>({a}, t, one_axis(index), cut(src, index)); });
}
Tensor scatter(const Tensor& x, int axis, const Tensor& index, double value) {
  return scatter(x, axis, index, expand(scalar(value, x.dtype(), x.device()), one_axis(index).size()));
}
Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, const Tensor& src) {
  return on_axes(x, axis,
                 [&](const Tensor& t, int a) { return apply<ScatterAdd>({a}, t, one_axis(index), cut(src, index)); });
}
Tensor& scatter_(Tensor& x, int axis, const Tensor& index, const Tensor& src) {
  return apply_in_place<Scatter>({wrap_axis(axis, x.ndim())}, x, index, cut(src, index));
}
Tensor& scatter_(Tensor& x, int axis, const Tensor& index, double value) {
  return scatter_(x, axis, index, expand(scalar(value, x.dtype(), x.device()), index.size()));
}
Tensor& scatter_add_(Tensor& x, int axis, const Tensor& index, const Tensor& src) {
  return apply_in_place<ScatterAdd>({wrap_axis(axis, x.ndim())}, x, index, cut(src, index));
}

Tensor scatter_reduce(const Tensor& x, int axis, const Tensor& index, const Tensor& src, Reduce how,
                      bool include_self) {
  return on_axes(x, axis, [&](const Tensor& t, int a) {
    const Tensor i = one_axis(index), s = cut(src, index);
    if (how != Reduce::mean) return apply<ScatterReduce>({a, static_cast<int64_t>(how), include_self}, t, i, s);
    // Counted in f64: exact, and integers divide by truncation towards minus infinity as in PyTorch.
    Tensor sum = apply<ScatterReduce>({a, static_cast<int64_t>(Reduce::sum), include_self}, t, i, s);
    Tensor count = scatter_add(full(t.size(), include_self ? 1 : 0, DType::f64, t.device()), a, i,
                               expand(scalar(1, DType::f64, t.device()), i.size()));
    count = maximum(count, 1.0);
    if (is_floating(t.dtype())) return div(sum, cast(count, t.dtype()));
    Tensor whole = cast(count, sum.dtype()), quotient = cast(div(cast(sum, DType::f64), count), sum.dtype());
    return where(gt(mul(quotient, whole), sum), sub(quotient, 1.0), quotient);
  });
}

}  // namespace tenon
