#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/kernels/dnnl.h"

namespace tenon::kernels {

/// Whether the processor adds products of u8 and i8 in 32 bits (VNNI), as oneDNN sees it: ONEDNN_MAX_CPU_ISA counts.
/// Without, oneDNN adds two of them in 16 bits, which saturate, and sums are wrong.
bool has_exact_int8();

/// A 2-d convolution of u8 activations, NHWC, by i8 weights, OIHW. A value of an activation is scale * (q - zero).
struct Int8ConvShape {
  int64_t ic, oc, kh, kw;
  int64_t sh = 1, sw = 1, dh = 1, dw = 1, groups = 1;
  int32_t zero = 0;  ///< of the input: what stands in the padding
  bool relu = false;
  bool to_u8 = false;    ///< the result is rounded to u8; otherwise it is f32
  int32_t out_zero = 0;  ///< of a u8 result
};

/// Such a convolution with its weights, which are packed once for the sizes that come, and its primitives. Several
/// threads may call it. The bits do not depend on the number of threads: sums are whole numbers, and the batch is cut
/// by a rule of the sizes.
class Int8Conv {
 public:
  /// `bias`: of each output channel, in sums, without what the input's zero point adds. `scale`: by which a sum of that
  /// channel becomes a value, or a step of a u8 result.
  Int8Conv(const Int8ConvShape& shape, const int8_t* weights, std::vector<int32_t> bias, std::vector<float> scale);
  ~Int8Conv();
  Int8Conv(const Int8Conv&) = delete;
  const Int8ConvShape& shape() const;
  /// `y` is uint8_t or float, as the shape says.
  void run(const ConvSizes& s, const uint8_t* x, void* y) const;
  /// A matrix product: rows of `ic` numbers by a 1 x 1 kernel.
  void run_rows(int64_t rows, const uint8_t* x, void* y) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::kernels
