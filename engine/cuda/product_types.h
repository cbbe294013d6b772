#pragma once
#include <bit>
#include <cstdint>

#include "engine/cuda/kernel.h"
#ifdef __CUDACC__
#include <cuda_fp16.h>
#else
#include "core/half.h"
#endif

// Elements of products: what lies in memory, and the type that their sums have. Halves are multiplied and added up in
// f32 and rounded once, as on the CPU (Note [Products of halves]).
namespace tenon::cuda {

/// The bits of an f16.
struct Half16 {
  uint16_t bits;
};
/// The bits of a bf16.
struct Brain16 {
  uint16_t bits;
};

template <class T>
struct SumOf {
  using type = float;
};
template <>
struct SumOf<double> {
  using type = double;
};

__device__ inline float widened(float x) { return x; }
__device__ inline double widened(double x) { return x; }
__device__ inline float widened(Half16 x) {
#ifdef __CUDACC__
  return __half2float(__ushort_as_half(x.bits));
#else
  return half_to_float(x.bits);
#endif
}
__device__ inline float widened(Brain16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

__device__ inline void put(float* to, float x) { *to = x; }
__device__ inline void put(double* to, double x) { *to = x; }
__device__ inline void put(Half16* to, float x) {
#ifdef __CUDACC__
  to->bits = __half_as_ushort(__float2half_rn(x));
#else
  to->bits = float_to_half(x);
#endif
}
__device__ inline void put(Brain16* to, float x) {
  const auto b = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (b + 0x7fffu + (b >> 16 & 1u)) >> 16, nan = b >> 16 | 0x40u;
  to->bits = static_cast<uint16_t>((b & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
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
  if (t == DType::f16) return f(Half16{});
  if (t == DType::bf16) return f(Brain16{});
  throw Unsupported();
}

}  // namespace tenon::cuda
