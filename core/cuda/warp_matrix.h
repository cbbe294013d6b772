#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/cuda/runtime.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
#else
#include <simt_warp_matrix.h>
#endif

// Note [Products by tensor cores]
// The 32 lanes of a warp hold matrices of 16 by 16 together and multiply them: halves (f16 or bf16), whose products are
// added up in f32. These are CUDA's warp matrix functions. Every lane comes to each of them, with the same operands;
// addresses are of shared memory and multiples of 32 bytes, and lines follow each other by a multiple of 16 bytes.
// Which lane has which elements is not said, only that it is the same for all Sums: who has to know loads a matrix of
// numbers of lines. Under the host's compiler it is tests/simt/simt_warp_matrix.h, which checks all of this but where
// addresses are of.
namespace tenon::cuda::warp {

enum class Half { f16, bf16 };

#ifdef __CUDACC__

namespace detail {
template <Half Type>
struct HalfOf {
  using type = __half;
};
template <>
struct HalfOf<Half::bf16> {
  using type = __nv_bfloat16;
};
template <class Use, Half Type, class Order>
struct Factor : nvcuda::wmma::fragment<Use, 16, 16, 16, typename HalfOf<Type>::type, Order> {
  __device__ void load(const uint16_t* from, unsigned line) {
    if constexpr (Type == Half::f16) {
      nvcuda::wmma::load_matrix_sync(*this, reinterpret_cast<const __half*>(from), line);
    } else {
      // What load_matrix_sync() is of bf16, but for saying that the address is of shared memory: the compiler, which
      // finds that out for f16, does not, and then reads element by element.
      constexpr bool kLeft = std::is_same_v<Use, nvcuda::wmma::matrix_a>;
      constexpr bool kByRow = std::is_same_v<Order, nvcuda::wmma::row_major>;
      const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(from));
      uint32_t r[4];
      static_assert(sizeof this->x == sizeof r);
#define TENON_LOAD_BF16(side, order)                                                                         \
  asm volatile("wmma.load." side ".sync.aligned." order ".m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;" \
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                                              \
               : "r"(at), "r"(line)                                                                          \
               : "memory")
      if constexpr (kLeft && kByRow)
        TENON_LOAD_BF16("a", "row");
      else if constexpr (kLeft)
        TENON_LOAD_BF16("a", "col");
      else if constexpr (kByRow)
        TENON_LOAD_BF16("b", "row");
      else
        TENON_LOAD_BF16("b", "col");
#undef TENON_LOAD_BF16
      memcpy(this->x, r, sizeof r);
    }
  }
};
}  // namespace detail

/// The left and the right side of a product. A turned one is read by columns: an element of its column `c` and row `r`
/// lies at c * line + r.
template <Half Type>
using Left = detail::Factor<nvcuda::wmma::matrix_a, Type, nvcuda::wmma::row_major>;
template <Half Type>
using Right = detail::Factor<nvcuda::wmma::matrix_b, Type, nvcuda::wmma::row_major>;
template <Half Type>
using RightTurned = detail::Factor<nvcuda::wmma::matrix_b, Type, nvcuda::wmma::col_major>;

struct Sums : nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> {
  static constexpr int kEach = 8;  ///< elements of a lane, in x
  __device__ void fill(float v) { nvcuda::wmma::fill_fragment(*this, v); }
  __device__ void load(const float* from, unsigned line) {
    nvcuda::wmma::load_matrix_sync(*this, from, line, nvcuda::wmma::mem_row_major);
  }
  __device__ void store(float* to, unsigned line) const {
    nvcuda::wmma::store_matrix_sync(to, *this, line, nvcuda::wmma::mem_row_major);
  }
};

/// sums += left right
template <class A, class B>
__device__ inline void multiply(Sums& sums, const A& left, const B& right) {
  nvcuda::wmma::mma_sync(sums, left, right, sums);
}

#else

template <Half Type>
using Left = simt::WarpFactor<Type == Half::bf16, false, false>;
template <Half Type>
using Right = simt::WarpFactor<Type == Half::bf16, true, false>;
template <Half Type>
using RightTurned = simt::WarpFactor<Type == Half::bf16, true, true>;
using Sums = simt::WarpSums;
using simt::multiply;

#endif

}  // namespace tenon::cuda::warp
