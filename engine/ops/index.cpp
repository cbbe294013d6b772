#include "engine/ops/index.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

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
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

// Note [Indexing is moving rows]
// Whatever is indexed lies in adjacent axes: the public functions permute where it does not. A dense tensor is then
// [outer, n, inner] with the indexed axes as one of n, and an index is one number a row. Reading and writing are two
// kernels over rows.

namespace tenon {
namespace {

using namespace ops;

struct Rows {
  int64_t outer = 1, n = 1, inner = 1;
  std::vector<int64_t> at;  ///< in [0, n)
};

void check_index_type(const Meta& m) {
  if (m.dtype != DType::i64 && m.dtype != DType::i32)
    throw Error(fmt::format("an index is i64 or i32 (or a bool mask), not {}", name(m.dtype)));
}

/// `index` [count] are dense i64 tensors of one size for the axes from `first` on.
Rows indexed_rows(const Shape& size, int64_t first, const Tensor* index, int count, kernels::Room& room) {
  Rows r;
  for (int i = 0; i < first; ++i) r.outer *= size[i];
  for (int i = static_cast<int>(first) + count; i < size.n; ++i) r.inner *= size[i];
  r.at.assign(static_cast<size_t>(index[0].numel()), 0);
  for (int k = 0; k < count; ++k) {
    const int axis = static_cast<int>(first) + k;
    const int64_t d = size[axis];
    const Tensor t = dense_as(index[k], DType::i64, room);
    const int64_t* v = t.data<int64_t>();
    for (size_t b = 0; b < r.at.size(); ++b) {
      if (v[b] < -d || v[b] >= d)
        throw Error(fmt::format("index {} is out of range for axis {} of size {}", v[b], axis, d));
      r.at[b] = r.at[b] * d + (v[b] < 0 ? v[b] + d : v[b]);
    }
    r.n *= d;
  }
  return r;
}

int64_t row_grain(int64_t work) { return std::max<int64_t>(1, kLoopGrain / std::max<int64_t>(work, 1)); }

struct Index {
  static constexpr OpInfo info{"index", "Gather", OpKind::index};
  struct Attrs {
    int64_t first;
    template <class F>
    void fields(F&& f) const {
      f("first", first);
    }
  };
  static void infer(const Attrs& a, const Tensor* in, int n, Meta* out) {
    const Shape& x = in[0].size();
    int count = n - 1;
    if (count < 1 || a.first < 0 || a.first + count > x.n)
      throw Error(fmt::format("{} indices from axis {} on do not fit size {}", count, a.first, to_string(x)));
    const Shape& i = in[1].size();
    for (int k = 1; k < n; ++k) {
      check_index_type(in[k].meta());
      if (!(in[k].size() == i))
        throw Error(fmt::format("indices of sizes {} and {} differ", to_string(i), to_string(in[k].size())));
    }
    if (x.n - count + i.n > kMaxDims)
      throw Error(fmt::format("the result would have {} axes; at most {} are supported", x.n - count + i.n, kMaxDims));
    out[0].dtype = in[0].dtype();
    Shape s;
    for (int k = 0; k < a.first; ++k) s.push_back(x[k]);
    for (int64_t d : i) s.push_back(d);
    for (int k = static_cast<int>(a.first) + count; k < x.n; ++k) s.push_back(x[k]);
    out[0].shape = s;
  }
  static size_t workspace(const Attrs&, const Call& c) {
    kernels::Room room;
    dense(c.in[0], room);
    for (int i = 1; i < c.inputs; ++i) dense_as(c.in[i], DType::i64, room);
    return room.used();
  }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const Tensor x = dense(c.in[0], room);
    const Rows r = indexed_rows(x.size(), c.as<Attrs>().first, c.in + 1, c.inputs - 1, room);
    const int64_t count = static_cast<int64_t>(r.at.size());
    by_width(x.dtype(), [&](auto unit) {
      using T = decltype(unit);
      const T* from = x.data<T>();
      T* to = static_cast<T*>(c.out[0].raw());
      parallel_for(r.outer * count, row_grain(r.inner), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* row = from + ((i / count) * r.n + r.at[static_cast<size_t>(i % count)]) * r.inner;
          if (r.inner == 1)
            to[i] = *row;
          else
            std::memcpy(to + i * r.inner, row, static_cast<size_t>(r.inner) * sizeof(T));
        }
      });
    });
  }
  static constexpr Saves saves{.inputs = 0xfffffffe};
  static void backward(Grad& d);
  static Cost cost(const Attrs&, const Call& c) { return {0, 2.0 * static_cast<double>(c.out[0].nbytes())}; }
  static void onnx(const Attrs& a, OnnxOp& o) {
    if (o.inputs.size() > 2) o.unsupported = "more than one index tensor";
    o.set("axis", a.first);
  }
  static void samples(Samples& s) {
    s.add("rows", Attrs{0}, {s.values({5, 3}), s.indices({4}, 5)});
    s.add("columns, a matrix of indices", Attrs{1}, {s.values({2, 5, 3}), s.indices({2, 2}, 5)});
    s.add("points", Attrs{0}, {s.values({4, 5}), s.indices({6}, 4), s.indices({6}, 5)});
    s.add("two axes in the middle", Attrs{1}, {s.values({2, 3, 4, 2}), s.indices({3}, 3), s.indices({3}, 4)});
    s.add("none", Attrs{0}, {s.values({3, 2}), s.indices({0}, 1)});
  }
};

struct IndexPut {
  static constexpr OpInfo info{"index_put", "", OpKind::index};
  struct Attrs {
    int64_t first;
    bool accumulate;
    template <class F>
    void fields(F&& f) const {
      f("first", first);
      f("accumulate", accumulate);
    }
  };
  // x, values, indices...
  static void infer(const Attrs& a, const Tensor* in, int n, Meta* out) {
    Tensor read[kMaxDims + 1];
    if (n < 3 || n > kMaxDims + 2) throw Error(fmt::format("{} indices; one to {} are supported", n - 2, kMaxDims));
    read[0] = in[0];
    for (int i = 2; i < n; ++i) read[i - 1] = in[i];
    Meta m;
    Index::infer({a.first}, read, n - 1, &m);
    if (!(m.shape == in[1].size()))
      throw Error(
          fmt::format("values of size {} do not fit {} indexed elements", to_string(in[1].size()), to_string(m.shape)));
    if (in[1].dtype() != in[0].dtype())
      throw Error(
          fmt::format("values of {} cannot be put into a tensor of {}", name(in[1].dtype()), name(in[0].dtype())),
          "cast() them");
    out[0] = in[0].meta();
  }
  static DType type_of(const Attrs& a, const Call& c) {
    return a.accumulate ? widened(c.in[0].dtype()) : c.in[0].dtype();
  }
  static size_t workspace(const Attrs& a, const Call& c) {
    kernels::Room room;
    for (int i = 2; i < c.inputs; ++i) dense_as(c.in[i], DType::i64, room);
    target(c, 0, type_of(a, c), room);
    dense_as(c.in[1], type_of(a, c), room);
    return room.used();
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    const DType t = type_of(a, c);
    kernels::Room room(c.workspace);
    const Rows r = indexed_rows(c.in[0].size(), a.first, c.in + 2, c.inputs - 2, room);
    const Tensor y = target(c, 0, t, room), v = dense_as(c.in[1], t, room);
    if (y.raw() != c.in[0].raw() || y.nbytes() == 0) write_output(y, c.in[0]);
    if (a.accumulate)
      by_arithmetic(t, [&](auto unit) {
        write<decltype(unit)>(r, v, y,
                              [](auto& to, auto from) { to = static_cast<std::decay_t<decltype(to)>>(to + from); });
      });
    else
      by_width(t, [&](auto unit) { write<decltype(unit)>(r, v, y, [](auto& to, auto from) { to = from; }); });
    finished(c, 0, y);
  }
  // Pieces are columns: every element has one writer, which takes the indices in order.
  template <class T, class F>
  static void write(const Rows& r, const Tensor& values, const Tensor& out, const F& f) {
    const int64_t count = static_cast<int64_t>(r.at.size());
    const T* from = static_cast<const T*>(values.raw());
    T* to = static_cast<T*>(out.raw());
    parallel_for(r.outer * r.inner, row_grain(count), [&](int64_t begin, int64_t end) {
      for (int64_t col = begin; col < end;) {
        const int64_t o = col / r.inner, i = col % r.inner, width = std::min(r.inner - i, end - col);
        for (int64_t b = 0; b < count; ++b) {
          const T* row = from + (o * count + b) * r.inner + i;
          T* target = to + (o * r.n + r.at[static_cast<size_t>(b)]) * r.inner + i;
          for (int64_t k = 0; k < width; ++k) f(target[k], row[k]);
        }
        col += width;
      }
    });
  }
  static constexpr Saves saves{.inputs = 0xfffffffc};
  static void backward(Grad& d) {
    const auto& a = d.as<Attrs>();
    std::vector<Tensor> in{d.out()};
    for (int i = 2; i < d.inputs(); ++i) in.push_back(d.x(i));
    if (d.needs(1)) {
      Tensor out;
      apply_many<Index>({a.first}, in.data(), static_cast<int>(in.size()), &out);
      d.in(1) = out;
    }
    if (!d.needs(0)) return;
    if (a.accumulate) {
      d.in(0) = d.out();
      return;
    }
    in.insert(in.begin() + 1, expand(scalar_like(0, d.out()), d.meta(1).shape));
    Tensor out;
    apply_many<IndexPut>({a.first, false}, in.data(), static_cast<int>(in.size()), &out);
    d.in(0) = out;
  }
  static Cost cost(const Attrs&, const Call& c) {
    return {0, 2.0 * static_cast<double>(c.out[0].nbytes() + c.in[1].nbytes())};
  }
  static void samples(Samples& s) {
    s.add("rows", Attrs{0, false}, {s.values({5, 3}), s.values({2, 3}), integers({4, -4})});
    s.add("rows added", Attrs{0, true}, {s.values({5, 3}), s.values({4, 3}), integers({1, 1, 0, -1})});
    s.add("points", Attrs{1, false}, {s.values({2, 3, 4}), s.values({2, 3}), integers({0, 2, 1}), integers({3, 0, 0})});
    s.add("points added", Attrs{0, true}, {s.values({3, 4}), s.values({3}), integers({0, 2, 2}), integers({3, 0, 0})});
  }
};

void Index::backward(Grad& d) {
  std::vector<Tensor> in{zeros(d.meta(0).shape, d.out().dtype(), d.out().device()), d.out()};
  for (int i = 1; i < d.inputs(); ++i) in.push_back(d.x(i));
  Tensor out;
  apply_many<IndexPut>({d.as<Attrs>().first, true}, in.data(), static_cast<int>(in.size()), &out);
  d.in(0) = out;
}

/// Its size depends on its values, so it has no form for tensors without memory and no samples.
struct NonZero {
  static constexpr OpInfo info{"nonzero", "", OpKind::index};
  template <class F>
  static void each(const Tensor& x, const F& f) {
    const Tensor y = dense_as(x, DType::boolean);
    const bool* v = y.data<bool>();
    for (int64_t i = 0; i < y.numel(); ++i)
      if (v[i]) f(i);
  }
  static void infer(const NoAttrs&, const Tensor* in, int, Meta* out) {
    if (in[0].is_meta())
      throw Error("the size of the result depends on values, which a tensor on the meta device does not have");
    int64_t count = 0;
    each(to_host(in[0]), [&](int64_t) { ++count; });
    out[0].dtype = DType::i64;
    out[0].shape = {count, in[0].ndim()};
  }
  static void cpu(const Call& c) {
    const Shape& s = c.in[0].size();
    int64_t* to = c.out[0].data<int64_t>();
    each(c.in[0], [&](int64_t i) {
      for (int k = s.n - 1; k >= 0; --k) {
        to[k] = i % s[k];
        i /= s[k];
      }
      to += s.n;
    });
  }
};

const Register<Index> index_op;
const Register<IndexPut> index_put_op;
const Register<NonZero> nonzero_op;

Tensor flat(const Tensor& x) { return reshape(x, {x.numel()}); }

/// What a list of indices means for a tensor: the tensor with the indexed axes side by side, and the indices broadcast
/// to one size.
struct Plan {
  int first = 0;
  Dims order;  ///< of x's axes
  bool moved = false;
  std::vector<Tensor> index;  ///< i64 or i32, one an axis
};

Plan plan_of(const Tensor& x, const std::vector<Tensor>& given) {
  std::vector<Tensor> per_axis;
  for (const Tensor& t : given) {
    if (t && t.dtype() == DType::boolean) {
      for (int k = 0; k < t.ndim(); ++k) {
        int axis = static_cast<int>(per_axis.size()) + k;
        if (axis >= x.ndim() || t.size(k) != x.size(axis))
          throw Error(fmt::format("index: a mask of size {} does not fit size {} from axis {} on", to_string(t.size()),
                                  to_string(x.size()), per_axis.size()));
      }
      if (t.ndim() == 0)
        throw Error("index: a mask without axes is not supported", "where() or masked_fill() may serve");
      Tensor at = nonzero(t);
      for (int k = 0; k < t.ndim(); ++k) per_axis.push_back(select(at, 1, k));
    } else {
      if (t) check_index_type(t.meta());
      per_axis.push_back(t);
    }
  }
  if (static_cast<int>(per_axis.size()) > x.ndim())
    throw Error(fmt::format("index: {} indices for a tensor of {} axes", per_axis.size(), x.ndim()));
  Plan p;
  Shape common;
  std::vector<int> indexed;
  for (size_t i = 0; i < per_axis.size(); ++i)
    if (per_axis[i]) {
      indexed.push_back(static_cast<int>(i));
      common = broadcast_shape(common, per_axis[i].size());
    }
  if (indexed.empty()) return p;
  p.moved = indexed.back() - indexed.front() + 1 != static_cast<int>(indexed.size());
  p.first = p.moved ? 0 : indexed.front();
  for (int i : indexed) {
    if (p.moved) p.order.push_back(i);
    const Tensor& t = per_axis[static_cast<size_t>(i)];
    p.index.push_back(t.size() == common ? t : expand(t, common));
  }
  for (int i = 0; p.moved && i < x.ndim(); ++i)
    if (std::find(indexed.begin(), indexed.end(), i) == indexed.end()) p.order.push_back(i);
  return p;
}

Tensor run_index(const Tensor& x, const Plan& p) {
  std::vector<Tensor> in{p.moved ? permute(x, p.order) : x};
  in.insert(in.end(), p.index.begin(), p.index.end());
  Tensor out;
  apply_many<Index>({p.first}, in.data(), static_cast<int>(in.size()), &out);
  return out;
}

}  // namespace

Tensor index(const Tensor& x, const std::vector<Tensor>& indices) {
  const Plan p = plan_of(x, indices);
  return p.index.empty() ? x : run_index(x, p);
}

Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values, bool accumulate) {
  const Plan p = plan_of(x, indices);
  if (p.index.empty()) return accumulate ? add(x, values) : expand(cast(values, x.dtype()), x.size());
  std::vector<Tensor> in{p.moved ? permute(x, p.order) : x, Tensor()};
  in.insert(in.end(), p.index.begin(), p.index.end());
  Shape picked;
  for (int k = 0; k < p.first; ++k) picked.push_back(in[0].size(k));
  for (int64_t d : p.index[0].size()) picked.push_back(d);
  for (int k = p.first + static_cast<int>(p.index.size()); k < x.ndim(); ++k) picked.push_back(in[0].size(k));
  bool fits = values.ndim() <= picked.n;
  for (int k = 1; fits && k <= values.ndim(); ++k)
    fits = values.size(-k) == 1 || values.size(-k) == picked[picked.n - k];
  if (!fits)
    throw Error(fmt::format("index_put: values of size {} do not broadcast to the indexed elements' size {}",
                            to_string(values.size()), to_string(picked)));
  in[1] = values.size() == picked ? values : expand(values, picked);
  Tensor out;
  apply_many<IndexPut>({p.first, accumulate}, in.data(), static_cast<int>(in.size()), &out);
  if (!p.moved) return out;
  Dims back = p.order;
  for (int i = 0; i < p.order.n; ++i) back[static_cast<int>(p.order[i])] = i;
  return permute(out, back);
}

Tensor& index_put_(Tensor& x, const std::vector<Tensor>& indices, const Tensor& values, bool accumulate) {
  const Plan p = plan_of(x, indices);
  if (p.moved || p.index.empty() || p.index.size() > 6) return overwrite_(x, index_put(x, indices, values, accumulate));
  std::vector<Tensor> in{x, Tensor()};
  in.insert(in.end(), p.index.begin(), p.index.end());
  Meta picked;
  std::vector<Tensor> read{x};
  read.insert(read.end(), p.index.begin(), p.index.end());
  Index::infer({p.first}, read.data(), static_cast<int>(read.size()), &picked);
  in[1] = values.size() == picked.shape ? values : expand(values, picked.shape);
  const IndexPut::Attrs attrs{p.first, accumulate};
  dispatch_in_place(Register<IndexPut>::def(), &attrs, in.data(), static_cast<int>(in.size()));
  return x;
}

Tensor index_select(const Tensor& x, int axis, const Tensor& at) {
  if (x.ndim() == 0) return reshape(index_select(reshape(x, {1}), 0, at), at.size());
  return apply<Index>({wrap_axis(axis, x.ndim())}, x, at);
}

Tensor index_add(const Tensor& x, int axis, const Tensor& at, const Tensor& source, double alpha) {
  return apply<IndexPut>({wrap_axis(axis, x.ndim()), true}, x, alpha == 1 ? source : mul(source, alpha), at);
}
Tensor index_copy(const Tensor& x, int axis, const Tensor& at, const Tensor& source) {
  return apply<IndexPut>({wrap_axis(axis, x.ndim()), false}, x, source, at);
}
Tensor index_fill(const Tensor& x, int axis, const Tensor& at, double value) {
  int a = wrap_axis(axis, x.ndim());
  Shape picked = x.size();
  picked[a] = at.numel();
  return apply<IndexPut>({a, false}, x, expand(scalar(value, x.dtype(), x.device()), picked),
                         reshape(at, {at.numel()}));
}

Tensor& index_add_(Tensor& x, int axis, const Tensor& at, const Tensor& source, double alpha) {
  return apply_in_place<IndexPut>({wrap_axis(axis, x.ndim()), true}, x, alpha == 1 ? source : mul(source, alpha), at);
}
Tensor& index_copy_(Tensor& x, int axis, const Tensor& at, const Tensor& source) {
  return apply_in_place<IndexPut>({wrap_axis(axis, x.ndim()), false}, x, source, at);
}
Tensor& index_fill_(Tensor& x, int axis, const Tensor& at, double value) {
  return overwrite_(x, index_fill(x, axis, at, value));
}

Tensor take(const Tensor& x, const Tensor& at) { return index_select(flat(x), 0, at); }

Tensor nonzero(const Tensor& x) { return apply<NonZero>({}, x); }

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  if (value.ndim() != 0)
    throw Error(fmt::format("masked_fill: the value has size {}; it is a single number", to_string(value.size())));
  if (!(broadcast_shape(x.size(), mask.size()) == x.size()))
    throw Error(fmt::format("masked_fill: a mask of size {} does not broadcast to {}", to_string(mask.size()),
                            to_string(x.size())));
  return where(mask, cast(value, x.dtype()), x);
}
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  return masked_fill(x, mask, scalar(value, x.dtype(), x.device()));
}

Tensor& masked_fill_(Tensor& x, const Tensor& mask, double value) { return overwrite_(x, masked_fill(x, mask, value)); }

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  if (mask.dtype() != DType::boolean)
    throw Error(fmt::format("masked_select: the mask is {}, it must be bool", name(mask.dtype())),
                "compare it: ne(mask, 0)");
  Shape both = broadcast_shape(x.size(), mask.size());
  return index_select(flat(expand(x, both)), 0, select(nonzero(flat(expand(mask, both))), 1, 0));
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  if (mask.dtype() != DType::boolean)
    throw Error(fmt::format("masked_scatter: the mask is {}, it must be bool", name(mask.dtype())),
                "compare it: ne(mask, 0)");
  Tensor at = select(nonzero(flat(expand(mask, x.size()))), 1, 0);
  if (at.numel() > source.numel())
    throw Error(
        fmt::format("masked_scatter: the mask has {} true elements, the source only {}", at.numel(), source.numel()));
  return reshape(index_copy(flat(x), 0, at, narrow(flat(source), 0, 0, at.numel())), x.size());
}

}  // namespace tenon
