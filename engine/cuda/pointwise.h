#pragma once
#include "engine/cuda/kernel.h"
#include "engine/op/element.h"
#include "engine/op/result_type.h"

// Note [Formulas on the GPU]
// The OP_ lines of engine/ops/*_formulas.h, read with the macros below, are kernels: one of operands that all have the
// compute type f32, and for each compute type one that converts what it loads and stores. Both follow any strides.
namespace tenon::cuda {
namespace {

enum class FormulaTypes { any, floating, compare, whole };

/// A loop over a result of any layout: axes that lie together in every operand are one, the innermost first.
template <int Operands>
struct PointwisePlan {
  int64_t count;
  int32_t ndim;
  bool narrow;                                   ///< count fits 32 bits
  int64_t size[kDims], stride[kDims][Operands];  ///< strides in bytes
  char* data[Operands];                          ///< the output first
  DType dtype[Operands];
  double number[2];  ///< of parametric formulas

  __device__ void offsets(int64_t i, int64_t* at) const {
    if (ndim == 1) {
      for (int k = 0; k < Operands; ++k) at[k] = i * stride[0][k];
      return;
    }
    for (int k = 0; k < Operands; ++k) at[k] = 0;
    if (narrow) {
      auto rest = static_cast<uint32_t>(i);
      for (int d = 0; d < ndim; ++d) {
        const auto n = static_cast<uint32_t>(size[d]);
        const uint32_t next = rest / n, index = rest - next * n;
        rest = next;
        for (int k = 0; k < Operands; ++k) at[k] += index * stride[d][k];
      }
      return;
    }
    for (int d = 0; d < ndim; ++d) {
      const int64_t next = i / size[d], index = i - next * size[d];
      i = next;
      for (int k = 0; k < Operands; ++k) at[k] += index * stride[d][k];
    }
  }
};

inline int64_t stride_of_axis(const Operand& t, int axis, int ndim) {
  const int own = axis - (ndim - t.ndim);
  return own < 0 || t.size[own] == 1 ? 0 : t.stride[own] * static_cast<int64_t>(itemsize(t.type()));
}

template <int Operands>
PointwisePlan<Operands> plan_of(const Operand (&t)[Operands]) {
  PointwisePlan<Operands> p{};
  const Operand& out = t[0];
  p.count = out.numel();
  p.narrow = p.count < int64_t{1} << 31;
  for (int k = 0; k < Operands; ++k) {
    p.data[k] = t[k].template at<char>();
    p.dtype[k] = t[k].type();
  }
  int order[kDims], axes = 0;
  for (int d = out.ndim - 1; d >= 0; --d)
    if (out.size[d] != 1) order[axes++] = d;
  const auto reach = [&](int d) { return out.stride[d] < 0 ? -out.stride[d] : out.stride[d]; };
  for (int i = 1; i < axes; ++i)
    for (int j = i; j > 0 && reach(order[j]) < reach(order[j - 1]); --j) {
      const int swapped = order[j];
      order[j] = order[j - 1];
      order[j - 1] = swapped;
    }
  for (int i = 0; i < axes; ++i) {
    int64_t s[Operands];
    for (int k = 0; k < Operands; ++k) s[k] = stride_of_axis(t[k], order[i], out.ndim);
    bool joins = p.ndim > 0;
    for (int k = 0; joins && k < Operands; ++k) joins = s[k] == p.stride[p.ndim - 1][k] * p.size[p.ndim - 1];
    if (joins) {
      p.size[p.ndim - 1] *= out.size[order[i]];
      continue;
    }
    p.size[p.ndim] = out.size[order[i]];
    for (int k = 0; k < Operands; ++k) p.stride[p.ndim][k] = s[k];
    ++p.ndim;
  }
  if (p.ndim == 0) {
    p.ndim = 1;
    p.size[0] = 1;
  }
  return p;
}

template <class T>
__device__ T load_as(const char* p, DType t) {
  return element::with_type(t, [p](auto type) { return static_cast<T>(element::load<decltype(type)>(p)); });
}
template <class T>
__device__ void store_as(char* p, DType t, T v) {
  element::with_type(t, [p, v](auto type) { element::store<decltype(type)>(p, v); });
}

template <class Formula, class T, class Out, int Inputs, bool Converts>
__global__ void __launch_bounds__(256) pointwise_loop(const PointwisePlan<Inputs + 1> p) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count; i += step) {
    int64_t at[Inputs + 1];
    p.offsets(i, at);
    T v[Inputs];
    for (int k = 0; k < Inputs; ++k) {
      const char* from = p.data[k + 1] + at[k + 1];
      if constexpr (Converts)
        v[k] = load_as<T>(from, p.dtype[k + 1]);
      else
        v[k] = *reinterpret_cast<const T*>(from);
    }
    const Out y = Formula::template at<T>(v, p.number);
    if constexpr (Converts)
      store_as<Out>(p.data[0] + at[0], p.dtype[0], y);
    else
      *reinterpret_cast<Out*>(p.data[0] + at[0]) = y;
  }
}

template <class Formula, class T, class Out, int Operands>
void run_pointwise_as(const Args& c, const Operand (&t)[Operands], const double (&number)[2]) {
  PointwisePlan<Operands> p = plan_of(t);
  p.number[0] = number[0];
  p.number[1] = number[1];
  const unsigned blocks = blocks_for(p.count, 256, 132 * 16);
  bool converts = t[0].type() != dtype_of<Out>::value;
  for (int k = 1; k < Operands; ++k) converts |= t[k].type() != dtype_of<T>::value;
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
