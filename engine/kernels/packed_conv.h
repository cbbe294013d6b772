#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/kernels/dnnl.h"

namespace tenon::kernels {

/// What becomes of a piece of a result as soon as it is there, while it lies in the cache: n elements, of which the
/// first is the result's at-th. Called from several threads, for each element once.
using AfterPiece = std::function<void(float* piece, int64_t at, int64_t n)>;

/// A 2-d convolution of f32, NHWC, whose weights stay: they are packed once for the sizes that come, and so are its
/// primitives. Several threads may call it. The image is cut into rows by a rule of the sizes, so one image keeps
/// several threads busy, and the bits do not depend on their number.
class PackedConv {
 public:
  struct Form {
    int64_t ic, oc, kh, kw;
    int64_t sh = 1, sw = 1, dh = 1, dw = 1, groups = 1;
  };
  /// `weights` (OIHW) and `bias` (or null) must outlive it.
  PackedConv(const Form& form, const float* weights, const float* bias);
  ~PackedConv();
  PackedConv(const PackedConv&) = delete;
  const Form& form() const;
  void run(const ConvSizes& s, const float* x, float* y, const AfterPiece& after = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::kernels
