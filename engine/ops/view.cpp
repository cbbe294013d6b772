#include "engine/ops/view.h"

#include <fmt/format.h>

#include "core/backend.h"
#include "core/error.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/op/strided_loop.h"
#include "engine/ops/as_strided.h"
#include "engine/ops/create.h"
#include "engine/ops/dense.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/reduce.h"

namespace tenon {
namespace {

template <class T>
void move_loop(char* const* d, const int64_t* s, int64_t n) {
  constexpr auto w = static_cast<int64_t>(sizeof(T));
  if (s[0] == w && s[1] == w) {
    __builtin_memcpy(d[0], d[1], static_cast<size_t>(n * w));
    return;
  }
  for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(d[0] + i * s[0]) = *reinterpret_cast<const T*>(d[1] + i * s[1]);
}

InnerLoop mover(DType t) {
  switch (itemsize(t)) {
    case 1:
      return move_loop<uint8_t>;
    case 2:
      return move_loop<uint16_t>;
    case 4:
      return move_loop<uint32_t>;
    default:
      return move_loop<uint64_t>;
  }
}

// The same dtype: bits are moved, so NaN payloads survive. Another: through a type that holds the source exactly where
// it can.
void copy_values(const Tensor& to, const Tensor& from) {
  DType via = to.dtype();
  if (to.dtype() != from.dtype()) {
    if (is_floating(from.dtype()) && !is_floating(to.dtype())) via = from.dtype();
    if (via == DType::f16 || via == DType::bf16) via = DType::f32;
    if (via == DType::boolean) via = DType::i64;
  }
  strided_loop(to, &from, 1, via, via, mover(via));
}

struct Permute {
  static constexpr OpInfo info{"permute", "Transpose", OpKind::view};
  struct Attrs {
    Dims axes;
    template <class F>
    void fields(F&& f) const {
      f("axes", axes);
    }
  };
  static Layout view(const Attrs& a, const Layout& l) { return l.permute(a.axes); }
  static void backward(Grad& d) {
    const Dims& axes = d.as<Attrs>().axes;
    Dims inverse = axes;
    for (int i = 0; i < axes.n; ++i) inverse[wrap_axis(axes[i], axes.n)] = i;
    d.in(0) = permute(d.out(), inverse);
  }
  static void onnx(const Attrs& a, OnnxOp& o) { o.set("perm", a.axes); }
  static void samples(Samples& s) { s.add("3 axes", Attrs{{2, 0, 1}}, {s.values({2, 3, 4})}); }
};

struct Expand {
  static constexpr OpInfo info{"expand", "Expand", OpKind::view};
  struct Attrs {
    Dims to;
    template <class F>
    void fields(F&& f) const {
      f("to", to);
    }
  };
  static Layout view(const Attrs& a, const Layout& l) { return l.expand(a.to); }
  static void backward(Grad& d) { d.in(0) = d.out(); }  // the engine sums what was broadcast
  static void onnx(const Attrs& a, OnnxOp& o) { o.add_input(a.to); }
  static void samples(Samples& s) { s.add("rows and columns", Attrs{{2, 3, 4}}, {s.values({3, 1})}); }
};

/// The gradient of a view that shows some elements of its base: theirs at their place, zeros elsewhere.
Layout base(Grad& d) { return Layout::contiguous(d.meta(0).shape); }
Tensor scattered(Grad& d, const Layout& view) { return strided_scatter(d.out(), {base(d), view}); }

struct Slice {
  static constexpr OpInfo info{"slice", "Slice", OpKind::view};
  struct Attrs {
    int64_t axis, start, end, step;
    template <class F>
    void fields(F&& f) const {
      f("axis", axis);
      f("start", start);
      f("end", end);
      f("step", step);
    }
  };
  static Layout view(const Attrs& a, const Layout& l) {
    return l.slice(static_cast<int>(a.axis), a.start, a.end, a.step);
  }
  static void backward(Grad& d) { d.in(0) = scattered(d, view(d.as<Attrs>(), base(d))); }
  static void onnx(const Attrs& a, OnnxOp& o) {
    o.add_input(Dims{a.start});
    o.add_input(Dims{a.end});
    o.add_input(Dims{a.axis});
    o.add_input(Dims{a.step});
  }
  static void samples(Samples& s) {
    s.add("middle", Attrs{1, 1, 4, 1}, {s.values({2, 5})});
    s.add("every other", Attrs{0, 0, 5, 2}, {s.values({5, 2})});
    s.add("backwards", Attrs{0, -1, -100, -2}, {s.values({5})});
  }
};

struct Diagonal {
  static constexpr OpInfo info{"diagonal", "", OpKind::view};
  struct Attrs {
    int64_t shift, a, b;
    template <class F>
    void fields(F&& f) const {
      f("offset", shift);
      f("dim1", a);
      f("dim2", b);
    }
  };
  static Layout view(const Attrs& a, const Layout& l) {
    return l.diagonal(a.shift, static_cast<int>(a.a), static_cast<int>(a.b));
  }
  static void backward(Grad& d) { d.in(0) = scattered(d, view(d.as<Attrs>(), base(d))); }
  static void samples(Samples& s) {
    s.add("main", Attrs{0, 0, 1}, {s.values({3, 4})});
    s.add("below, of the outer axes", Attrs{-1, 2, 0}, {s.values({3, 2, 3})});
  }
};

struct Unfold {
  static constexpr OpInfo info{"unfold", "", OpKind::view};
  struct Attrs {
    int64_t axis, width, step;
    template <class F>
    void fields(F&& f) const {
      f("dimension", axis);
      f("size", width);
      f("step", step);
    }
  };
  static Layout view(const Attrs& a, const Layout& l) { return l.unfold(static_cast<int>(a.axis), a.width, a.step); }
  static void backward(Grad& d) { d.in(0) = scattered(d, view(d.as<Attrs>(), base(d))); }
  static void samples(Samples& s) {
    s.add("overlapping", Attrs{0, 3, 1}, {s.values({5, 2})});
    s.add("apart", Attrs{-1, 2, 3}, {s.values({2, 7})});
  }
};

struct View {
  static constexpr OpInfo info{.name = "view", .onnx = "Reshape", .kind = OpKind::view, .reads_strides = true};
  struct Attrs {
    Dims to;
    template <class F>
    void fields(F&& f) const {
      f("to", to);
    }
  };
  static Layout view(const Attrs& a, const Layout& l) {
    Layout out;
    if (!l.view(a.to, out))
      throw Error(fmt::format("size {} with strides {} cannot be seen as {} without a copy", to_string(l.size),
                              to_string(l.stride), to_string(a.to)),
                  "reshape() copies where it must");
    return out;
  }
  static void backward(Grad& d) { d.in(0) = reshape(d.out(), d.meta(0).shape); }
  static void onnx(const Attrs& a, OnnxOp& o) { o.add_input(a.to); }
  static void samples(Samples& s) { s.add("2 to 3 axes", Attrs{{2, 3, 2}}, {s.values({6, 2})}); }
};

struct Squeeze {
  static constexpr OpInfo info{"squeeze", "Squeeze", OpKind::view};
  struct Attrs {
    int64_t axis;
    template <class F>
    void fields(F&& f) const {
      f("axis", axis);
    }
  };
  static Layout view(const Attrs& a, const Layout& l) { return l.squeeze(static_cast<int>(a.axis)); }
  static void backward(Grad& d) {
    int axis = wrap_axis(d.as<Attrs>().axis, d.meta(0).shape.n);
    d.in(0) = d.meta(0).shape.n == d.out().ndim() ? d.out() : unsqueeze(d.out(), axis);
  }
  static void onnx(const Attrs& a, OnnxOp& o) { o.add_input(Dims{a.axis}); }
  static void samples(Samples& s) { s.add("middle", Attrs{1}, {s.values({2, 1, 3})}); }
};

struct Unsqueeze {
  static constexpr OpInfo info{"unsqueeze", "Unsqueeze", OpKind::view};
  struct Attrs {
    int64_t axis;
    template <class F>
    void fields(F&& f) const {
      f("axis", axis);
    }
  };
  static Layout view(const Attrs& a, const Layout& l) { return l.unsqueeze(static_cast<int>(a.axis)); }
  static void backward(Grad& d) { d.in(0) = squeeze(d.out(), wrap_axis(d.as<Attrs>().axis, d.out().ndim())); }
  static void onnx(const Attrs& a, OnnxOp& o) { o.add_input(Dims{a.axis}); }
  static void samples(Samples& s) { s.add("last", Attrs{-1}, {s.values({2, 3})}); }
};

struct Copy {
  static constexpr OpInfo info{"copy", "Identity", OpKind::copy};
  struct Attrs {
    int64_t order;
    template <class F>
    void fields(F&& f) const {
      f("order", order);
    }
  };
  static Meta infer(const Attrs&, const Meta& x) { return x; }
  static void place(const Attrs& a, const Tensor* in, Layout* out) {
    Layout have = in[0].layout();
    have.offset = 0;
    auto order = static_cast<Order>(a.order);
    if (order == Order::channels_last)
      out[0] = Layout::channels_last(have.size);
    else if (order == Order::preserve && have.is_dense())
      out[0] = have;
  }
  static void cpu(const Call& c) { copy_values(c.out[0], c.in[0]); }
  static void backward(Grad& d) { d.in(0) = d.out(); }
  static void samples(Samples& s) {
    s.add("contiguous", Attrs{0}, {s.values({2, 3})});
    s.add("channels last", Attrs{1}, {s.values({2, 3, 2, 2})});
  }
};

struct Cast {
  static constexpr OpInfo info{"cast", "Cast", OpKind::copy};
  struct Attrs {
    DType to;
    template <class F>
    void fields(F&& f) const {
      f("to", to);
    }
  };
  static Meta infer(const Attrs& a, const Meta& x) {
    Meta m = x;
    m.dtype = a.to;
    return m;
  }
  static void place(const Attrs&, const Tensor* in, Layout* out) {
    Layout have = in[0].layout();
    have.offset = 0;
    if (have.is_dense()) out[0] = have;
  }
  static void cpu(const Call& c) { copy_values(c.out[0], c.in[0]); }
  static void backward(Grad& d) { d.in(0) = cast(d.out(), d.meta(0).dtype); }
  static void onnx(const Attrs& a, OnnxOp& o) { o.set_type("to", a.to); }
  static void samples(Samples& s) { s.add("to itself", Attrs{DType::f64}, {s.values({2, 3})}); }
};

/// In place: every element of input 0 is replaced.
struct Overwrite {
  static constexpr OpInfo info{"overwrite", "", OpKind::copy};
  static Meta infer(const NoAttrs&, const Meta& to, const Meta& from) {
    if (!(broadcast_shape(to.shape, from.shape) == to.shape))
      throw Error(fmt::format("size {} does not broadcast into {}", to_string(from.shape), to_string(to.shape)));
    return to;
  }
  static void cpu(const Call& c) { copy_values(c.out[0], c.in[1]); }
  static void backward(Grad& d) {
    if (d.needs(0)) d.in(0) = zeros(d.meta(0).shape, d.out().dtype(), d.out().device());
    if (d.needs(1)) d.in(1) = d.out();
  }
  static void samples(Samples& s) { s.add("rows", NoAttrs{}, {s.values({2, 3}), s.values({3})}); }
};

struct ToDevice {
  static constexpr OpInfo info{.name = "to_device", .kind = OpKind::copy, .any_device = true};
  struct Attrs {
    int64_t type, index;
    template <class F>
    void fields(F&& f) const {
      f("type", type);
      f("index", index);
    }
  };
  static Meta infer(const Attrs& a, const Meta& x) {
    Meta m = x;
    if (x.device.type != DeviceType::meta) m.device = {static_cast<DeviceType>(a.type), static_cast<uint8_t>(a.index)};
    return m;
  }
  static void place(const Attrs&, const Tensor* in, Layout* out) {
    Layout have = in[0].layout();
    have.offset = 0;
    if (have.is_dense()) out[0] = have;
  }
  static void cpu(const Call& c) { ops::write_output(c.out[0], c.in[0]); }
  static void backward(Grad& d) { d.in(0) = to(d.out(), d.meta(0).device); }
  static void samples(Samples& s) { s.add("where it is", Attrs{}, {s.values({2, 3})}); }
};

/// to[...] = from on their common device.
void overwrite(const Tensor& to, const Tensor& from) {
  if (to.device().type == DeviceType::cpu) return copy_values(to, from);
  const Tensor in[] = {to, from};
  Tensor out = to;
  const NoAttrs attrs;
  run_kernel(Register<Overwrite>::def(), &attrs, in, 2, &out);
}

const Register<Permute> permute_op;
const Register<ToDevice> to_device_op;
const Register<Overwrite> overwrite_op;
const Register<Expand> expand_op;
const Register<Slice> slice_op;
const Register<Diagonal> diagonal_op;
const Register<Unfold> unfold_op;
const Register<View> view_op;
const Register<Squeeze> squeeze_op;
const Register<Unsqueeze> unsqueeze_op;
const Register<Copy> copy_op;
const Register<Cast> cast_op;

}  // namespace

Tensor permute(const Tensor& x, const Dims& axes) { return apply<Permute>({axes}, x); }

Tensor transpose(const Tensor& x, int a, int b) {
  Dims axes;
  for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
  if (x.ndim() > 0) std::swap(axes[wrap_axis(a, x.ndim())], axes[wrap_axis(b, x.ndim())]);
  return permute(x, axes);
}

Tensor expand(const Tensor& x, const Shape& to) { return apply<Expand>({to}, x); }
Tensor slice(const Tensor& x, int axis, int64_t start, int64_t end, int64_t step) {
  return apply<Slice>({axis, start, end, step}, x);
}

Tensor narrow(const Tensor& x, int axis, int64_t start, int64_t length) {
  int a = wrap_axis(axis, x.ndim());
  if (start < 0 || length < 0 || start + length > x.size(a))
    throw Error(
        fmt::format("narrow: elements {} to {} are outside axis {} of size {}", start, start + length, a, x.size(a)));
  return slice(x, a, start, start + length);
}

Tensor select(const Tensor& x, int axis, int64_t index) {
  int a = wrap_axis(axis, x.ndim());
  x.layout().select(a, index);  // checks the index
  int64_t i = index < 0 ? index + x.size(a) : index;
  return squeeze(slice(x, a, i, i + 1), a);
}

Tensor squeeze(const Tensor& x, int axis) { return apply<Squeeze>({axis}, x); }
Tensor unsqueeze(const Tensor& x, int axis) { return apply<Unsqueeze>({axis}, x); }
Tensor flip(const Tensor& x, int axis) {
  return slice(x, axis, x.size(wrap_axis(axis, x.ndim())) - 1, -x.size(wrap_axis(axis, x.ndim())) - 1, -1);
}

Tensor flip(const Tensor& x, const Dims& axes) {
  Tensor y = x;
  for (int64_t a : axes) y = flip(y, static_cast<int>(a));
  return y;
}

Tensor squeeze(const Tensor& x) {
  Tensor y = x;
  for (int i = x.ndim() - 1; i >= 0; --i)
    if (x.size(i) == 1) y = squeeze(y, i);
  return y;
}

Tensor diagonal(const Tensor& x, int64_t offset, int a, int b) { return apply<Diagonal>({offset, a, b}, x); }
Tensor unfold(const Tensor& x, int axis, int64_t size, int64_t step) { return apply<Unfold>({axis, size, step}, x); }

Tensor movedim(const Tensor& x, const Dims& from, const Dims& to) {
  if (from.n != to.n) throw Error(fmt::format("movedim: {} axes cannot go to {} places", from.n, to.n));
  if (x.ndim() == 0) {
    for (int i = 0; i < from.n; ++i) wrap_axis(from[i], 0), wrap_axis(to[i], 0);
    return x;
  }
  Dims order = Dims::filled(x.ndim(), -1);
  uint32_t taken = 0;
  for (int i = 0; i < from.n; ++i) {
    int source = wrap_axis(from[i], x.ndim()), place = wrap_axis(to[i], x.ndim());
    if ((taken >> source & 1u) || order[place] >= 0)
      throw Error(fmt::format("movedim: an axis appears twice in {} or {}", to_string(from), to_string(to)));
    taken |= 1u << source;
    order[place] = source;
  }
  for (int i = 0, next = 0; i < x.ndim(); ++i) {
    if (order[i] >= 0) continue;
    while (taken >> next & 1u) ++next;
    order[i] = next++;
  }
  return permute(x, order);
}

Tensor unflatten(const Tensor& x, int axis, const Shape& sizes) {
  int a = wrap_axis(axis, x.ndim());
  Shape parts = infer_view_size({x.size(a)}, sizes), to;
  for (int i = 0; i < x.ndim(); ++i) {
    if (i != a)
      to.push_back(x.size(i));
    else
      for (int64_t s : parts) to.push_back(s);
  }
  return view(x, to);
}

Tensor rot90(const Tensor& x, int64_t k, int a, int b) {
  switch (((k % 4) + 4) % 4) {
    case 1:
      return transpose(flip(x, b), a, b);
    case 2:
      return flip(flip(x, a), b);
    case 3:
      return flip(transpose(x, a, b), b);
    default:
      return clone(x);
  }
}

Tensor view(const Tensor& x, const Shape& to) { return apply<View>({infer_view_size(x.size(), to)}, x); }

Tensor reshape(const Tensor& x, const Shape& to) {
  Shape want = infer_view_size(x.size(), to);
  Layout out;
  if (x.layout().view(want, out)) return want == x.size() ? x : view(x, want);
  return view(clone(x, Order::contiguous), want);
}

Tensor flatten(const Tensor& x, int first, int last) {
  if (x.ndim() == 0) return reshape(x, {1});
  int a = wrap_axis(first, x.ndim()), b = wrap_axis(last, x.ndim());
  if (a > b) throw Error(fmt::format("flatten: axis {} comes after axis {}", a, b));
  Shape to;
  for (int i = 0; i < x.ndim(); ++i) {
    if (i > a && i <= b)
      to[to.n - 1] *= x.size(i);
    else
      to.push_back(x.size(i));
  }
  return reshape(x, to);
}

Tensor clone(const Tensor& x, Order order) { return apply<Copy>({static_cast<int64_t>(order)}, x); }
Tensor& overwrite_(Tensor& to, const Tensor& from) { return apply_in_place<Overwrite>({}, to, from); }
Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : clone(x, Order::contiguous); }
Tensor channels_last(const Tensor& x) {
  return x.ndim() != 4 || x.layout().is_channels_last() ? x : clone(x, Order::channels_last);
}
Tensor cast(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : apply<Cast>({dtype}, x); }

void copy_(const Tensor& to, const Tensor& from) {
  if (to.is_meta() || from.is_meta()) return;
  if (!(broadcast_shape(to.size(), from.size()) == to.size()))
    throw Error(fmt::format("copy_: size {} does not broadcast into {}", to_string(from.size()), to_string(to.size())));
  if (partly_overlaps(to, from)) {
    Tensor apart = empty(from.size(), from.dtype(), from.device());
    overwrite(apart, from);
    overwrite(to, apart);
  } else {
    overwrite(to, from.device() == to.device() ? from : to_device(from, to.device()));
  }
  to.storage()->changed();
}

Tensor to(const Tensor& x, Device device) {
  return x.device() == device ? x : apply<ToDevice>({static_cast<int64_t>(device.type), device.index}, x);
}

Tensor sum_to(const Tensor& x, const Shape& size) {
  if (x.size() == size) return x;
  Dims axes;
  int lead = x.ndim() - size.n;
  for (int i = 0; i < x.ndim(); ++i)
    if (i < lead || (size[i - lead] == 1 && x.size(i) != 1)) axes.push_back(i);
  Tensor y = axes.n ? sum(x, axes, true) : x;
  return lead ? reshape(y, size) : y;
}

}  // namespace tenon
