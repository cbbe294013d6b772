#pragma once
#include "engine/cuda/strided.h"
#include "engine/op/result_type.h"

// Note [Formulas on the GPU]
// The OP_ lines of engine/ops/*_formulas.h, read with the macros below, are kernels: one of operands that all have the
// compute type f32, and for each compute type one that converts what it loads and stores. Both follow any strides.
namespace tenon::cuda {
namespace {

enum class FormulaTypes { any, floating, compare, whole };

/// What a loop reads and writes: the output first.
template <int Operands>
struct PointwisePlan {
  Strided<Operands> loop;
  void* data[Operands];
  DType dtype[Operands];
  double number[2];  ///< of parametric formulas
};

template <class Formula, class T, class Out, int Inputs, bool Converts>
__global__ void __launch_bounds__(256) pointwise_loop(const PointwisePlan<Inputs + 1> p) {
  for (int64_t i = first_of_thread(); i < p.loop.numel; i += threads_of_grid()) {
    int64_t at[Inputs + 1];
    p.loop.find(i, at);
    T v[Inputs];
    for (int k = 0; k < Inputs; ++k) {
      if constexpr (Converts)
        v[k] = element::at<T>(p.data[k + 1], p.dtype[k + 1], at[k + 1]);
      else
        v[k] = static_cast<const T*>(p.data[k + 1])[at[k + 1]];
    }
    const Out y = Formula::template at<T>(v, p.number);
    if constexpr (Converts)
      element::put(p.data[0], p.dtype[0], at[0], y);
    else
      static_cast<Out*>(p.data[0])[at[0]] = y;
  }
}

template <class Formula, class T, class Out, int Operands>
void run_pointwise_as(const Args& c, const Operand (&t)[Operands], const double (&number)[2]) {
  PointwisePlan<Operands> p{strided_of<Operands>(t), {}, {}, {number[0], number[1]}};
  bool converts = false;
  for (int k = 0; k < Operands; ++k) {
    p.data[k] = t[k].data;
    p.dtype[k] = t[k].type();
    converts |= t[k].type() != (k == 0 ? dtype_of<Out>::value : dtype_of<T>::value);
  }
  const unsigned blocks = blocks_for(p.loop.numel, 256, 132 * 16);
  if constexpr (std::is_same_v<T, float>)
    if (!converts) return launch(pointwise_loop<Formula, T, Out, Operands - 1, false>, blocks, 256, c, p);
  launch(pointwise_loop<Formula, T, Out, Operands - 1, true>, blocks, 256, c, p);
}
/// Formula::at<T>(values, numbers) for every element, evaluated in type `t`.
template <class Formula, int Operands>
void run_pointwise(const Args& c, DType t, const Operand (&operands)[Operands], double a = 0, double b = 0) {
  const double number[2] = {a, b};
  if (operands[0].numel() == 0) return;
  const auto in = [&](auto type) {
    using T = decltype(type);
    using Out = std::conditional_t<Formula::types == FormulaTypes::compare, bool, T>;
    run_pointwise_as<Formula, T, Out>(c, operands, number);
  };
  if constexpr (Formula::types == FormulaTypes::whole) {
    if (t == DType::i32) return in(int32_t{});
    if (t == DType::i64) return in(int64_t{});
    throw Unsupported();
  } else {
    with_compute_type<Formula::types != FormulaTypes::floating>(t, in);
  }
}

template <class F, FormulaTypes Types>
struct UnaryForward {
  static constexpr FormulaTypes types = Types;
  template <class T>
  static __device__ auto at(const T* v, const double*) {
    return F::template forward<T>(v[0]);
  }
  static void run(Args& c) {
    const DType t = compute_type(Types == FormulaTypes::compare ? c.in(0).type() : c.out(0).type());
    run_pointwise<UnaryForward>(c, t, {c.out(0), c.in(0)});
  }
};
template <class F, FormulaTypes Types>
struct BinaryForward {
  static constexpr FormulaTypes types = Types;
  template <class T>
  static __device__ auto at(const T* v, const double*) {
    return F::template forward<T>(v[0], v[1]);
  }
  static void run(Args& c) {
    const Operand a = c.in(0), b = c.in(1);
    DType t = result_type(a.type(), a.ndim > 0, b.type(), b.ndim > 0);
    if (Types == FormulaTypes::floating && !is_floating(t)) t = DType::f32;
    run_pointwise<BinaryForward>(c, compute_type(t), {c.out(0), a, b});
  }
};
/// Operands that a gradient does not read are left out: the gradient itself stands for them.
inline Operand or_gradient(const Args& c, int i) { return c.in(i).there() ? c.in(i) : c.in(0); }
template <class F>
struct UnaryGradient {
  static constexpr FormulaTypes types = FormulaTypes::floating;
  template <class T>
  static __device__ T at(const T* v, const double*) {
    return F::template gradient<T>(v[0], v[1], v[2]);
  }
  static void run(Args& c) {
    run_pointwise<UnaryGradient>(c, compute_type(c.out(0).type()),
                                 {c.out(0), c.in(0), or_gradient(c, 1), or_gradient(c, 2)});
  }
};
template <class F, int Side>
struct BinaryGradient {
  static constexpr FormulaTypes types = FormulaTypes::floating;
  template <class T>
  static __device__ T at(const T* v, const double*) {
    if constexpr (Side == 0)
      return F::template gradient_a<T>(v[0], v[1], v[2], v[3]);
    else
      return F::template gradient_b<T>(v[0], v[1], v[2], v[3]);
  }
  static void run(Args& c) {
    run_pointwise<BinaryGradient>(c, compute_type(c.out(0).type()),
                                  {c.out(0), c.in(0), or_gradient(c, 1), or_gradient(c, 2), or_gradient(c, 3)});
  }
};
template <class F>
struct ParametricForward {
  static constexpr FormulaTypes types = FormulaTypes::floating;
  template <class T>
  static __device__ T at(const T* v, const double* n) {
    return F::template forward<T>(v[0], static_cast<T>(n[0]), static_cast<T>(n[1]));
  }
  static void run(Args& c) {
    run_pointwise<ParametricForward>(c, compute_type(c.out(0).type()), {c.out(0), c.in(0)}, c.number("a"),
                                     c.number("b"));
  }
};
template <class F>
struct ParametricGradient {
  static constexpr FormulaTypes types = FormulaTypes::floating;
  template <class T>
  static __device__ T at(const T* v, const double* n) {
    return F::template gradient<T>(v[0], v[1], static_cast<T>(n[0]), static_cast<T>(n[1]));
  }
  static void run(Args& c) {
    run_pointwise<ParametricGradient>(c, compute_type(c.out(0).type()), {c.out(0), c.in(0), c.in(1)}, c.number("a"),
                                      c.number("b"));
  }
};

}  // namespace
}  // namespace tenon::cuda

#define TENON_FORMULA_FUNCTION(NAME, RESULT, FORMULA, ...) \
  template <class T>                                       \
  static TENON_HD RESULT NAME(__VA_ARGS__) {               \
    return FORMULA;                                        \
  }
#define TENON_KERNEL_OF(NAME, TEXT, ...) const cuda::KernelOf NAME##_kernel{TEXT, cuda::__VA_ARGS__::run};

#define TENON_UNARY_KERNELS(NAME, TYPES, FORWARD, GRADIENT)                                                         \
  namespace {                                                                                                       \
  struct NAME##_formula {                                                                                           \
    TENON_FORMULA_FUNCTION(forward, T, FORWARD, [[maybe_unused]] T x)                                               \
    TENON_FORMULA_FUNCTION(gradient, T, GRADIENT, [[maybe_unused]] T g, [[maybe_unused]] T x, [[maybe_unused]] T y) \
  };                                                                                                                \
  TENON_KERNEL_OF(NAME, #NAME, UnaryForward<NAME##_formula, cuda::FormulaTypes::TYPES>)                             \
  TENON_KERNEL_OF(NAME##_backward, #NAME "_backward", UnaryGradient<NAME##_formula>)                                \
  }
#define TENON_BINARY_KERNELS(NAME, TYPES, FORWARD, GRADIENT_A, GRADIENT_B)                        \
  namespace {                                                                                     \
  struct NAME##_formula {                                                                         \
    TENON_FORMULA_FUNCTION(forward, T, FORWARD, [[maybe_unused]] T a, [[maybe_unused]] T b)       \
    TENON_FORMULA_FUNCTION(gradient_a, T, GRADIENT_A, [[maybe_unused]] T g, [[maybe_unused]] T a, \
                           [[maybe_unused]] T b, [[maybe_unused]] T y)                            \
    TENON_FORMULA_FUNCTION(gradient_b, T, GRADIENT_B, [[maybe_unused]] T g, [[maybe_unused]] T a, \
                           [[maybe_unused]] T b, [[maybe_unused]] T y)                            \
  };                                                                                              \
  TENON_KERNEL_OF(NAME, #NAME, BinaryForward<NAME##_formula, cuda::FormulaTypes::TYPES>)          \
  TENON_KERNEL_OF(NAME##_backward_a, #NAME "_backward_a", BinaryGradient<NAME##_formula, 0>)      \
  TENON_KERNEL_OF(NAME##_backward_b, #NAME "_backward_b", BinaryGradient<NAME##_formula, 1>)      \
  }
/// Two operands, no gradient.
#define TENON_PLAIN_KERNEL(NAME, TYPES, RESULT, FORWARD)                                         \
  namespace {                                                                                    \
  struct NAME##_formula {                                                                        \
    TENON_FORMULA_FUNCTION(forward, RESULT, FORWARD, [[maybe_unused]] T a, [[maybe_unused]] T b) \
  };                                                                                             \
  TENON_KERNEL_OF(NAME, #NAME, BinaryForward<NAME##_formula, cuda::FormulaTypes::TYPES>)         \
  }

#define OP_UNARY(NAME, ONNX, FORWARD, GRADIENT, DOMAIN) TENON_UNARY_KERNELS(NAME, floating, FORWARD, GRADIENT)
#define OP_UNARY_ANY(NAME, ONNX, FORWARD, GRADIENT, DOMAIN) TENON_UNARY_KERNELS(NAME, any, FORWARD, GRADIENT)
#define OP_BINARY(NAME, ONNX, FORWARD, GRADIENT_A, GRADIENT_B, DOMAIN) \
  TENON_BINARY_KERNELS(NAME, any, FORWARD, GRADIENT_A, GRADIENT_B)
#define OP_BINARY_FLOAT(NAME, ONNX, FORWARD, GRADIENT_A, GRADIENT_B, DOMAIN) \
  TENON_BINARY_KERNELS(NAME, floating, FORWARD, GRADIENT_A, GRADIENT_B)
#define OP_COMPARE(NAME, ONNX, FORWARD) TENON_PLAIN_KERNEL(NAME, compare, bool, FORWARD)
#define OP_BITS(NAME, ONNX, FORWARD) TENON_PLAIN_KERNEL(NAME, whole, T, FORWARD)
#define OP_TEST(NAME, ONNX, FORWARD)                                                      \
  namespace {                                                                             \
  struct NAME##_formula {                                                                 \
    TENON_FORMULA_FUNCTION(forward, bool, FORWARD, [[maybe_unused]] T x)                  \
  };                                                                                      \
  TENON_KERNEL_OF(NAME, #NAME, UnaryForward<NAME##_formula, cuda::FormulaTypes::compare>) \
  }
#define OP_PARAMETRIC(NAME, ONNX, FORWARD, GRADIENT, DOMAIN, A, B, EXPORT)                                          \
  namespace {                                                                                                       \
  struct NAME##_formula {                                                                                           \
    TENON_FORMULA_FUNCTION(forward, T, FORWARD, [[maybe_unused]] T x, [[maybe_unused]] T a, [[maybe_unused]] T b)   \
    TENON_FORMULA_FUNCTION(gradient, T, GRADIENT, [[maybe_unused]] T g, [[maybe_unused]] T x, [[maybe_unused]] T a, \
                           [[maybe_unused]] T b)                                                                    \
  };                                                                                                                \
  TENON_KERNEL_OF(NAME, #NAME, ParametricForward<NAME##_formula>)                                                   \
  TENON_KERNEL_OF(NAME##_backward, #NAME "_backward", ParametricGradient<NAME##_formula>)                           \
  }
