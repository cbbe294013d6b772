#include "engine/ops/math_functions.h"

#include "engine/op/parametric.h"
#include "engine/op/pointwise.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/pointwise.h"

namespace tenon::sc {

// The same names for gradients made of public ops, and for the probe.
#define TENON_GRADIENT_FORM(NAME)                                              \
  inline Value NAME(const Value& x) { return Value(tenon::NAME(x.tensor())); } \
  constexpr Probe NAME(Probe x) { return -x; }
TENON_GRADIENT_FORM(sinh)
TENON_GRADIENT_FORM(cosh)
TENON_GRADIENT_FORM(floor)
TENON_GRADIENT_FORM(trunc)
TENON_GRADIENT_FORM(digamma)
#undef TENON_GRADIENT_FORM

}  // namespace tenon::sc

#include "engine/ops/math_formulas.h"  // behind what its gradients call

namespace tenon {

namespace {
const bool log1p_by_log = (
    Register<pointwise::Unary<log1p_formula>>::def().decompose =
        [](const void*, const std::vector<Tensor>& in) { return log(add(in[0], 1)); },
    true);
}  // namespace

namespace {

/// Not differentiable: the derivative is 0 almost everywhere.
struct FloorDivide {
  static constexpr const char* name = "floor_divide";
  static constexpr OpInfo info{"floor_divide", "", OpKind::pointwise};
  static constexpr pointwise::Types types = pointwise::Types::any;
  template <class T>
  static T forward(T a, T b) {
    return sc::floor_divide(a, b);
  }
  static Meta infer(const NoAttrs&, const Meta& a, const Meta& b) { return pointwise::infer_binary(a, b, types); }
  static void cpu(const Call& c) {
    pointwise::run_loops(c,
                         {pointwise::forward2<FloorDivide, float>, pointwise::forward2<FloorDivide, double>,
                          pointwise::forward2<FloorDivide, int32_t>, pointwise::forward2<FloorDivide, int64_t>},
                         types);
  }
  static void samples(Samples& s) {
    s.add("integers", NoAttrs{}, {s.values({7}, {-9, 9}, DType::i64), s.values({7}, {1, 5}, DType::i64)});
    s.add("numbers", NoAttrs{}, {s.values({7}, {1, 9}), s.values({7}, {1, 2})});
  }
};
const Register<FloorDivide> floor_divide_op;

struct Polygamma {
  static constexpr OpInfo info{"polygamma", "", OpKind::other};
  struct Attrs {
    int64_t n;
    template <class F>
    void fields(F&& f) const {
      f("n", n);
    }
  };
  static constexpr Saves saves{1, 0};
  static Meta infer(const Attrs& a, const Meta& x) {
    if (a.n < 0) throw Error("polygamma: n is below 0");
    return pointwise::infer_unary(x, pointwise::Types::floating);
  }
  static size_t workspace(const Attrs&, const Call& c) {
    kernels::Room room;
    ops::target(c, 0, DType::f64, room);
    return room.used();
  }
  static void cpu(const Call& c) {
    int64_t n = c.as<Attrs>().n;
    kernels::Room room(c.workspace);
    const Tensor y = ops::target(c, 0, DType::f64, room);
    copy_(y, c.in[0]);
    for (int64_t i = 0; i < y.numel(); ++i) y.data<double>()[i] = sc::polygamma(n, y.data<double>()[i]);
    ops::finished(c, 0, y);
  }
  static void backward(Grad& d) { d.in(0) = mul(d.out(), polygamma(d.as<Attrs>().n + 1, d.x(0))); }
  static void samples(Samples& s) {
    s.add("digamma", Attrs{0}, {s.values({3, 2}, {0.5, 4})});
    s.add("second", Attrs{2}, {s.values({3}, {0.5, 4})});
  }
};
const Register<Polygamma> polygamma_op;

}  // namespace

Tensor polygamma(int64_t n, const Tensor& x) { return apply<Polygamma>({n}, x); }
Tensor digamma(const Tensor& x) { return polygamma(0, x); }
Tensor floor_divide(const Tensor& a, const Tensor& b) { return apply<FloorDivide>({}, a, b); }
Tensor floor_divide(const Tensor& a, double b) { return floor_divide(a, scalar_like(b, a)); }
Tensor bitwise_not(const Tensor& x) { return x.dtype() == DType::boolean ? logical_not(x) : sub(neg(x), 1); }

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) { return add(a, mul(weight, sub(b, a))); }
Tensor lerp(const Tensor& a, const Tensor& b, double weight) { return add(a, mul(sub(b, a), weight)); }
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  Tensor p = mul(a, b);
  return add(x, value == 1 ? p : mul(p, value));
}
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  Tensor q = div(a, b);
  return add(x, value == 1 ? q : mul(q, value));
}

Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max) {
  Tensor y = x;
  if (min) y = where(lt(y, min), min, y);
  if (max) y = where(gt(y, max), max, y);
  return y;
}
namespace {
const bool straight_round_decomposes = [] {
  Register<pointwise::Parametric<straight_round_formula>>::def().decompose = [](const void* attrs,
                                                                                const std::vector<Tensor>& in) {
    const auto& p = *static_cast<const pointwise::ParametricAttrs*>(attrs);
    return minimum(maximum(round(in[0]), p.a), p.b);
  };
  return true;
}();
}  // namespace

Tensor fake_quantize(const Tensor& x, const Tensor& scale, double lo, double hi) {
  return mul(straight_round_with(div(x, scale), lo, hi), scale);
}

Tensor clamp(const Tensor& x, double min, double max) {
  return clamp(x, min == -INFINITY ? Tensor() : scalar_like(min, x), max == INFINITY ? Tensor() : scalar_like(max, x));
}

}  // namespace tenon
