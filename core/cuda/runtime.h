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

/// Queues a kernel. Nothing is launched for a grid without blocks.
template <class... P, class... A>
void queue(void (*kernel)(P...), dim3 grid, dim3 block, void* stream, A... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
#ifdef __CUDACC__
  kernel<<<grid, block, 0, static_cast<cudaStream_t>(stream)>>>(static_cast<P>(args)...);
#else
  simt::queue_kernel(static_cast<cudaStream_t>(stream), grid, block, [=] { kernel(static_cast<P>(args)...); });
#endif
}

}  // namespace tenon::cuda
