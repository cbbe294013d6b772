#pragma once
#include <memory>

#include "core/tensor.h"
#include "engine/kernels/dnnl.h"
#include "engine/kernels/dnnl_matmul.h"

namespace tenon::kernels {

class KeptWeights;

/// Which channels or columns of the result a shape's weights are for, where all are cut into pieces of `width`.
struct WeightCut {
  int64_t first, width;
  bool operator==(const WeightCut&) const = default;
};

/// Where one call finds its weights in the order that its primitives want, packed by an earlier one: Note [Kept forms].
/// Only trained weights that no gradient is asked of are kept: what has been packed goes where one is, for the step
/// that follows will write them. Weights are kept in one order at a time, that which was wanted last, so that no more
/// than their own size is kept, with channels filled up to a block.
class WeightKeeper {
 public:
  WeightKeeper() = default;  ///< keeps nothing
  explicit WeightKeeper(const Tensor& weights);
  explicit operator bool() const { return kept_ != nullptr; }
  /// Takes the memory for them once, on the device of the weights. An op does so in workspace(), which is asked on the
  /// dry device, too.
  void take(const ConvShape& s, ConvPass pass, WeightCut cut) const;
  void take(const MatmulShape& s, WeightCut cut) const;
  /// The weights, packed.
  Ref<Storage> packed(const ConvShape& s, ConvPass pass, WeightCut cut) const;
  Ref<Storage> packed(const MatmulShape& s, WeightCut cut) const;

 private:
  std::shared_ptr<KeptWeights> kept_;
  const void* plain_ = nullptr;
  Device device_;
};

}  // namespace tenon::kernels
