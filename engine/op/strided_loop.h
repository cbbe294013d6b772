#pragma once
#include <vector>

#include "core/tensor.h"

namespace tenon {

/// data[0] is the output, the rest inputs; strides in bytes; n elements. All operands have the op's compute types.
using InnerLoop = void (*)(char* const* data, const int64_t* strides, int64_t n);

inline constexpr int kMaxOperands = 6;
/// Elements below which a loop stays on one thread; also the size of a piece.
inline constexpr int64_t kLoopGrain = 32768;

/// Runs `loop` over the broadcast of `in` into `out` (already allocated at the broadcast size). Operands whose dtype is
/// not the compute type (in_type for inputs, out_type for the output) pass through tiles of 1,024 converted elements.
/// Coalesces axes, splits by a fixed rule.
void strided_loop(const Tensor& out, const Tensor* in, int inputs, DType in_type, DType out_type, InnerLoop loop);

/// While it lives, the loops that kernels run on this thread are noted, too. Nothing is held: how many look at a tensor
/// decides what autograd may write over.
class LoopWatch {
 public:
  struct Operand {
    const TensorImpl* tensor;
    bool one_number = false;  ///< of f32
    float number = 0;
  };
  struct Seen {
    const TensorImpl* out;
    std::vector<Operand> in;
    DType in_type, out_type;
    InnerLoop loop;
  };
  LoopWatch();
  ~LoopWatch();
  LoopWatch(const LoopWatch&) = delete;
  void note(const Tensor& out, const Tensor* in, int inputs, DType in_type, DType out_type, InnerLoop loop);
  std::vector<Seen> seen;

 private:
  LoopWatch* before_;
};

/// Converts n elements; strides in bytes. C++'s conversion rules; to bool: not equal to 0.
void convert(void* to, DType to_type, int64_t to_stride, const void* from, DType from_type, int64_t from_stride,
             int64_t n);

}  // namespace tenon
