#pragma once
#include <cstring>
#include <exception>
#include <initializer_list>

#include "core/cuda/abi.h"
#include "core/cuda/runtime.h"
#include "core/dtype.h"

// Note [Writing a kernel for the GPU]
// A family of ops has one .cu file in this folder. It holds the kernels and, for every op, a host function that reads
// the operands and launches them:
//   __global__ void doubled(const float* x, float* y, int64_t n) { ... }
//   void run_doubled(Args& c) {
//     c.want(c.in(0).is(DType::f32) && c.in(0).contiguous());      // else the op runs on the CPU
//     launch(doubled, blocks_for(n, 256), 256, c, c.in(0).at<const float>(), c.out(0).at<float>(), n);
//   }
//   const KernelOf doubled_entry{"doubled", run_doubled};          // the op's name in the registry
// Rules: the same bits in every run (no floating-point atomics; sums in an order that depends on sizes alone), strides
// and broadcasts without copies where that is natural, no synchronisation, no read of device memory by the host, and
// everything that a thread writes is written by one thread, but for whole numbers that are added up by atomicAdd().
// want() comes before the first launch. Outputs may be any
// dense or strided layout, and the output of an in-place form is the input itself.
// Kernels compile under nvcc and, for the tests, under the host's compiler (core/cuda/runtime.h): shared memory is
// TENON_SHARED, launches go through launch(), every __syncthreads() is reached by all threads of a block, and warps
// exchange by __shfl_*_sync with a full mask.
namespace tenon::cuda {

/// The op has no kernel for these operands: it is run on the CPU. Thrown before anything is launched.
struct Unsupported : std::exception {};
/// The op failed: the text names what the runtime said.
struct Failure : std::exception {
  explicit Failure(const char* text) { std::strncpy(why.text, text, sizeof why.text - 1); }
  const char* what() const noexcept override { return why.text; }
  Why why{};
};
struct OutOfMemory : std::exception {};

/// An operand as kernels' host code reads it.
struct Operand : TensorArg {
  bool there() const { return data != nullptr || dtype >= 0; }
  DType type() const { return static_cast<DType>(dtype); }
  bool is(DType t) const { return dtype == static_cast<int32_t>(t); }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < ndim; ++i) n *= size[i];
    return n;
  }
  /// Row-major without gaps.
  bool contiguous() const {
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; --i) {
      if (size[i] == 0) return true;
      if (size[i] != 1 && stride[i] != step) return false;
      step *= size[i];
    }
    return true;
  }
  template <class T>
  T* at() const {
    return static_cast<T*>(data);
  }
};

/// One call of an op, as the host functions of kernels read it.
class Args {
 public:
  explicit Args(KernelCall& call) : call_(call) {}
  int inputs() const { return call_.inputs; }
  int outputs() const { return call_.outputs; }
  /// An input past the last is one that is left out.
  Operand in(int i) const { return i < call_.inputs ? operand(call_.in[i]) : Operand{{nullptr, -1, 0, {}, {}}}; }
  Operand out(int i) const { return operand(call_.out[i]); }

  /// Attributes by their names in the op's fields(). A name that is not there is a mistake in the kernel: Failure.
  int64_t whole(const char* name) const { return attr(name).list[0]; }
  bool flag(const char* name) const { return whole(name) != 0; }
  double number(const char* name) const { return attr(name).number; }
  const char* text(const char* name) const { return attr(name).text; }
  const AttrArg& attr(const char* name) const {
    for (int i = 0; i < call_.attr_count; ++i)
      if (std::strcmp(call_.attrs[i].name, name) == 0) return call_.attrs[i];
    throw Failure("a kernel asks for an attribute that its op does not have");
  }

  void want(bool supported) const {
    if (!supported) throw Unsupported();
  }
  /// Memory of the device for this call; uninitialised.
  template <class T>
  T* scratch(int64_t count) const {
    void* p = call_.take(call_.scratch, static_cast<size_t>(count > 0 ? count : 1) * sizeof(T));
    if (!p) throw OutOfMemory();
    return static_cast<T*>(reachable(p));
  }
  int device() const { return call_.device; }
  void* stream() const { return call_.stream; }
  bool tf32() const { return call_.tf32 != 0; }
  /// Says which library computes what this call queued, where it is not a kernel of the module's own.
  void by(const char* library) const { call_.library = library; }
  /// Ends the call with what the runtime says of the launch just made.
  void check() const;

 private:
  static Operand operand(const TensorArg& t) {
    Operand o{t};
    o.data = reachable(o.data);
    return o;
  }
  KernelCall& call_;
};

/// queue() on the call's stream. Failure where the runtime refuses it.
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, const Args& c, A... args) {
  queue(kernel, grid, block, c.stream(), args...);
  c.check();
}

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// Blocks of `threads` for n elements, at most `most`: kernels go on by the size of the grid.
inline unsigned blocks_for(int64_t n, int threads, int64_t most = 1 << 16) {
  const int64_t blocks = ceil_div(n, threads);
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

/// Enters an op's kernel into the module's list.
struct KernelOf {
  KernelOf(const char* op, void (*run)(Args&));
  const char* op;
  void (*run)(Args&);
  const KernelOf* next;
};

/// Calls f with a value of the C++ type of t: f32 and f64, and with Integers also i32 and i64. Unsupported for others.
template <bool Integers = false, class F>
void with_compute_type(DType t, F&& f) {
  if (t == DType::f32) return f(float{});
  if (t == DType::f64) return f(double{});
  if constexpr (Integers) {
    if (t == DType::i32) return f(int32_t{});
    if (t == DType::i64) return f(int64_t{});
  }
  throw Unsupported();
}

}  // namespace tenon::cuda
