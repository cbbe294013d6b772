#pragma once
#include "core/vectors.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/result_type.h"
#include "engine/op/samples.h"
#include "engine/op/scalar.h"
#include "engine/op/strided_loop.h"
#include "engine/op/value.h"
#include "engine/ops/view.h"

// Note [A pointwise op is one line]
// OP_UNARY(name, ONNX, forward(x), gradient(g, x, y), domain) and OP_BINARY(name, ONNX, forward(a, b), ga(g, a, b, y),
// gb(g, a, b, y), domain) hold the whole definition. The forward text is instantiated per compute type as dense and
// strided loops; f16 and bf16 pass through f32, small integers through i32. The gradient's text is used three ways: T =
// float is the fused kernel "<name>_backward", T = Value the composite of public ops (double backward, tracing), T =
// Probe says what it reads, hence what is saved.

namespace tenon {

DType result_type(const Meta& a, const Meta& b);

namespace pointwise {

enum class Types : uint8_t { any, floating, compare };  ///< floating: integers become f32; compare: the result is bool

template <class Out, class T, class F, size_t... I>
[[gnu::always_inline]] inline void loop_with(char* const* data, const int64_t* st, int64_t n, F f,
                                             std::index_sequence<I...>) {
  constexpr auto w = static_cast<int64_t>(sizeof(T));
  Out* out = reinterpret_cast<Out*>(data[0]);
  if (st[0] == static_cast<int64_t>(sizeof(Out)) && ((st[I + 1] == w) && ...)) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(reinterpret_cast<const T*>(data[I + 1])[i]...);
    return;
  }
  if constexpr (sizeof...(I) == 2) {  // one side a scalar or a broadcast axis: worth a dense loop of its own
    const T* a = reinterpret_cast<const T*>(data[1]);
    const T* b = reinterpret_cast<const T*>(data[2]);
    if (st[0] == static_cast<int64_t>(sizeof(Out)) && st[1] == w && st[2] == 0) {
      const T s = *b;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], s);
      return;
    }
    if (st[0] == static_cast<int64_t>(sizeof(Out)) && st[1] == 0 && st[2] == w) {
      const T s = *a;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(s, b[i]);
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<Out*>(data[0] + i * st[0]) = f(*reinterpret_cast<const T*>(data[I + 1] + i * st[I + 1])...);
}

/// Formulas of one operand that are of floating-point numbers alone are long ones: see Note [Wide vectors].
template <class Op, class T>
constexpr bool is_long = std::is_same_v<T, float>&& Op::types == Types::floating;

template <class Op, class T>
void forward1(char* const* d, const int64_t* s, int64_t n) {
  const auto loop = [&]() __attribute__((always_inline)) {
    loop_with<T, T>(
        d, s, n, [](T x) -> T { return Op::template forward<T>(x); }, std::make_index_sequence<1>{});
  };
  if constexpr (is_long<Op, T>)
    in_vectors(n, loop);
  else
    loop();
}
template <class Op, class T>
void forward2(char* const* d, const int64_t* s, int64_t n) {
  if constexpr (Op::types == Types::compare) {
    loop_with<bool, T>(
        d, s, n, [](T a, T b) -> bool { return Op::template forward<T>(a, b); }, std::make_index_sequence<2>{});
  } else {
    loop_with<T, T>(
        d, s, n, [](T a, T b) -> T { return Op::template forward<T>(a, b); }, std::make_index_sequence<2>{});
  }
}
// Gradient loops take g, x, y (unary) or g, a, b, y (binary); operands that a formula does not read repeat g's address.
template <class Op, class T>
void backward1(char* const* d, const int64_t* s, int64_t n) {
  const auto loop = [&]() __attribute__((always_inline)) {
    loop_with<T, T>(
        d, s, n, [](T g, T x, T y) -> T { return Op::template gradient<T>(g, x, y); }, std::make_index_sequence<3>{});
  };
  if constexpr (is_long<Op, T>)
    in_vectors(n, loop);
  else
    loop();
}
template <class Op, int Side, class T>
void backward2(char* const* d, const int64_t* s, int64_t n) {
  loop_with<T, T>(
      d, s, n,
      [](T g, T a, T b, T y) -> T {
        if constexpr (Side == 0)
          return Op::template gradient_a<T>(g, a, b, y);
        else
          return Op::template gradient_b<T>(g, a, b, y);
      },
      std::make_index_sequence<4>{});
}

/// Loops by compute type; null where the op has none.
struct Loops {
  InnerLoop f32 = nullptr, f64 = nullptr, i32 = nullptr, i64 = nullptr;
};
void run_loops(const Call& c, const Loops& loops, Types types);
void run_gradient(const Call& c, const Loops& loops);
Meta infer_unary(const Meta& x, Types types);
Meta infer_binary(const Meta& a, const Meta& b, Types types);
void sample_unary(Samples& s, const Domain& d, Types types);
void sample_binary(Samples& s, const Domain& d, Types types);
/// Runs a fused gradient op; operands not read stay undefined.
Tensor fused(OpDef& def, const Tensor& g, const Tensor* operands, int count, const Meta& like);

struct NoInfer {};

/// The fused gradient as an op of its own, so that timeline and recorder see it. It is never itself differentiated:
/// with create_graph the composite runs instead.
template <class Op, int Side>
struct Fused {
  static constexpr OpInfo info{Op::backward_names[Side], "", OpKind::pointwise};
  static void infer(const NoAttrs&, const Tensor* in, int n, Meta* out) {
    out[0] = in[0].meta();
    for (int i = 1; i < n; ++i)
      if (in[i]) out[0].shape = broadcast_shape(out[0].shape, in[i].size());
  }
  static void cpu(const Call& c) {
    if constexpr (Op::arity == 1)
      run_gradient(c, {backward1<Op, float>, backward1<Op, double>});
    else
      run_gradient(c, {backward2<Op, Side, float>, backward2<Op, Side, double>});
  }
};

constexpr unsigned kG = 1, kX = 2, kB = 4, kY = 8;

template <class Op>
struct Unary {
  static constexpr OpInfo info{Op::name, Op::onnx_name, OpKind::pointwise};
  static constexpr sc::Probe reads =
      Op::template gradient<sc::Probe>(sc::Probe(kG, true), sc::Probe(kX, false), sc::Probe(kY, false));
  static constexpr Saves saves{(reads.mask & kX) ? 1u : 0u, (reads.mask & kY) ? 1u : 0u};
  static constexpr InnerLoop quick = forward1<Op, float>;
  static Meta infer(const NoAttrs&, const Meta& x) { return infer_unary(x, Op::types); }
  static void cpu(const Call& c) {
    if constexpr (Op::types == Types::floating)
      run_loops(c, {forward1<Op, float>, forward1<Op, double>}, Op::types);
    else
      run_loops(c, {forward1<Op, float>, forward1<Op, double>, forward1<Op, int32_t>, forward1<Op, int64_t>},
                Op::types);
  }
  static void backward(Grad& d) {
    if (reads.just_g) {
      d.in(0) = d.out();
      return;
    }
    Tensor x = (reads.mask & kX) ? d.x(0) : Tensor(), y = (reads.mask & kY) ? d.y() : Tensor();
    if (grad_enabled()) {
      d.in(0) = Op::template gradient<Value>(Value(d.out()), Value(x), Value(y)).tensor_like(d.out());
      return;
    }
    const Tensor operands[] = {x, y};
    d.in(0) = fused(Register<Fused<Op, 0>>::def(), d.out(), operands, 2, d.meta(0));
  }
  static void samples(Samples& s) { sample_unary(s, Op::domain(), Op::types); }
};

template <class Op>
struct Binary {
  static constexpr OpInfo info{Op::name, Op::onnx_name, OpKind::pointwise};
  template <int Side>
  static constexpr sc::Probe reads() {
    sc::Probe g(kG, true), a(kX, false), b(kB, false), y(kY, false);
    if constexpr (Side == 0)
      return Op::template gradient_a<sc::Probe>(g, a, b, y);
    else
      return Op::template gradient_b<sc::Probe>(g, a, b, y);
  }
  static constexpr unsigned all = reads<0>().mask | reads<1>().mask;
  static constexpr Saves saves{((all & kX) ? 1u : 0u) | ((all & kB) ? 2u : 0u), (all & kY) ? 1u : 0u};
  static constexpr InnerLoop quick = forward2<Op, float>;
  static Meta infer(const NoAttrs&, const Meta& a, const Meta& b) { return infer_binary(a, b, Op::types); }
  static void cpu(const Call& c) {
    if constexpr (Op::types == Types::floating)
      run_loops(c, {forward2<Op, float>, forward2<Op, double>}, Op::types);
    else
      run_loops(c, {forward2<Op, float>, forward2<Op, double>, forward2<Op, int32_t>, forward2<Op, int64_t>},
                Op::types);
  }
  template <int Side>
  static void side(Grad& d) {
    constexpr sc::Probe r = reads<Side>();
    if (!d.needs(Side)) return;
    if constexpr (r.just_g) {
      d.in(Side) = d.out();
      return;
    }
    Tensor a = (r.mask & kX) ? d.x(0) : Tensor(), b = (r.mask & kB) ? d.x(1) : Tensor(),
           y = (r.mask & kY) ? d.y() : Tensor();
    if (grad_enabled()) {
      Value g(d.out()), va(a), vb(b), vy(y);
      Value v =
          Side == 0 ? Op::template gradient_a<Value>(g, va, vb, vy) : Op::template gradient_b<Value>(g, va, vb, vy);
      d.in(Side) = v.tensor_like(d.out());
      return;
    }
    const Tensor operands[] = {a, b, y};
    d.in(Side) = fused(Register<Fused<Op, Side>>::def(), d.out(), operands, 3, d.meta(Side));
  }
  static void backward(Grad& d) {
    side<0>(d);
    side<1>(d);
  }
  static void samples(Samples& s) { sample_binary(s, Op::domain(), Op::types); }
};
/// Readers of graphs that have no operator of the op's meaning are given its formula, over public ops.
template <class Formula>
bool decompose_by_formula() {
  Register<Unary<Formula>>::def().decompose = [](const void*, const std::vector<Tensor>& in) {
    return Formula::template forward<Value>(Value(in[0])).tensor_like(in[0]);
  };
  return true;
}
/// A comparison has no gradient.
template <class Op>
struct Compare {
  static constexpr OpInfo info{Op::name, Op::onnx_name, OpKind::pointwise};
  static Meta infer(const NoAttrs&, const Meta& a, const Meta& b) { return infer_binary(a, b, Op::types); }
  static void cpu(const Call& c) {
    run_loops(c, {forward2<Op, float>, forward2<Op, double>, forward2<Op, int32_t>, forward2<Op, int64_t>}, Op::types);
  }
  static void samples(Samples& s) { sample_binary(s, Op::domain(), Op::types); }
};

}  // namespace pointwise
}  // namespace tenon

/// A question about each element, answered with bool.
namespace tenon::pointwise {
template <class Op>
struct Test {
  static constexpr OpInfo info{Op::name, Op::onnx_name, OpKind::pointwise};
  template <class T>
  static void loop(char* const* d, const int64_t* s, int64_t n) {
    loop_with<bool, T>(
        d, s, n, [](T x) -> bool { return Op::template forward<T>(x); }, std::make_index_sequence<1>{});
  }
  static Meta infer(const NoAttrs&, const Meta& x) {
    Meta m = x;
    m.dtype = DType::boolean;
    return m;
  }
  static void cpu(const Call& c) {
    run_loops(c, {loop<float>, loop<double>, loop<int32_t>, loop<int64_t>}, Types::compare);
  }
  static void samples(Samples& s) { sample_unary(s, in(-2, 2), Types::any); }
};
/// Integers and bool alone.
template <class Op>
struct Bits {
  static constexpr OpInfo info{Op::name, Op::onnx_name, OpKind::pointwise};
  static Meta infer(const NoAttrs&, const Meta& a, const Meta& b);
  static void cpu(const Call& c) {
    run_loops(c, {nullptr, nullptr, forward2<Op, int32_t>, forward2<Op, int64_t>}, Types::any);
  }
  static void samples(Samples& s) {
    s.add("integers", NoAttrs{}, {s.values({7}, {1, 9}, DType::i64), s.values({7}, {1, 5}, DType::i64)});
  }
};
Meta infer_bits(const Meta& a, const Meta& b);
template <class Op>
Meta Bits<Op>::infer(const NoAttrs&, const Meta& a, const Meta& b) {
  return infer_bits(a, b);
}
}  // namespace tenon::pointwise

#define TENON_UNARY(NAME, ONNX, TYPES, FORWARD, GRADIENT, DOMAIN)                                          \
  namespace {                                                                                              \
  struct NAME##_formula {                                                                                  \
    static constexpr int arity = 1;                                                                        \
    static constexpr pointwise::Types types = pointwise::Types::TYPES;                                     \
    static constexpr const char *name = #NAME, *onnx_name = ONNX, *backward_names[] = {#NAME "_backward"}; \
    template <class T>                                                                                     \
    static constexpr T forward([[maybe_unused]] T x) {                                                     \
      return FORWARD;                                                                                      \
    }                                                                                                      \
    template <class T>                                                                                     \
    static constexpr T gradient([[maybe_unused]] T g, [[maybe_unused]] T x, [[maybe_unused]] T y) {        \
      return GRADIENT;                                                                                     \
    }                                                                                                      \
    static Domain domain() { return DOMAIN; }                                                              \
  };                                                                                                       \
  const Register<pointwise::Unary<NAME##_formula>> NAME##_op;                                              \
  const Register<pointwise::Fused<NAME##_formula, 0>> NAME##_backward_op;                                  \
  }                                                                                                        \
  Tensor NAME(const Tensor& x) { return apply<pointwise::Unary<NAME##_formula>>({}, x); }                  \
  Tensor& NAME##_(Tensor& x) { return apply_in_place<pointwise::Unary<NAME##_formula>>({}, x); }           \
  Tensor& NAME##_out(Tensor& out, const Tensor& x) { return apply_out<pointwise::Unary<NAME##_formula>>({}, out, x); }

/// Behind an op that ONNX does not have: its formula says it by those that ONNX has.
#define OP_BY_FORMULA(NAME)                                                         \
  namespace {                                                                       \
  const bool NAME##_by_formula = pointwise::decompose_by_formula<NAME##_formula>(); \
  }

/// floating-point results only; integers become f32
#define OP_UNARY(NAME, ONNX, FORWARD, GRADIENT, DOMAIN) TENON_UNARY(NAME, ONNX, floating, FORWARD, GRADIENT, DOMAIN)
/// every dtype keeps its own
#define OP_UNARY_ANY(NAME, ONNX, FORWARD, GRADIENT, DOMAIN) TENON_UNARY(NAME, ONNX, any, FORWARD, GRADIENT, DOMAIN)

#define TENON_BINARY(NAME, ONNX, TYPES, FORWARD, GRADIENT_A, GRADIENT_B, DOMAIN)                                      \
  namespace {                                                                                                         \
  struct NAME##_formula {                                                                                             \
    static constexpr int arity = 2;                                                                                   \
    static constexpr pointwise::Types types = pointwise::Types::TYPES;                                                \
    static constexpr const char *name = #NAME, *onnx_name = ONNX,                                                     \
                                *backward_names[] = {#NAME "_backward_a", #NAME "_backward_b"};                       \
    template <class T>                                                                                                \
    static constexpr auto forward([[maybe_unused]] T a, [[maybe_unused]] T b) {                                       \
      return FORWARD;                                                                                                 \
    }                                                                                                                 \
    template <class T>                                                                                                \
    static constexpr T gradient_a([[maybe_unused]] T g, [[maybe_unused]] T a, [[maybe_unused]] T b,                   \
                                  [[maybe_unused]] T y) {                                                             \
      return GRADIENT_A;                                                                                              \
    }                                                                                                                 \
    template <class T>                                                                                                \
    static constexpr T gradient_b([[maybe_unused]] T g, [[maybe_unused]] T a, [[maybe_unused]] T b,                   \
                                  [[maybe_unused]] T y) {                                                             \
      return GRADIENT_B;                                                                                              \
    }                                                                                                                 \
    static Domain domain() { return DOMAIN; }                                                                         \
  };                                                                                                                  \
  const Register<pointwise::Binary<NAME##_formula>> NAME##_op;                                                        \
  const Register<pointwise::Fused<NAME##_formula, 0>> NAME##_backward_a_op;                                           \
  const Register<pointwise::Fused<NAME##_formula, 1>> NAME##_backward_b_op;                                           \
  }                                                                                                                   \
  Tensor NAME(const Tensor& a, const Tensor& b) { return apply<pointwise::Binary<NAME##_formula>>({}, a, b); }        \
  Tensor& NAME##_(Tensor& a, const Tensor& b) { return apply_in_place<pointwise::Binary<NAME##_formula>>({}, a, b); } \
  Tensor NAME(const Tensor& a, double b) { return NAME(a, scalar_like(b, a)); }                                       \
  Tensor& NAME##_(Tensor& a, double b) { return NAME##_(a, scalar_like(b, a)); }                                      \
  Tensor& NAME##_out(Tensor& out, const Tensor& a, const Tensor& b) {                                                 \
    return apply_out<pointwise::Binary<NAME##_formula>>({}, out, a, b);                                               \
  }

#define OP_BINARY(NAME, ONNX, FORWARD, GRADIENT_A, GRADIENT_B, DOMAIN) \
  TENON_BINARY(NAME, ONNX, any, FORWARD, GRADIENT_A, GRADIENT_B, DOMAIN)
#define OP_BINARY_FLOAT(NAME, ONNX, FORWARD, GRADIENT_A, GRADIENT_B, DOMAIN) \
  TENON_BINARY(NAME, ONNX, floating, FORWARD, GRADIENT_A, GRADIENT_B, DOMAIN)

#define OP_COMPARE(NAME, ONNX, FORWARD)                                                                         \
  namespace {                                                                                                   \
  struct NAME##_formula {                                                                                       \
    static constexpr pointwise::Types types = pointwise::Types::compare;                                        \
    static constexpr const char *name = #NAME, *onnx_name = ONNX;                                               \
    template <class T>                                                                                          \
    static constexpr bool forward(T a, T b) {                                                                   \
      return FORWARD;                                                                                           \
    }                                                                                                           \
    static Domain domain() { return in(-2, 2); }                                                                \
  };                                                                                                            \
  const Register<pointwise::Compare<NAME##_formula>> NAME##_op;                                                 \
  }                                                                                                             \
  Tensor NAME(const Tensor& a, const Tensor& b) { return apply<pointwise::Compare<NAME##_formula>>({}, a, b); } \
  Tensor NAME(const Tensor& a, double b) { return NAME(a, scalar_like(b, a)); }

/// A question about one element: bool.
#define OP_TEST(NAME, ONNX, FORWARD)                              \
  namespace {                                                     \
  struct NAME##_formula {                                         \
    static constexpr const char *name = #NAME, *onnx_name = ONNX; \
    template <class T>                                            \
    static constexpr bool forward([[maybe_unused]] T x) {         \
      return FORWARD;                                             \
    }                                                             \
  };                                                              \
  const Register<pointwise::Test<NAME##_formula>> NAME##_op;      \
  }                                                               \
  Tensor NAME(const Tensor& x) { return apply<pointwise::Test<NAME##_formula>>({}, x); }

/// Two whole numbers (or bools) to one.
#define OP_BITS(NAME, ONNX, FORWARD)                                                                         \
  namespace {                                                                                                \
  struct NAME##_formula {                                                                                    \
    static constexpr pointwise::Types types = pointwise::Types::any;                                         \
    static constexpr const char *name = #NAME, *onnx_name = ONNX;                                            \
    template <class T>                                                                                       \
    static constexpr T forward(T a, T b) {                                                                   \
      return FORWARD;                                                                                        \
    }                                                                                                        \
  };                                                                                                         \
  const Register<pointwise::Bits<NAME##_formula>> NAME##_op;                                                 \
  }                                                                                                          \
  Tensor NAME(const Tensor& a, const Tensor& b) { return apply<pointwise::Bits<NAME##_formula>>({}, a, b); } \
  Tensor NAME(const Tensor& a, double b) { return NAME(a, scalar_like(b, a)); }
