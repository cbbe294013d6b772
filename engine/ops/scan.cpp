#include "engine/ops/scan.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <type_traits>

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
#include "engine/ops/join.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

using namespace ops;

struct ScanAttrs {
  int64_t axis;
  template <class F>
  void fields(F&& f) const {
    f("axis", axis);
  }
};

Meta infer_scan(const ScanAttrs& a, const Meta& x) {
  if (a.axis < 0 || a.axis >= x.shape.n)
    throw Error(fmt::format("axis {} is out of range for size {}", a.axis, to_string(x.shape)));
  return x;
}
Meta widen_integers(Meta m) {
  if (!is_floating(m.dtype)) m.dtype = DType::i64;
  return m;
}
void need_float(const Meta& m) {
  if (!is_floating(m.dtype))
    throw Error(fmt::format("it works on floating point, not on {}", name(m.dtype)), "cast() the tensor first");
}

/// f(first element of a column, step, n) for all columns of a dense tensor along an axis.
template <class F>
void columns(const Tensor& x, int64_t axis, const F& f) {
  int64_t inner = 1, outer = 1;
  const int a = static_cast<int>(axis);
  for (int i = 0; i < a; ++i) outer *= x.size(i);
  for (int i = a + 1; i < x.ndim(); ++i) inner *= x.size(i);
  const int64_t n = x.size(a);
  parallel_for(outer * inner, std::max<int64_t>(1, kLoopGrain / 4 / std::max<int64_t>(n, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t c = begin; c < end; ++c) f(c / inner * n * inner + c % inner, inner, n);
               });
}

/// What a kernel of the output's widened type reads and writes.
struct Scanned {
  DType type;
  Tensor a, b, y;  ///< b only where there is a second input
  Scanned(const Call& c, kernels::Room& room)
      : type(widened(c.out[0].dtype())),
        a(dense_as(c.in[0], type, room)),
        b(c.inputs > 1 ? dense_as(c.in[1], type, room) : Tensor()),
        y(target(c, 0, type, room)) {}
  static size_t bytes(const Call& c) {
    kernels::Room room;
    Scanned(c, room);
    return room.used();
  }
};

/// Runs the kernel for the element type T of the output, on the input converted to it.
template <class F>
void on_values(const Call& c, const F& f) {
  kernels::Room room(c.workspace);
  const Scanned s(c, room);
  by_arithmetic(s.type, [&](auto unit) {
    using T = decltype(unit);
    f(s.a.data<T>(), s.y.data<T>(), s.y);
  });
  finished(c, 0, s.y);
}

Tensor reversed_sum(const Tensor& g, int axis) { return flip(cumsum(flip(g, axis), axis), axis); }

void sample_scan(Samples& s) {
  s.add("rows", ScanAttrs{1}, {s.values({3, 4}, in(0.5, 1.5))});
  s.add("columns", ScanAttrs{0}, {s.values({3, 2, 2}, apart_from_zero(-1, 1, 0.3))});
}

struct CumSum {
  static constexpr OpInfo info{"cumsum", "CumSum", OpKind::other};
  using Attrs = ScanAttrs;
  static Meta infer(const Attrs& a, const Meta& x) { return widen_integers(infer_scan(a, x)); }
  static size_t workspace(const Attrs&, const Call& c) { return Scanned::bytes(c); }
  static void cpu(const Call& c) {
    on_values(c, [&](auto* x, auto* y, const Tensor& t) {
      using T = std::decay_t<decltype(*y)>;
      using Acc = std::conditional_t<std::is_floating_point_v<T>, double, T>;
      columns(t, c.as<Attrs>().axis, [=](int64_t at, int64_t step, int64_t n) {
        Acc sum = 0;
        for (int64_t i = 0; i < n; ++i) y[at + i * step] = static_cast<T>(sum += static_cast<Acc>(x[at + i * step]));
      });
    });
  }
  static void backward(Grad& d) { d.in(0) = reversed_sum(d.out(), static_cast<int>(d.as<Attrs>().axis)); }
  static void onnx(const Attrs& a, OnnxOp& o) { o.constants.push_back({{a.axis}, true}); }
  static void samples(Samples& s) { sample_scan(s); }
};

struct CumProd {
  static constexpr OpInfo info{"cumprod", "", OpKind::other};
  using Attrs = ScanAttrs;
  static Meta infer(const Attrs& a, const Meta& x) { return widen_integers(infer_scan(a, x)); }
  static size_t workspace(const Attrs&, const Call& c) { return Scanned::bytes(c); }
  static void cpu(const Call& c) {
    on_values(c, [&](auto* x, auto* y, const Tensor& t) {
      using T = std::decay_t<decltype(*y)>;
      using Acc = std::conditional_t<std::is_floating_point_v<T>, double, T>;
      columns(t, c.as<Attrs>().axis, [=](int64_t at, int64_t step, int64_t n) {
        Acc product = 1;
        for (int64_t i = 0; i < n; ++i)
          y[at + i * step] = static_cast<T>(product = static_cast<Acc>(product * static_cast<Acc>(x[at + i * step])));
      });
    });
  }
  static constexpr Saves saves{.inputs = 0b1, .outputs = 0b1};
  // dy[j]/dx[i] = y[j] / x[i] for j >= i. Where an element is 0 that is 0/0, and the product of the others is formed
  // instead, element by element.
  static void backward(Grad& d) {
    const int axis = static_cast<int>(d.as<Attrs>().axis);
    const Tensor x = d.x(0), g = d.out();
    const bool zero = !x.is_meta() && x.numel() > 0 && item(sum(cast(eq(x, 0), DType::i64))) > 0;
    if (!zero) {
      d.in(0) = div(reversed_sum(mul(g, d.y()), axis), x);
      return;
    }
    std::vector<Tensor> parts;
    const int64_t n = x.size(axis);
    for (int64_t i = 0; i < n; ++i) {
      Tensor later =
          cat({expand(scalar_like(1, x), narrow(x, axis, 0, 1).size()), narrow(x, axis, i + 1, n - i - 1)}, axis);
      Tensor sum_of = sum(mul(narrow(g, axis, i, n - i), cumprod(later, axis)), {axis}, true);
      parts.push_back(i ? mul(sum_of, narrow(cumprod(narrow(x, axis, 0, i), axis), axis, i - 1, 1)) : sum_of);
    }
    d.in(0) = cat(parts, axis);
  }
  static void samples(Samples& s) {
    sample_scan(s);
    Tensor zeros = s.values({2, 4}, in(0.5, 1.5));
    zeros.data<double>()[1] = zeros.data<double>()[4] = zeros.data<double>()[6] = 0;
    s.add("with zeros", ScanAttrs{1}, {zeros});
  }
};

struct Recurrence {
  static constexpr OpInfo info{"linear_recurrence", "", OpKind::other};
  using Attrs = ScanAttrs;
  static Meta infer(const Attrs& at, const Meta& a, const Meta& b) {
    need_float(a);
    if (!(a.shape == b.shape) || a.dtype != b.dtype)
      throw Error(fmt::format("{} of size {} and {} of size {} must be alike", name(a.dtype), to_string(a.shape),
                              name(b.dtype), to_string(b.shape)));
    return infer_scan(at, b);
  }
  static size_t workspace(const Attrs&, const Call& c) { return Scanned::bytes(c); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const Scanned s(c, room);
    float_or_double(s.type, [&](auto unit) {
      using T = decltype(unit);
      const T *pa = s.a.data<T>(), *pb = s.b.data<T>();
      T* to = s.y.data<T>();
      columns(s.y, c.as<Attrs>().axis, [=](int64_t at, int64_t step, int64_t n) {
        T last = 0;
        for (int64_t i = at; i < at + n * step; i += step) to[i] = last = pa[i] * last + pb[i];
      });
    });
    finished(c, 0, s.y);
  }
  static constexpr Saves saves{.inputs = 0b01, .outputs = 0b1};
  // The same recurrence backwards: gb[t] = g[t] + a[t + 1] gb[t + 1], ga[t] = gb[t] y[t - 1].
  static void backward(Grad& d) {
    const int axis = static_cast<int>(d.as<Attrs>().axis);
    const Tensor a = d.x(0), y = d.y(), g = d.out();
    const int64_t n = a.size(axis);
    if (n == 0) {
      for (int i = 0; i < 2; ++i) d.in(i) = mul(g, 0.0);
      return;
    }
    const Tensor none = mul(narrow(g, axis, 0, 1), 0.0);
    const Tensor gb =
        flip(linear_recurrence(flip(cat({narrow(a, axis, 1, n - 1), none}, axis), axis), flip(g, axis), axis), axis);
    if (d.needs(1)) d.in(1) = gb;
    if (d.needs(0)) d.in(0) = mul(gb, cat({none, narrow(y, axis, 0, n - 1)}, axis));
  }
  static void samples(Samples& s) {
    s.add("rows", Attrs{1}, {s.values({3, 4}), s.values({3, 4})});
    s.add("columns", Attrs{0}, {s.values({4, 3}), s.values({4, 3})});
  }
};

struct LogCumSumExp {
  static constexpr OpInfo info{"logcumsumexp", "", OpKind::other};
  using Attrs = ScanAttrs;
  static Meta infer(const Attrs& a, const Meta& x) {
    need_float(x);
    return infer_scan(a, x);
  }
  static size_t workspace(const Attrs&, const Call& c) { return Scanned::bytes(c); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const Scanned s(c, room);
    float_or_double(s.type, [&](auto unit) {
      using T = decltype(unit);
      const T* from = s.a.data<T>();
      T* to = s.y.data<T>();
      columns(s.y, c.as<Attrs>().axis, [=](int64_t at, int64_t step, int64_t n) {
        double last = -INFINITY;
        for (int64_t i = at; i < at + n * step; i += step) {
          const double v = static_cast<double>(from[i]), hi = v > last || v != v ? v : last,
                       lo = v > last || v != v ? last : v;
          last = lo == -INFINITY || hi == INFINITY ? hi : hi + std::log1p(std::exp(lo - hi));
          to[i] = static_cast<T>(last);
        }
      });
    });
    finished(c, 0, s.y);
  }
  static constexpr Saves saves{.inputs = 0b1, .outputs = 0b1};
  // sum_{j >= i} g[j] exp(x[i] - y[j]) as exp(x[i] - y[i]) s[i] with s[i] = g[i] + exp(y[i] - y[i + 1]) s[i + 1]: y
  // ascends, so no factor is above 1.
  static void backward(Grad& d) {
    const int axis = static_cast<int>(d.as<Attrs>().axis);
    const Tensor y = d.y(), g = d.out();
    const int64_t n = y.size(axis);
    if (n == 0) {
      d.in(0) = g;
      return;
    }
    const Tensor down =
        cat({exp(sub(narrow(y, axis, 0, n - 1), narrow(y, axis, 1, n - 1))), mul(narrow(g, axis, 0, 1), 0.0)}, axis);
    // The coefficient of s[i + 1] stands at i; walking backwards it stands one later.
    const Tensor s = flip(linear_recurrence(flip(down, axis), flip(g, axis), axis), axis);
    d.in(0) = mul(s, exp(sub(d.x(0), y)));
  }
  static void samples(Samples& s) { sample_scan(s); }
};

template <bool Max>
struct Extreme {
  static constexpr OpInfo info{Max ? "cummax" : "cummin", "", OpKind::index, 2};
  using Attrs = ScanAttrs;
  static void infer(const Attrs& a, const Tensor* in, int, Meta* out) {
    out[0] = out[1] = infer_scan(a, in[0].meta());
    out[1].dtype = DType::i64;
  }
  static size_t workspace(const Attrs&, const Call& c) { return Scanned::bytes(c); }
  static void cpu(const Call& c) {
    int64_t* at_out = c.out[1].data<int64_t>();
    on_values(c, [&](auto* x, auto* y, const Tensor& t) {
      columns(t, c.as<Attrs>().axis, [=](int64_t at, int64_t step, int64_t n) {
        int64_t best = 0;
        for (int64_t i = 0; i < n; ++i) {
          const auto v = x[at + i * step], b = x[at + best * step];
          if (v != v || (b == b && (Max ? v >= b : v <= b))) best = i;
          y[at + i * step] = x[at + best * step];
          at_out[at + i * step] = best;
        }
      });
    });
  }
  static constexpr Saves saves{.inputs = 0, .outputs = 0b10};
  static void backward(Grad& d) {
    if (d.out())
      d.in(0) = scatter_add(zeros(d.meta(0).shape, d.out().dtype(), d.out().device()),
                            static_cast<int>(d.as<Attrs>().axis), d.y(1), d.out());
  }
  static void samples(Samples& s) { sample_scan(s); }
};

const Register<CumSum> cumsum_op;
const Register<CumProd> cumprod_op;
const Register<Recurrence> recurrence_op;
const Register<LogCumSumExp> logcumsumexp_op;
const Register<Extreme<true>> cummax_op;
const Register<Extreme<false>> cummin_op;

template <class Op>
Tensor along(const Tensor& x, int axis) {
  if (x.ndim() == 0) return reshape(along<Op>(reshape(x, {1}), axis), {});
  return apply<Op>({wrap_axis(axis, x.ndim())}, x);
}
template <bool Max>
Running running(const Tensor& x, int axis) {
  Tensor in = x.ndim() ? x : reshape(x, {1}), out[2];
  apply_many<Extreme<Max>>({wrap_axis(axis, in.ndim())}, &in, 1, out);
  return {reshape(out[0], x.size()), reshape(out[1], x.size())};
}

}  // namespace

Tensor cumsum(const Tensor& x, int axis) { return along<CumSum>(x, axis); }
Tensor cumprod(const Tensor& x, int axis) { return along<CumProd>(x, axis); }
Tensor logcumsumexp(const Tensor& x, int axis) { return along<LogCumSumExp>(x, axis); }
Tensor linear_recurrence(const Tensor& a, const Tensor& b, int axis) {
  return apply<Recurrence>({wrap_axis(axis, b.ndim())}, a, b);
}
Running cummax(const Tensor& x, int axis) { return running<true>(x, axis); }
Running cummin(const Tensor& x, int axis) { return running<false>(x, axis); }

Tensor diff(const Tensor& x, int64_t times, int axis) {
  if (x.ndim() == 0) throw Error("diff: a tensor without axes has no neighbours");
  if (times < 0) throw Error(fmt::format("diff: {} times", times));
  const int a = wrap_axis(axis, x.ndim());
  Tensor y = x;
  for (; times > 0 && y.size(a) > 0; --times) {
    const Tensor later = narrow(y, a, 1, y.size(a) - 1), earlier = narrow(y, a, 0, y.size(a) - 1);
    y = y.dtype() == DType::boolean ? ne(later, earlier) : sub(later, earlier);
  }
  return y;
}

}  // namespace tenon
