#include "engine/ops/reduce.h"

#include <fmt/format.h>
#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/autograd/node.h"
#include "engine/op/pointwise.h"
#include "engine/ops/create.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/join.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/scan.h"
#include "engine/ops/view.h"

// Note [The order of a sum]
// Adding in another order gives other bits, so the order depends on sizes alone. A row is cut into pieces of kPiece
// elements; in a piece kLanes running sums take every kLanes-th element (so that the loop vectorises) and are then
// added as a tree; pieces are added in order. Down columns, rows are cut into blocks of kBlock; a block is added row
// after row, and the blocks in order. Threads only decide who does which piece.

namespace tenon {
namespace {

constexpr int kLanes = 32;
constexpr int64_t kPiece = 16384, kBlock = 1024;

struct SumOf {
  template <class T>
  static T start() {
    return T(0);
  }
  template <class T>
  static T join(T a, T b) {
    return a + b;
  }
};
struct MaxOf {
  template <class T>
  static T start() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
  template <class T>
  static T join(T a, T b) {
    return (a > b) | (a != a) ? a : b;
  }
};
struct ProductOf {
  template <class T>
  static T start() {
    return T(1);
  }
  template <class T>
  static T join(T a, T b) {
    return a * b;
  }
};
struct MinOf {
  template <class T>
  static T start() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  template <class T>
  static T join(T a, T b) {
    return (a < b) | (a != a) ? a : b;
  }
};

template <class R, class T>
T reduce_piece(const T* x, int64_t n) {
  T lanes[kLanes];
  for (T& l : lanes) l = R::template start<T>();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k) lanes[k] = R::template join<T>(x[i + k], lanes[k]);
  for (int k = 0; i < n; ++i, ++k) lanes[k] = R::template join<T>(x[i], lanes[k]);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k) lanes[k] = R::template join<T>(lanes[k], lanes[k + width]);
  return lanes[0];
}

template <class R, class T>
T reduce_row(const T* x, int64_t n) {
  if (n <= kPiece) return reduce_piece<R>(x, n);
  T total = R::template start<T>();
  for (int64_t b = 0; b < n; b += kPiece)
    total = R::template join<T>(reduce_piece<R>(x + b, std::min(kPiece, n - b)), total);
  return total;
}

template <class R, class T>
void reduce_rows(const T* x, T* out, int64_t rows, int64_t n) {
  if (rows == 1 && n > kPiece) {
    std::vector<T> parts(static_cast<size_t>((n + kPiece - 1) / kPiece));
    parallel_for(n, kPiece,
                 [&](int64_t b, int64_t e) { parts[static_cast<size_t>(b / kPiece)] = reduce_piece<R>(x + b, e - b); });
    T total = R::template start<T>();
    for (T p : parts) total = R::template join<T>(p, total);
    *out = total;
    return;
  }
  int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(n, 1));
  parallel_for(rows, grain, [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) out[r] = reduce_row<R>(x + r * n, n);
  });
}

// out[c] over rows of x[r * stride + c], c < columns.
template <class R, class T>
void reduce_columns(const T* x, T* out, int64_t rows, int64_t columns, int64_t stride) {
  int64_t blocks = std::max<int64_t>(1, (rows + kBlock - 1) / kBlock);
  std::vector<T> parts(static_cast<size_t>(blocks * columns), R::template start<T>());
  auto some = [&](int64_t block, int64_t c0, int64_t c1) {
    T* __restrict acc = parts.data() + block * columns;
    auto join = [](T value, T sum) { return R::template join<T>(value, sum); };
    int64_t r = block * kBlock;
    const int64_t last = std::min(rows, (block + 1) * kBlock);
    for (; r + 4 <= last; r += 4) {
      const T *a = x + r * stride, *b = a + stride, *d = b + stride, *e = d + stride;
      for (int64_t c = c0; c < c1; ++c) acc[c] = join(e[c], join(d[c], join(b[c], join(a[c], acc[c]))));
    }
    for (; r < last; ++r)
      for (int64_t c = c0; c < c1; ++c) acc[c] = join(x[r * stride + c], acc[c]);
  };
  constexpr int64_t kStripe = 4096;  // long runs in memory; what is added up stays in the cache
  int64_t stripes = (columns + kStripe - 1) / kStripe;
  int64_t grain =
      std::max<int64_t>(1, 65536 / std::max<int64_t>(1, std::min(rows, kBlock) * std::min(columns, kStripe)));
  parallel_for(blocks * stripes, grain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i)
      some(i / stripes, i % stripes * kStripe, std::min(columns, (i % stripes + 1) * kStripe));
  });
  std::copy(parts.begin(), parts.begin() + columns, out);
  for (int64_t k = 1; k < blocks; ++k)
    for (int64_t c = 0; c < columns; ++c)
      out[c] = R::template join<T>(parts[static_cast<size_t>(k * columns + c)], out[c]);
}

uint32_t axis_mask(const Dims& axes, int ndim) {
  if (axes.n == 0) return (1u << ndim) - 1u;
  uint32_t mask = 0;
  for (int64_t a : axes) {
    int k = wrap_axis(a, ndim);
    if (mask >> k & 1u && ndim > 0) throw Error(fmt::format("axis {} appears twice in {}", k, to_string(axes)));
    mask |= 1u << k;
  }
  return ndim == 0 ? 0 : mask;
}

Shape reduced_shape(const Shape& x, const Dims& axes, bool keep) {
  uint32_t mask = axis_mask(axes, x.n);
  Shape out;
  for (int i = 0; i < x.n; ++i) {
    if (!(mask >> i & 1u))
      out.push_back(x[i]);
    else if (keep)
      out.push_back(1);
  }
  return out;
}

// One run of axes with a single stride, or false.
bool coalesce(const Layout& x, uint32_t mask, bool in_mask, int64_t& size, int64_t& stride) {
  size = 1;
  stride = 1;
  for (int i = x.ndim() - 1; i >= 0; --i) {
    if (static_cast<bool>(mask >> i & 1u) != in_mask || x.size[i] == 1) continue;
    if (size == 1)
      stride = x.stride[i];
    else if (x.stride[i] != stride * size)
      return false;
    size *= x.size[i];
  }
  return true;
}

/// Rows that lie side by side, or columns of them: what is added up as it lies.
bool reduces_as_it_lies(const Layout& x, uint32_t mask) {
  if (x.numel() == 0 || (mask == (1u << x.ndim()) - 1u && x.is_dense())) return true;
  int64_t n, step, kept, kept_step;
  if (!coalesce(x, mask, true, n, step) || !coalesce(x, mask, false, kept, kept_step)) return false;
  return ((n == 1 || step == 1) && (kept == 1 || kept_step == n)) || (kept_step == 1 && step >= kept);
}

template <class R, class T>
void reduce_typed(const Tensor& x, const Tensor& out, uint32_t mask) {
  T* to = out.data<T>();
  if (x.numel() == 0) {
    std::fill(to, to + out.numel(), R::template start<T>());
    return;
  }
  int64_t n, step, kept, kept_step;
  bool one_run = coalesce(x.layout(), mask, true, n, step),
       kept_run = coalesce(x.layout(), mask, false, kept, kept_step);
  if (one_run && kept_run && (n == 1 || step == 1) && (kept == 1 || kept_step == n))
    return reduce_rows<R>(x.data<T>(), to, kept, n);
  if (one_run && kept_run && kept_step == 1 && step >= kept) return reduce_columns<R>(x.data<T>(), to, n, kept, step);
  reduce_rows<R>(x.data<T>(), to, 1, x.numel());
}

struct ReduceAttrs {
  Dims axes;
  bool keep;
  template <class F>
  void fields(F&& f) const {
    f("axes", axes);
    f("keep", keep);
  }
};

/// What a reduction reads and writes, in the type that it adds up in; what has to be copied for it lies in `room`.
struct Reduced {
  Tensor x, out;
  uint32_t mask;
  Reduced(const Call& c, kernels::Room& room)
      : x(c.in[0]), out(c.out[0]), mask(axis_mask(c.as<ReduceAttrs>().axes, x.ndim())) {
    const DType t = compute_type(out.dtype());
    Layout lies = x.layout();
    if (x.dtype() != t) {
      lies = Layout::contiguous(x.size());
      x = ops::converted(x, t, lies, room);
    }
    if (!reduces_as_it_lies(lies, mask)) put_in_order(lies, t, room);
    if (out.dtype() == t) return;
    const size_t bytes = static_cast<size_t>(out.numel()) * itemsize(t);
    if (char* at = room.take<char>(static_cast<int64_t>(bytes)))
      out = from_blob(at, bytes, Layout::contiguous(out.size()), t, [](Storage* s) { delete s; });
  }
  /// A copy with the reduced axes last.
  void put_in_order(const Layout& lies, DType t, kernels::Room& room) {
    Dims order;
    int kept = 0;
    for (bool last : {false, true})
      for (int i = 0; i < lies.ndim(); ++i)
        if (static_cast<bool>(mask >> i & 1u) == last) order.push_back(i), kept += !last;
    const size_t bytes = static_cast<size_t>(lies.numel()) * itemsize(t);
    char* at = room.take<char>(static_cast<int64_t>(bytes));
    if (!at) return;  // it is only counted
    const Tensor rows = view_of(x, lies.permute(order));
    x = from_blob(at, bytes, Layout::contiguous(rows.size()), t, [](Storage* s) { delete s; });
    copy_(x, rows);
    mask = ((1u << lies.ndim()) - 1u) & ~((1u << kept) - 1u);
  }
  static size_t bytes(const Call& c) {
    kernels::Room room;
    const Reduced counted(c, room);
    return room.used();
  }
};

template <class R>
void reduce(const Call& c, double divide_by = 1) {
  kernels::Room room(c.workspace);
  const Reduced r(c, room);
  const Tensor &x = r.x, &out = r.out;
  const uint32_t mask = r.mask;
  const DType t = out.dtype();
  switch (t) {
    case DType::f32:
      reduce_typed<R, float>(x, out, mask);
      break;
    case DType::f64:
      reduce_typed<R, double>(x, out, mask);
      break;
    case DType::i32:
      reduce_typed<R, int32_t>(x, out, mask);
      break;
    default:
      reduce_typed<R, int64_t>(x, out, mask);
  }
  if (divide_by != 1 && t == DType::f64)
    for (int64_t i = 0; i < out.numel(); ++i) out.data<double>()[i] /= divide_by;
  if (divide_by != 1 && t == DType::f32)
    for (int64_t i = 0; i < out.numel(); ++i) out.data<float>()[i] /= static_cast<float>(divide_by);
  if (!out.same(c.out[0])) ops::write_output(c.out[0], out);
}

/// The gradient (or result) with the reduced axes put back as size 1.
Tensor with_axes(const Tensor& g, const ReduceAttrs& a, const Shape& like) {
  return a.keep ? g : reshape(g, reduced_shape(like, a.axes, true));
}

int64_t reduced_count(const Shape& x, const Dims& axes) {
  int64_t kept = reduced_shape(x, axes, false).product();
  return kept ? x.product() / kept : 0;
}

void write_axes(const ReduceAttrs& a, OnnxOp& o) {
  o.set("keepdims", int64_t{a.keep});
  if (a.axes.n) o.set("axes", a.axes);
}

void sample_axes(Samples& s) {
  s.add("all", ReduceAttrs{{}, false}, {s.values({3, 4})});
  s.add("rows", ReduceAttrs{{-1}, false}, {s.values({3, 4})});
  s.add("columns kept", ReduceAttrs{{0}, true}, {s.values({3, 4})});
  s.add("outer and inner", ReduceAttrs{{0, 2}, false}, {s.values({2, 3, 4})});
}

struct Sum {
  static constexpr OpInfo info{"sum", "ReduceSum", OpKind::reduce};
  using Attrs = ReduceAttrs;
  static Meta infer(const Attrs& a, const Meta& x) {
    Meta m = x;
    m.shape = reduced_shape(x.shape, a.axes, a.keep);
    if (!is_floating(x.dtype)) m.dtype = DType::i64;
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) { return Reduced::bytes(c); }
  static void cpu(const Call& c) { reduce<SumOf>(c); }
  static void backward(Grad& d) {
    d.in(0) = expand(with_axes(d.out(), d.as<Attrs>(), d.meta(0).shape), d.meta(0).shape);
  }
  static void onnx(const Attrs& a, OnnxOp& o) {
    o.set("keepdims", int64_t{a.keep});
    if (a.axes.n) o.add_input(a.axes);
  }
  static void samples(Samples& s) { sample_axes(s); }
};

struct Mean {
  static constexpr OpInfo info{"mean", "ReduceMean", OpKind::reduce};
  using Attrs = ReduceAttrs;
  static Meta infer(const Attrs& a, const Meta& x) {
    if (!is_floating(x.dtype)) throw Error(fmt::format("the mean of {} values", name(x.dtype)), "cast to f32 first");
    return Sum::infer(a, x);
  }
  static size_t workspace(const Attrs&, const Call& c) { return Reduced::bytes(c); }
  static void cpu(const Call& c) {
    reduce<SumOf>(c, static_cast<double>(reduced_count(c.in[0].size(), c.as<Attrs>().axes)));
  }
  static void backward(Grad& d) {
    const Attrs& a = d.as<Attrs>();
    double scale = 1.0 / static_cast<double>(reduced_count(d.meta(0).shape, a.axes));
    d.in(0) = expand(mul(with_axes(d.out(), a, d.meta(0).shape), scale), d.meta(0).shape);
  }
  static void onnx(const Attrs& a, OnnxOp& o) { write_axes(a, o); }
  static void samples(Samples& s) { sample_axes(s); }
};

struct Prod {
  static constexpr OpInfo info{"prod", "ReduceProd", OpKind::reduce};
  using Attrs = ReduceAttrs;
  static constexpr Saves saves{1, 0};
  static Meta infer(const Attrs& a, const Meta& x) { return Sum::infer(a, x); }
  static size_t workspace(const Attrs&, const Call& c) { return Reduced::bytes(c); }
  static void cpu(const Call& c) { reduce<ProductOf>(c); }
  // Each factor's gradient is the product of the others, made of running products from both ends: right where factors
  // are 0.
  static void backward(Grad& d) {
    const Attrs& a = d.as<Attrs>();
    Tensor x = d.x(0);
    const Shape like = x.size();
    uint32_t mask = axis_mask(a.axes, x.ndim());
    Dims order, inverse = Dims::filled(x.ndim(), 0);
    int64_t n = 1;
    for (bool last : {false, true})
      for (int i = 0; i < x.ndim(); ++i)
        if (static_cast<bool>(mask >> i & 1u) == last) {
          inverse[i] = order.n;
          order.push_back(i);
          if (last) n *= like[i];
        }
    Tensor rows = permute(x, order);
    Shape moved = rows.size();
    rows = reshape(rows, {n ? x.numel() / n : 0, n});
    Tensor one = ones({rows.size(0), 1}, x.dtype(), x.device());
    auto before = [&](const Tensor& t) { return n ? cumprod(cat({one, narrow(t, 1, 0, n - 1)}, 1), 1) : t; };
    Tensor others = mul(before(rows), flip(before(flip(rows, 1)), 1));
    d.in(0) = mul(permute(reshape(others, moved), inverse), with_axes(d.out(), a, like));
  }
  static void onnx(const Attrs& a, OnnxOp& o) { write_axes(a, o); }
  static void samples(Samples& s) {
    sample_axes(s);
    Tensor with_zeros = s.values({3, 4});
    with_zeros.data<double>()[1] = with_zeros.data<double>()[6] = with_zeros.data<double>()[7] = 0;
    s.add("with zeros", ReduceAttrs{{1}, false}, {with_zeros});
  }
};

// Equal extremes share the gradient, as in PyTorch's amax.
void extreme_backward(Grad& d) {
  const auto& a = d.as<ReduceAttrs>();
  const Shape& like = d.meta(0).shape;
  Tensor at = cast(eq(d.x(0), with_axes(d.y(), a, like)), d.out().dtype());
  d.in(0) = mul(div(at, sum(at, a.axes, true)), with_axes(d.out(), a, like));
}
Meta extreme_infer(const ReduceAttrs& a, const Meta& x) {
  Meta m = x;
  m.shape = reduced_shape(x.shape, a.axes, a.keep);
  if (x.shape.product() == 0 && m.shape.product() != 0)
    throw Error(fmt::format("no largest or smallest value in a tensor of size {}", to_string(x.shape)));
  return m;
}
struct Amax {
  static constexpr OpInfo info{"amax", "ReduceMax", OpKind::reduce};
  using Attrs = ReduceAttrs;
  static constexpr Saves saves{1, 1};
  static Meta infer(const Attrs& a, const Meta& x) { return extreme_infer(a, x); }
  static size_t workspace(const Attrs&, const Call& c) { return Reduced::bytes(c); }
  static void cpu(const Call& c) { reduce<MaxOf>(c); }
  static void backward(Grad& d) { extreme_backward(d); }
  static void onnx(const Attrs& a, OnnxOp& o) { write_axes(a, o); }
  static void samples(Samples& s) { sample_axes(s); }
};
struct Amin {
  static constexpr OpInfo info{"amin", "ReduceMin", OpKind::reduce};
  using Attrs = ReduceAttrs;
  static constexpr Saves saves{1, 1};
  static Meta infer(const Attrs& a, const Meta& x) { return extreme_infer(a, x); }
  static size_t workspace(const Attrs&, const Call& c) { return Reduced::bytes(c); }
  static void cpu(const Call& c) { reduce<MinOf>(c); }
  static void backward(Grad& d) { extreme_backward(d); }
  static void onnx(const Attrs& a, OnnxOp& o) { write_axes(a, o); }
  static void samples(Samples& s) { sample_axes(s); }
};

struct Argmax {
  static constexpr OpInfo info{"argmax", "ArgMax", OpKind::reduce};
  struct Attrs {
    int64_t axis;
    bool keep;
    template <class F>
    void fields(F&& f) const {
      f("axis", axis);
      f("keep", keep);
    }
  };
  static Meta infer(const Attrs& a, const Meta& x) {
    Meta m = extreme_infer({{a.axis}, a.keep}, x);
    m.dtype = DType::i64;
    return m;
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    Tensor x = c.in[0];
    int axis = wrap_axis(a.axis, x.ndim());
    int64_t n = x.ndim() ? x.size(axis) : 1, step = x.ndim() ? x.stride()[axis] : 1;
    Layout rows = x.ndim() ? x.layout().select(axis, 0) : x.layout();
    int64_t count = rows.numel();
    Tensor values = x.dtype() == DType::f32 || x.dtype() == DType::f64 ? x : Tensor();
    parallel_for(count, std::max<int64_t>(1, 32768 / std::max<int64_t>(n, 1)), [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r) {
        int64_t rest = r, at = rows.offset;
        for (int d = rows.ndim() - 1; d >= 0; --d) {
          at += rest % rows.size[d] * rows.stride[d];
          rest /= rows.size[d];
        }
        int64_t best = 0;
        auto scan = [&](auto&& value) {
          auto top = value(0);
          for (int64_t i = 1; i < n && top == top; ++i) {
            auto v = value(i);
            if (v > top || v != v) {
              top = v;
              best = i;
            }
          }
        };
        if (values && x.dtype() == DType::f32)
          scan([p = static_cast<const float*>(x.storage()->data) + at, step](int64_t i) { return p[i * step]; });
        else
          scan([&](int64_t i) { return storage_value(x, at + i * step); });
        c.out[0].data<int64_t>()[r] = best;
      }
    });
  }
  static void onnx(const Attrs& a, OnnxOp& o) {
    o.set("axis", a.axis);
    o.set("keepdims", int64_t{a.keep});
  }
  static void samples(Samples& s) { s.add("rows", Attrs{1, false}, {s.values({3, 4})}); }
};

const Register<Sum> sum_op;
const Register<Mean> mean_op;
const Register<Prod> prod_op;
const Register<Amax> amax_op;
const Register<Amin> amin_op;
const Register<Argmax> argmax_op;

}  // namespace

Tensor sum(const Tensor& x, const Dims& axes, bool keep) { return apply<Sum>({axes, keep}, x); }
Tensor mean(const Tensor& x, const Dims& axes, bool keep) { return apply<Mean>({axes, keep}, x); }
Tensor prod(const Tensor& x, const Dims& axes, bool keep) { return apply<Prod>({axes, keep}, x); }
Tensor& sum_out(Tensor& out, const Tensor& x, const Dims& axes, bool keep) {
  return apply_out<Sum>({axes, keep}, out, x);
}
Tensor& mean_out(Tensor& out, const Tensor& x, const Dims& axes, bool keep) {
  return apply_out<Mean>({axes, keep}, out, x);
}
Tensor amax(const Tensor& x, const Dims& axes, bool keep) { return apply<Amax>({axes, keep}, x); }
Tensor amin(const Tensor& x, const Dims& axes, bool keep) { return apply<Amin>({axes, keep}, x); }
Tensor argmax(const Tensor& x, int axis, bool keep) { return apply<Argmax>({axis, keep}, x); }

}  // namespace tenon
