#include "engine/ops/join.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "core/backend.h"
#include "core/error.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
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

bool passed_over(const Shape& s) { return s.n == 1 && s[0] == 0; }

struct Cat {
  static constexpr OpInfo info{"cat", "Concat", OpKind::copy};
  struct Attrs {
    int64_t axis;
    template <class F>
    void fields(F&& f) const {
      f("axis", axis);
    }
  };
  static void infer(const Attrs& a, const Tensor* in, int n, Meta* out) {
    if (n < 1) throw Error("there is nothing to join");
    const Tensor* like = nullptr;
    out[0].dtype = in[0].dtype();
    for (int i = 0; i < n; ++i) {
      out[0].dtype = promote(out[0].dtype, in[i].dtype());
      if (passed_over(in[i].size()) && !(like && like->ndim() == 1)) continue;
      if (!like) {
        like = &in[i];
        out[0].shape = in[i].size();
        if (a.axis < 0 || a.axis >= like->ndim())
          throw Error(fmt::format("axis {} is out of range for size {}", a.axis, to_string(like->size())));
        continue;
      }
      bool fits = in[i].ndim() == like->ndim();
      for (int k = 0; fits && k < like->ndim(); ++k) fits = k == a.axis || in[i].size(k) == like->size(k);
      if (!fits)
        throw Error(fmt::format("input {} of size {} does not fit {} along axis {}", i, to_string(in[i].size()),
                                to_string(like->size()), a.axis));
      out[0].shape[static_cast<int>(a.axis)] += in[i].size(static_cast<int>(a.axis));
    }
    if (!like) out[0].shape = in[0].size();
  }
  static void cpu(const Call& c) {
    int64_t at = 0;
    const int axis = static_cast<int>(c.as<Attrs>().axis);
    for (int i = 0; i < c.inputs; ++i) {
      if (c.in[i].numel() == 0) continue;
      const int64_t n = c.in[i].size(axis);
      write_output(view_of(c.out[0], c.out[0].layout().slice(axis, at, at + n)), c.in[i]);
      at += n;
    }
  }
  static void backward(Grad& d) {
    int64_t at = 0;
    const int axis = static_cast<int>(d.as<Attrs>().axis);
    for (int i = 0; i < d.inputs(); ++i) {
      const Meta& m = d.meta(i);
      const int64_t n = m.shape.product() == 0 && passed_over(m.shape) ? 0 : m.shape[axis];
      if (d.needs(i))
        d.in(i) = cast(passed_over(m.shape) && d.out().ndim() != 1 ? zeros(m.shape, d.out().dtype(), d.out().device())
                                                                   : slice(d.out(), axis, at, at + n),
                       m.dtype);
      at += n;
    }
  }
  static void onnx(const Attrs& a, OnnxOp& o) { o.set("axis", a.axis); }
  static void samples(Samples& s) {
    s.add("rows", Attrs{0}, {s.values({2, 3}), s.values({1, 3}), s.values({3, 3})});
    s.add("last axis", Attrs{2}, {s.values({2, 1, 3}), s.values({2, 1, 2})});
    s.add("one with nothing", Attrs{0}, {s.values({0, 3}), s.values({2, 3})});
  }
};

struct Triangle {
  static constexpr OpInfo info{"triangle", "Trilu", OpKind::copy};
  struct Attrs {
    bool upper;
    int64_t shift;
    template <class F>
    void fields(F&& f) const {
      f("upper", upper);
      f("shift", shift);
    }
  };
  static Meta infer(const Attrs&, const Meta& x) {
    if (x.shape.n < 2) throw Error(fmt::format("size {} has no matrix: two axes at least", to_string(x.shape)));
    return x;
  }
  static size_t workspace(const Attrs&, const Call& c) { return dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor x = dense(c.in[0], room);
    const int64_t rows = x.size(-2), cols = x.size(-1), count = x.numel() / std::max<int64_t>(1, rows * cols);
    by_width(x.dtype(), [&](auto unit) {
      using T = decltype(unit);
      const T* from = static_cast<const T*>(x.raw());
      T* to = static_cast<T*>(c.out[0].raw());
      for (int64_t r = 0; r < count * rows; ++r) {
        // Columns below `edge` are on the lower side of the diagonal.
        const int64_t i = r % rows,
                      edge = std::clamp<int64_t>(
                          a.upper ? std::max(a.shift, -rows) + i : std::min(a.shift, cols) + i + 1, 0, cols);
        const int64_t begin = a.upper ? edge : 0, end = a.upper ? cols : edge;
        std::memset(to + r * cols, 0, static_cast<size_t>(cols) * sizeof(T));
        if (end > begin)
          std::memcpy(to + r * cols + begin, from + r * cols + begin, static_cast<size_t>(end - begin) * sizeof(T));
      }
    });
  }
  static void backward(Grad& d) { d.in(0) = apply<Triangle>(d.as<Attrs>(), d.out()); }
  static void onnx(const Attrs& a, OnnxOp& o) {
    o.set("upper", static_cast<int64_t>(a.upper));
    o.constants.push_back({{a.shift}, true});
  }
  static void samples(Samples& s) {
    s.add("lower", Attrs{false, 0}, {s.values({2, 3, 4})});
    s.add("upper, shifted up", Attrs{true, 1}, {s.values({4, 3})});
    s.add("lower, shifted down", Attrs{false, -2}, {s.values({4, 3})});
    s.add("nothing left", Attrs{true, 9}, {s.values({2, 2})});
  }
};

const Register<Cat> cat_op;
const Register<Triangle> triangle_op;

Tensor counted_index(const int64_t* counts, int64_t n, Device device) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (counts[i] < 0)
      throw Error(fmt::format("repeat_interleave: element {} is to be repeated {} times", i, counts[i]));
    total += counts[i];
  }
  Tensor t = empty({total}, DType::i64);
  int64_t* to = t.data<int64_t>();
  for (int64_t i = 0; i < n; ++i) to = std::fill_n(to, counts[i], i);
  return to_device(t, device);
}

}  // namespace

Tensor cat(const std::vector<Tensor>& parts, int axis) {
  if (parts.empty()) throw Error("cat: there is nothing to join");
  int axes = 1;
  for (const Tensor& t : parts) axes = std::max(axes, t.ndim());
  const Cat::Attrs attrs{wrap_axis(axis, axes)};
  Tensor out;
  dispatch(Register<Cat>::def(), &attrs, parts.data(), static_cast<int>(parts.size()), &out);
  return out;
}

Tensor stack(const std::vector<Tensor>& parts, int axis) {
  if (parts.empty()) throw Error("stack: there is nothing to join");
  const int a = wrap_axis(axis, parts[0].ndim() + 1);
  std::vector<Tensor> wide;
  for (const Tensor& t : parts) {
    if (!(t.size() == parts[0].size()))
      throw Error(fmt::format("stack: sizes {} and {} differ", to_string(parts[0].size()), to_string(t.size())));
    wide.push_back(unsqueeze(t, a));
  }
  return cat(wide, a);
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int axis) {
  const int a = wrap_axis(axis, x.ndim());
  std::vector<Tensor> out;
  int64_t at = 0;
  for (int64_t n : sizes) {
    if (n < 0 || at + n > x.size(a))
      throw Error(fmt::format("split: parts of {} elements do not fit axis {} of size {}", at + n, a, x.size(a)));
    out.push_back(narrow(x, a, at, n));
    at += n;
  }
  if (at != x.size(a)) throw Error(fmt::format("split: the parts have {} elements, axis {} has {}", at, a, x.size(a)));
  return out;
}
std::vector<Tensor> split(const Tensor& x, int64_t size, int axis) {
  const int64_t n = x.size(wrap_axis(axis, x.ndim()));
  if (size <= 0) throw Error(fmt::format("split: parts of {} elements", size));
  std::vector<int64_t> sizes;
  for (int64_t at = 0; at < n; at += size) sizes.push_back(std::min(size, n - at));
  if (n == 0) sizes.push_back(0);
  return split(x, sizes, axis);
}
std::vector<Tensor> chunk(const Tensor& x, int64_t count, int axis) {
  if (count <= 0) throw Error(fmt::format("chunk: {} parts", count));
  const int64_t n = x.size(wrap_axis(axis, x.ndim()));
  return split(x, std::max<int64_t>(1, (n + count - 1) / count), axis);
}
std::vector<Tensor> unbind(const Tensor& x, int axis) {
  const int a = wrap_axis(axis, x.ndim());
  std::vector<Tensor> out;
  for (int64_t i = 0; i < x.size(a); ++i) out.push_back(select(x, a, i));
  return out;
}

Tensor repeat(const Tensor& x, const Dims& counts) {
  if (counts.n < x.ndim()) throw Error(fmt::format("repeat: {} counts for {} axes", counts.n, x.ndim()));
  Tensor y = x;
  Shape wide = x.size();
  while (wide.n < counts.n) wide.insert(0, 1);
  if (wide.n != x.ndim()) y = view(contiguous(y), wide);
  for (int i = 0; i < counts.n; ++i) {
    if (counts[i] < 0) throw Error(fmt::format("repeat: a count of {}", counts[i]));
    if (counts[i] == 1) continue;
    // [before, 1, rest] -> [before, count, rest]: at most three axes, whatever x has.
    int64_t before = 1, rest = 1;
    for (int k = 0; k < i; ++k) before *= wide[k];
    for (int k = i; k < wide.n; ++k) rest *= wide[k];
    wide[i] *= counts[i];
    y = reshape(expand(reshape(y, {before, 1, rest}), {before, counts[i], rest}), wide);
  }
  return y.same(x) ? clone(x, Order::contiguous) : y;
}
Tensor tile(const Tensor& x, const Dims& counts) {
  Dims all = counts;
  while (all.n < x.ndim()) all.insert(0, 1);
  return repeat(x, all);
}

Tensor repeat_interleave(const Tensor& x, int64_t count, int axis) {
  const int a = wrap_axis(axis, x.ndim());
  const std::vector<int64_t> counts(static_cast<size_t>(x.size(a)), count);
  return index_select(x, a, counted_index(counts.data(), x.size(a), x.device()));
}
Tensor repeat_interleave(const Tensor& x, const Tensor& counts, int axis) {
  const int a = wrap_axis(axis, x.ndim());
  if (counts.numel() != x.size(a))
    throw Error(fmt::format("repeat_interleave: {} counts for an axis of size {}", counts.numel(), x.size(a)));
  const Tensor c = to_host(contiguous(cast(counts, DType::i64)));
  return index_select(x, a, counted_index(c.data<int64_t>(), c.numel(), x.device()));
}

Tensor roll(const Tensor& x, int64_t shift, int axis) {
  const int a = wrap_axis(axis, x.ndim());
  const int64_t n = x.size(a), by = n ? ((shift % n) + n) % n : 0;
  return by == 0 ? clone(x) : cat({narrow(x, a, n - by, by), narrow(x, a, 0, n - by)}, a);
}

Tensor tril(const Tensor& x, int64_t shift) { return apply<Triangle>({false, shift}, x); }
Tensor triu(const Tensor& x, int64_t shift) { return apply<Triangle>({true, shift}, x); }

}  // namespace tenon
