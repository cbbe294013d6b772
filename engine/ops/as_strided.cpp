#include "engine/ops/as_strided.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/error.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

/// Memory as far as both layouts reach, in which the base and the view can be laid out as they were.
struct Laid {
  Tensor memory;  ///< absent where the room only counts
  Layout base, view;

  Laid(const StridedPlace& p, DType dtype, kernels::Room& room) : base(p.base), view(p.view) {
    int64_t lo, hi, vlo, vhi;
    base.extent(lo, hi);
    view.extent(vlo, vhi);
    if (hi < lo)
      lo = vlo, hi = vhi;
    else if (vhi >= vlo)
      lo = std::min(lo, vlo), hi = std::max(hi, vhi);
    const int64_t count = std::max<int64_t>(0, hi - lo + 1);
    const size_t bytes = static_cast<size_t>(count) * itemsize(dtype);
    if (char* at = room.take<char>(static_cast<int64_t>(bytes)))
      memory = from_blob(at, bytes, Layout::contiguous({count}), dtype, [](Storage* s) { delete s; });
    else if (count == 0)
      memory = empty({0}, dtype);
    base.offset -= lo;
    view.offset -= lo;
  }
  static size_t bytes(const StridedPlace& p, DType dtype) {
    kernels::Room room;
    Laid(p, dtype, room);
    return room.used();
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

/// What elements that lie over each other are added in: halves in f32, small integers in i64.
DType sums_in(DType t) {
  if (t == DType::f64 || t == DType::f32 || t == DType::i64) return t;
  return is_floating(t) ? DType::f32 : DType::i64;
}
/// Adds x (contiguous, of the memory's type) at the places of l, one element after the other.
void add_overlapping(const Tensor& memory, const Layout& l, const Tensor& x) {
  if (memory.dtype() == DType::f64) return add_at(l, memory.data<double>(), x.data<double>());
  if (memory.dtype() == DType::f32) return add_at(l, memory.data<float>(), x.data<float>());
  add_at(l, memory.data<int64_t>(), x.data<int64_t>());
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
  static size_t workspace(const Attrs& a, const Call& c) { return Laid::bytes(a, c.in[0].dtype()); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const Laid laid(c.as<Attrs>(), c.in[0].dtype(), room);
    fill(laid.memory, 0);
    copy_(laid.as_base(), c.in[0]);
    copy_(c.out[0], laid.as_view());
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
  /// The usual case: the base lies as the result does, and the view shows each element once.
  static bool straight(const Attrs& a, const Call& c) {
    return a.base.offset == 0 && a.base.is_contiguous() && c.out[0].is_contiguous() && !a.view.may_overlap();
  }
  static DType type_of(const Attrs& a, const Call& c) {
    return a.view.may_overlap() ? sums_in(c.in[0].dtype()) : c.in[0].dtype();
  }
  static size_t workspace(const Attrs& a, const Call& c) {
    if (straight(a, c)) return 0;
    const DType t = type_of(a, c);
    kernels::Room room;
    Laid(a, t, room);
    if (a.view.may_overlap()) ops::dense_as(c.in[0], t, room);
    return room.used();
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    if (straight(a, c)) {
      fill(c.out[0], 0);
      Layout at = a.view;
      at.offset += c.out[0].offset();
      copy_(view_of(c.out[0], at), c.in[0]);
      return;
    }
    const DType t = type_of(a, c);
    kernels::Room room(c.workspace);
    const Laid laid(a, t, room);
    fill(laid.memory, 0);
    if (a.view.may_overlap())
      add_overlapping(laid.memory, laid.view, ops::dense_as(c.in[0], t, room));
    else
      copy_(laid.as_view(), c.in[0]);
    copy_(c.out[0], laid.as_base());
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
  static size_t workspace(const Attrs& a, const Call& c) { return Laid::bytes(a, c.in[0].dtype()); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const Laid laid(c.as<Attrs>(), c.in[0].dtype(), room);
    copy_(laid.as_base(), c.in[0]);
    copy_(laid.as_view(), c.in[1]);
    copy_(c.out[0], laid.as_base());
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
