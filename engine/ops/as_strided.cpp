#include "engine/ops/as_strided.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/error.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

/// Memory as far as both layouts reach, in which the base and the view can be laid out as they were.
struct Room {
  Tensor memory;
  Layout base, view;

  Room(const StridedPlace& p, DType dtype) : base(p.base), view(p.view) {
    int64_t lo, hi, vlo, vhi;
    base.extent(lo, hi);
    view.extent(vlo, vhi);
    if (hi < lo)
      lo = vlo, hi = vhi;
    else if (vhi >= vlo)
      lo = std::min(lo, vlo), hi = std::max(hi, vhi);
    memory = empty({std::max<int64_t>(0, hi - lo + 1)}, dtype);
    base.offset -= lo;
    view.offset -= lo;
  }
  Tensor as_base() const { return view_of(memory, base); }
  Tensor as_view() const { return view_of(memory, view); }
};

/// Calls f(position, index) for every element in the order of its index.
template <class F>
void each_position(const Layout& l, const F& f) {
  int64_t n = l.numel();
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = l.offset, rest = i;
    for (int d = l.ndim() - 1; d >= 0; --d) {
      at += rest % l.size[d] * l.stride[d];
      rest /= l.size[d];
    }
    f(at, i);
  }
}

template <class T>
void add_at(const Layout& l, T* to, const T* from) {
  each_position(l, [&](int64_t at, int64_t i) { to[at] += from[i]; });
}

/// Adds x (contiguous) at the places of l, one element after the other. Sums of halves are taken in f32.
void add_overlapping(const Tensor& memory, const Layout& l, const Tensor& x) {
  switch (memory.dtype()) {
    case DType::f64:
      return add_at(l, memory.data<double>(), x.data<double>());
    case DType::f32:
      return add_at(l, memory.data<float>(), x.data<float>());
    case DType::i64:
      return add_at(l, memory.data<int64_t>(), x.data<int64_t>());
    default:
      break;
  }
  DType via = is_floating(memory.dtype()) ? DType::f32 : DType::i64;
  Tensor sums = empty(memory.size(), via), values = empty(x.size(), via);
  copy_(sums, memory);
  copy_(values, x);
  add_overlapping(sums, l, values);
  copy_(memory, sums);
}

Tensor dense_copy(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor t = empty(x.size(), x.dtype());
  copy_(t, x);
  return t;
}

Meta of_size(const Meta& like, const Shape& size) {
  Meta m = like;
  m.shape = size;
  return m;
}
void expect_size(const Meta& x, const Shape& size, const char* what) {
  if (!(x.shape == size))
    throw Error(fmt::format("{} has size {}, its place size {}", what, to_string(x.shape), to_string(size)));
}

StridedPlace sample_place() {
  return {Layout::contiguous({3, 4}), Layout::contiguous({3, 4}).slice(1, 0, 4, 2).transpose(0, 1)};
}
StridedPlace overlapping_place() { return {Layout::contiguous({2, 5}), Layout::contiguous({2, 5}).unfold(1, 3, 1)}; }

struct AsStrided {
  static constexpr OpInfo info{.name = "as_strided", .kind = OpKind::view, .reads_strides = true};
  using Attrs = StridedPlace;
  static Layout view(const Attrs& a, const Layout&) { return a.view; }
  static void backward(Grad& d) { d.in(0) = strided_scatter(d.out(), d.as<Attrs>()); }
  static void samples(Samples& s) {
    s.add("every other column", sample_place(), {s.values({3, 4})});
    s.add("overlapping", overlapping_place(), {s.values({2, 5})});
  }
};

struct StridedGather {
  static constexpr OpInfo info{"strided_gather", "", OpKind::copy};
  using Attrs = StridedPlace;
  static Meta infer(const Attrs& a, const Meta& x) {
    expect_size(x, a.base.size, "the tensor");
    return of_size(x, a.view.size);
  }
  static void cpu(const Call& c) {
    Room room(c.as<Attrs>(), c.in[0].dtype());
    fill(room.memory, 0);
    copy_(room.as_base(), c.in[0]);
    copy_(c.out[0], room.as_view());
  }
  static void backward(Grad& d) { d.in(0) = strided_scatter(d.out(), d.as<Attrs>()); }
  static void samples(Samples& s) {
    s.add("every other column", sample_place(), {s.values({3, 4})});
    s.add("overlapping", overlapping_place(), {s.values({2, 5})});
  }
};

struct StridedScatter {
  static constexpr OpInfo info{"strided_scatter", "", OpKind::copy};
  using Attrs = StridedPlace;
  static Meta infer(const Attrs& a, const Meta& x) {
    expect_size(x, a.view.size, "the gradient");
    if (a.base.may_overlap())
      throw Error("the base's own elements share memory: its gradient has no single place", "clone() the base first");
    return of_size(x, a.base.size);
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    // The usual case: the base lies as the result does, and the view shows each element once.
    if (a.base.offset == 0 && a.base.is_contiguous() && c.out[0].is_contiguous() && !a.view.may_overlap()) {
      fill(c.out[0], 0);
      Layout at = a.view;
      at.offset += c.out[0].offset();
      copy_(view_of(c.out[0], at), c.in[0]);
      return;
    }
    Room room(a, c.in[0].dtype());
    fill(room.memory, 0);
    if (a.view.may_overlap())
      add_overlapping(room.memory, room.view, dense_copy(c.in[0]));
    else
      copy_(room.as_view(), c.in[0]);
    copy_(c.out[0], room.as_base());
  }
  static void backward(Grad& d) { d.in(0) = strided_gather(d.out(), d.as<Attrs>()); }
  static void samples(Samples& s) {
    s.add("every other column", sample_place(), {s.values({2, 3})});
    s.add("overlapping", overlapping_place(), {s.values({2, 3, 3})});
  }
};

struct Replace {
  static constexpr OpInfo info{"strided_replace", "", OpKind::copy};
  using Attrs = StridedPlace;
  static Meta infer(const Attrs& a, const Meta& x, const Meta& values) {
    expect_size(x, a.base.size, "the tensor");
    expect_size(values, a.view.size, "what replaces its elements");
    if (values.dtype != x.dtype)
      throw Error(fmt::format("{} values would replace {}", name(values.dtype), name(x.dtype)), "cast() them");
    if (a.view.may_overlap()) throw Error("the places to replace share elements");
    return x;
  }
  static void cpu(const Call& c) {
    Room room(c.as<Attrs>(), c.in[0].dtype());
    copy_(room.as_base(), c.in[0]);
    copy_(room.as_view(), c.in[1]);
    copy_(c.out[0], room.as_base());
  }
  static void backward(Grad& d) {
    const auto& a = d.as<Attrs>();
    if (d.needs(0)) d.in(0) = strided_replace(d.out(), zeros(a.view.size, d.out().dtype(), d.out().device()), a);
    if (d.needs(1)) d.in(1) = strided_gather(d.out(), a);
  }
  static void samples(Samples& s) { s.add("every other column", sample_place(), {s.values({3, 4}), s.values({2, 3})}); }
};

const Register<AsStrided> as_strided_op;
const Register<StridedGather> gather_op;
const Register<StridedScatter> scatter_op;
const Register<Replace> replace_op;

}  // namespace

Tensor as_strided(const Tensor& x, const Shape& size, const Dims& stride, int64_t offset) {
  if (size.n != stride.n)
    throw Error(fmt::format("as_strided: size {} and stride {} differ in length", to_string(size), to_string(stride)));
  for (int i = 0; i < size.n; ++i)
    if (size[i] < 0) throw Error(fmt::format("as_strided: size {} has a negative entry", to_string(size)));
  return apply<AsStrided>({x.layout(), Layout{size, stride, offset}}, x);
}
Tensor strided_gather(const Tensor& x, const StridedPlace& place) { return apply<StridedGather>(place, x); }
Tensor strided_scatter(const Tensor& x, const StridedPlace& place) { return apply<StridedScatter>(place, x); }
Tensor strided_replace(const Tensor& x, const Tensor& values, const StridedPlace& place) {
  return apply<Replace>(place, x, values);
}

}  // namespace tenon
