#pragma once
#include "engine/cuda/kernel.h"

namespace tenon::cuda {

/// One side of a product. Strides in elements, of any sign; 0 repeats.
struct GemmMatrix {
  void* data;
  int64_t row, col;
  int64_t batch[kDims];
};

/// C [m, n] = A [m, k] B [k, n], plus a row of biases, plus what C holds; for every place of the batch axes.
struct GemmPlan {
  DType type = DType::f32;  ///< of everything: f32, f64, f16, bf16
  int64_t m = 0, n = 0, k = 0;
  int axes = 0;  ///< of the batch
  int64_t size[kDims] = {};
  GemmMatrix a{}, b{}, c{};
  const void* bias = nullptr;  ///< [n]
  int64_t bias_stride = 0;
  bool add = false;  ///< to C
  /// gemm_room() bytes, for calls with many products. Null: taken for this one, until the call ends.
  void* room = nullptr;

  int64_t batches() const {
    int64_t count = 1;
    for (int i = 0; i < axes; ++i) count *= size[i];
    return count;
  }
  /// The same product with as few batch axes as its strides allow; a B that serves a whole batch becomes a plain
  /// product of more rows.
  GemmPlan merged() const;
};

/// Bytes of the device that it is computed in.
int64_t gemm_room(const GemmPlan& plan);
/// Queues the product. Throws Unsupported before that where the type is none of the above.
void gemm(const Args& c, const GemmPlan& plan);

}  // namespace tenon::cuda
