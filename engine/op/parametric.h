#pragma once
#include "engine/op/pointwise.h"
#include "engine/ops/onnx_op.h"

// Note [A pointwise op with parameters]
// OP_PARAMETRIC(name, ONNX(a, b, o), A, B, forward(x, a, b), gradient(g, x, a, b), (domain, a, b)) is OP_UNARY with two
// numbers a and b. They reach the loops as operands without axes, so that one loop serves every value. The gradient's
// text is the fused kernel (T = float) and the composite of public ops (T = Value), as in Note [A pointwise op is one
// line]; it reads g, x, a and b.

namespace tenon::pointwise {

struct ParametricAttrs {
  double a, b;
  template <class F>
  void fields(F&& f) const {
    f("a", a);
    f("b", b);
  }
};

template <class Op, class T>
void parametric_forward(char* const* d, const int64_t* s, int64_t n) {
  const T a = *reinterpret_cast<const T*>(d[2]), b = *reinterpret_cast<const T*>(d[3]);
  loop_with<T, T>(
      d, s, n, [=](T x) -> T { return Op::template forward<T>(x, a, b); }, std::make_index_sequence<1>{});
}
template <class Op, class T>
void parametric_backward(char* const* d, const int64_t* s, int64_t n) {
  const T a = *reinterpret_cast<const T*>(d[3]), b = *reinterpret_cast<const T*>(d[4]);
  loop_with<T, T>(
      d, s, n, [=](T g, T x) -> T { return Op::template gradient<T>(g, x, a, b); }, std::make_index_sequence<2>{});
}
/// Runs a loop over the op's inputs and its two numbers.
void run_parametric(const Call& c, const ParametricAttrs& p, InnerLoop f32, InnerLoop f64);

template <class Op>
struct ParametricFused {
  static constexpr OpInfo info{Op::backward_name, "", OpKind::pointwise};
  using Attrs = ParametricAttrs;
  static Meta infer(const Attrs&, const Meta& g, const Meta&) { return g; }
  static void cpu(const Call& c) {
    run_parametric(c, c.as<Attrs>(), parametric_backward<Op, float>, parametric_backward<Op, double>);
  }
};

template <class Op>
struct Parametric {
  static constexpr OpInfo info{Op::name, Op::onnx_name, OpKind::pointwise};
  using Attrs = ParametricAttrs;
  static constexpr Saves saves{1, 0};
  static Meta infer(const Attrs&, const Meta& x) { return infer_unary(x, Types::floating); }
  static void cpu(const Call& c) {
    run_parametric(c, c.as<Attrs>(), parametric_forward<Op, float>, parametric_forward<Op, double>);
  }
  static void backward(Grad& d) {
    const auto& p = d.as<Attrs>();
    if (!grad_enabled()) {
      d.in(0) = apply<ParametricFused<Op>>(p, d.out(), d.x(0));
      return;
    }
    d.in(0) = Op::template gradient<Value>(Value(d.out()), Value(d.x(0)), Value(p.a), Value(p.b)).tensor_like(d.out());
  }
  static void onnx(const Attrs& p, OnnxOp& o) { Op::onnx(static_cast<float>(p.a), static_cast<float>(p.b), o); }
  static void samples(Samples& s) {
    auto [domain, a, b] = Op::sample();
    s.add("matrix", Attrs{a, b}, {s.values({3, 5}, domain)});
    s.add("one", Attrs{a, b}, {s.values({}, domain)});
    s.add("empty", Attrs{a, b}, {s.values({0, 3}, domain)});
  }
};

template <class Formula>
bool decompose_parametric_by_formula() {
  Register<Parametric<Formula>>::def().decompose = [](const void* attrs, const std::vector<Tensor>& in) {
    const auto& p = *static_cast<const ParametricAttrs*>(attrs);
    return Formula::template forward<Value>(Value(in[0]), Value(p.a), Value(p.b)).tensor_like(in[0]);
  };
  return true;
}

struct ParametricSample {
  Domain domain;
  double a, b;
};

}  // namespace tenon::pointwise

/// As OP_BY_FORMULA.
#define OP_PARAMETRIC_BY_FORMULA(NAME)                                                         \
  namespace {                                                                                  \
  const bool NAME##_by_formula = pointwise::decompose_parametric_by_formula<NAME##_formula>(); \
  }

#define OP_PARAMETRIC(NAME, ONNX, FORWARD, GRADIENT, DOMAIN, A, B, EXPORT)                            \
  namespace {                                                                                         \
  struct NAME##_formula {                                                                             \
    static constexpr const char *name = #NAME, *onnx_name = ONNX, *backward_name = #NAME "_backward"; \
    template <class T>                                                                                \
    static T forward([[maybe_unused]] T x, [[maybe_unused]] T a, [[maybe_unused]] T b) {              \
      return FORWARD;                                                                                 \
    }                                                                                                 \
    template <class T>                                                                                \
    static T gradient(T g, [[maybe_unused]] T x, [[maybe_unused]] T a, [[maybe_unused]] T b) {        \
      return GRADIENT;                                                                                \
    }                                                                                                 \
    static pointwise::ParametricSample sample() { return {DOMAIN, A, B}; }                            \
    static void onnx([[maybe_unused]] float a, [[maybe_unused]] float b, OnnxOp& o) { EXPORT; }       \
  };                                                                                                  \
  const Register<pointwise::Parametric<NAME##_formula>> NAME##_op;                                    \
  const Register<pointwise::ParametricFused<NAME##_formula>> NAME##_backward_op;                      \
  Tensor NAME##_with(const Tensor& x, double a, double b) {                                           \
    return apply<pointwise::Parametric<NAME##_formula>>({a, b}, x);                                   \
  }                                                                                                   \
  }
