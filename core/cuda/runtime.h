#pragma once
// What kernels are written against: CUDA's runtime under nvcc, or the emulation of tests/simt, which is put on the
// include path where the module is made for tests.
#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include <simt_runtime.h>
#endif

namespace tenon::cuda {

// Shared memory is declared by TENON_SHARED(T, name, count), where count is a constant: the emulation gives every
// declaration a block of its own, whose end the address sanitizer sees and whose content is NaN before it is written.
#ifdef __CUDACC__
#define TENON_SHARED(T, name, count) __shared__ T name[count]
#else
#define TENON_SHARED(T, name, count)  \
  static const char name##_place = 0; \
  T* const name = ::simt::shared<T>(&name##_place, count)
#endif

/// An address of the device as a kernel follows it.
template <class T>
T* reachable(T* p) {
#ifdef __CUDACC__
  return p;
#else
  return simt::reachable(p);
#endif
}

}  // namespace tenon::cuda
