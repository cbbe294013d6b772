#pragma once
#include <cstdint>
#include <memory>

#include "engine/kernels/packed_conv.h"

namespace tenon::kernels {

/// Rows times a matrix of f32 that stays: it is packed once for the numbers of rows that come. Several threads may call
/// it. Rows and columns are cut by a rule of the sizes, so the bits do not depend on the number of threads.
class PackedProduct {
 public:
  /// `matrix` is [k, n], or [n, k] where it is `turned`; it and `bias` (n numbers, or null) must outlive this.
  PackedProduct(int64_t k, int64_t n, bool turned, const float* matrix, const float* bias);
  ~PackedProduct();
  PackedProduct(const PackedProduct&) = delete;
  int64_t k() const;
  int64_t n() const;
  void run(int64_t rows, const float* x, float* y, const AfterPiece& after = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::kernels
