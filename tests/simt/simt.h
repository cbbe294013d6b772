#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>

// Note [An emulated GPU]
// What kernels need of CUDA's language, on the CPU: blocks run one after the other, the threads of a block as fibers
// that change where the kernel waits (a barrier, an exchange within a warp). Which thread goes first is a setting; the
// first that may goes on as far as it can, so that its warp is ahead of all others: the hardest case for a barrier that
// is missing. Shared memory is a heap block of its own for every declaration, of NaN before it is written, and what
// memory of the device kernels touch is the heap's, so the sanitizers see every index. What this cannot show: races
// between blocks, fences, alignment (but for that of matrices of a warp, simt_warp_matrix.h), speed.
namespace simt {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  Dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

/// A kernel did what a GPU forbids: a barrier or exchange that not every thread reaches.
struct Fault : std::runtime_error {
  using runtime_error::runtime_error;
};

enum class Order { forward, backward, shuffled };
/// Of warps, and of lanes within them, for all kernels that run from now on, and of streams (tests/simt/streams.h).
/// Blocks go backwards too in `backward`. Tests reach it as tenon_simt_order(int, uint32_t) of the module.
void set_order(Order order, uint32_t seed);
struct Turns {
  Order order = Order::forward;
  uint32_t seed = 1;
};
Turns turns();

/// Whether a GPU takes a launch of this size.
bool fits(Dim3 grid, Dim3 block);
/// Runs a kernel to its end. Throws Fault.
void launch(Dim3 grid, Dim3 block, std::function<void()> body);

/// Where the running thread is.
struct Position {
  Dim3 grid, block, block_index, thread;
};
const Position& position();

void barrier(const char* at);
/// Gives `value` to the warp and takes the one of lane `from`. Every lane must come, at the same place.
uint64_t exchange(uint64_t value, unsigned from, const char* at);
/// One bit for each lane that comes with true.
uint32_t ballot(bool value, const char* at);
unsigned lane();
/// Aligned as asked and no better.
void* shared_bytes(const void* place, size_t bytes, size_t align);

template <class T>
T* shared(const void* place, size_t count) {
  return static_cast<T*>(shared_bytes(place, count * sizeof(T), alignof(T)));
}
template <class T>
T shuffle(uint32_t mask, T value, unsigned from, const char* at) {
  static_assert(sizeof(T) <= 8);
  if (mask != 0xffffffffu) throw Fault(std::string("an exchange of part of a warp at ") + at);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange(bits, from, at);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace simt

using dim3 = simt::Dim3;

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __restrict__

/// Threads are fibers of one thread: each of these is whole. Only for numbers of which the order does not matter.
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long more) {
  const unsigned long long had = *at;
  *at = had + more;
  return had;
}

#define threadIdx (::simt::position().thread)
#define blockIdx (::simt::position().block_index)
#define blockDim (::simt::position().block)
#define gridDim (::simt::position().grid)

#define SIMT_TEXT_OF(x) #x
#define SIMT_TEXT(x) SIMT_TEXT_OF(x)
#define SIMT_AT __FILE__ ":" SIMT_TEXT(__LINE__)
#define __syncthreads() ::simt::barrier(SIMT_AT)
#define __syncwarp() (void)::simt::exchange(0, ::simt::lane(), SIMT_AT)
#define __ballot_sync(mask, value) ::simt::ballot(value, SIMT_AT)
#define __shfl_sync(mask, value, from) ::simt::shuffle(mask, value, static_cast<unsigned>(from) & 31u, SIMT_AT)
#define __shfl_xor_sync(mask, value, bits) \
  ::simt::shuffle(mask, value, ::simt::lane() ^ static_cast<unsigned>(bits), SIMT_AT)
#define __shfl_down_sync(mask, value, by)                                                                            \
  ::simt::shuffle(                                                                                                   \
      mask, value,                                                                                                   \
      ::simt::lane() + static_cast<unsigned>(by) > 31 ? ::simt::lane() : ::simt::lane() + static_cast<unsigned>(by), \
      SIMT_AT)
#define __shfl_up_sync(mask, value, by)                                                                         \
  ::simt::shuffle(                                                                                              \
      mask, value,                                                                                              \
      ::simt::lane() < static_cast<unsigned>(by) ? ::simt::lane() : ::simt::lane() - static_cast<unsigned>(by), \
      SIMT_AT)
