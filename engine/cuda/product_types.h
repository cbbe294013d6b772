#pragma once
#include "engine/cuda/kernel.h"
#include "engine/op/element.h"

// Elements of products: what lies in memory, and the type that their sums have. Halves are multiplied and added up in
// f32 and rounded once, as on the CPU (Note [Products of halves]).
namespace tenon::cuda {

template <class T>
struct SumOf {
  using type = float;
};
template <>
struct SumOf<double> {
  using type = double;
};

template <class T>
__device__ inline auto widened(T x) {
  return element::number(x);
}
template <class T>
__device__ inline void put(T* to, typename SumOf<T>::type x) {
  *to = element::made<T>(x);
}

/// a b + c. Rounded once on a GPU: the module is compiled without contraction, and a product's inner loop would take
/// twice as long by two operations.
template <class T>
__device__ inline T multiply_add(T a, T b, T c) {
#ifdef __CUDACC__
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// Calls f with a value of the type of t's elements. Unsupported for what is not multiplied here.
template <class F>
void with_product_type(DType t, F&& f) {
  if (t == DType::f32) return f(float{});
  if (t == DType::f64) return f(double{});
  if (t == DType::f16) return f(element::Half{});
  if (t == DType::bf16) return f(element::Bfloat{});
  throw Unsupported();
}

}  // namespace tenon::cuda
