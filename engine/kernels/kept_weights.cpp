#include "engine/kernels/kept_weights.h"

#include <mutex>
#include <vector>

#include "core/dry_device.h"
#include "core/kept_forms.h"
#include "core/pool.h"
#include "core/state.h"
#include "engine/kernels/conv_pass.h"

namespace tenon::kernels {
namespace {

struct ConvWeights {
  ConvShape shape;
  ConvPass pass;
  WeightCut cut;
  bool operator==(const ConvWeights&) const = default;
  bool same_use(const ConvWeights& o) const { return pass == o.pass; }
  size_t bytes() const { return conv_weight_bytes(shape, pass); }
  bool lie_alike(const ConvWeights& o) const {
    return pass == o.pass && cut == o.cut && shape.bf16 == o.shape.bf16 && conv_same_weights(shape, o.shape, pass);
  }
  void pack(const void* plain, void* packed) const {
    const int64_t item = shape.bf16 ? 2 : 4, at = cut.first * (shape.ic / shape.groups) * shape.kh * shape.kw * item;
    conv_pack(shape, pass, static_cast<const char*>(plain) + at, packed);
  }
};

struct ProductSide {
  MatmulShape shape;
  WeightCut cut;
  bool operator==(const ProductSide&) const = default;
  bool same_use(const ProductSide&) const { return true; }
  size_t bytes() const { return dnnl_matmul_packed_bytes(shape); }
  bool lie_alike(const ProductSide& o) const {
    return cut == o.cut && shape.ldb == o.shape.ldb && shape.tb == o.shape.tb && shape.bf16 == o.shape.bf16 &&
           dnnl_matmul_same_packing(shape, o.shape);
  }
  void pack(const void* plain, void* packed) const {
    const int64_t item = shape.bf16 ? 2 : 4, at = cut.first * (shape.tb ? shape.ldb : 1) * item;
    dnnl_matmul_pack(shape, static_cast<const char*>(plain) + at, packed);
  }
};

/// Of a block of plain weights in one order.
struct PackedBlock {
  Ref<Storage> memory;
  bool filled = false;
};

/// What is wanted, by the wish; wishes that come to the same order share a block, and another order takes its place.
template <class Wish>
class PackedBlocks {
 public:
  PackedBlock& of(const void* plain, const Wish& wish, Device device) {
    for (const Known& k : known_)
      if (k.plain == plain && k.wish == wish) return *k.block;
    std::shared_ptr<PackedBlock> block;
    for (const Known& k : known_)
      if (k.plain == plain && k.wish.lie_alike(wish)) block = k.block;
    if (!block) {
      std::erase_if(known_, [&](const Known& k) {
        return k.plain == plain && k.wish.same_use(wish) &&
               (k.wish.cut.width != wish.cut.width || k.wish.cut.first == wish.cut.first);
      });
      const CategoryScope kept(Category::buffer);
      block = std::make_shared<PackedBlock>();
      block->memory = device.type == DeviceType::cpu ? pool_take(wish.bytes()) : backend_take(wish.bytes(), device);
    }
    constexpr size_t kMost = 256;  // sizes that are never alike; those that come again are packed again
    if (known_.size() >= kMost) known_.clear();
    known_.push_back({plain, wish, block});
    return *known_.back().block;
  }

 private:
  struct Known {
    const void* plain;
    Wish wish;
    std::shared_ptr<PackedBlock> block;
  };
  std::vector<Known> known_;
};

}  // namespace

class KeptWeights : public KeptForms {
 public:
  template <class Wish>
  void take(const void* plain, const Wish& wish, Device device) {
    const std::lock_guard lock(mutex_);
    blocks(wish).of(plain, wish, device);
  }
  template <class Wish>
  Ref<Storage> packed(const void* plain, const Wish& wish, Device device) {
    const std::lock_guard lock(mutex_);
    PackedBlock& b = blocks(wish).of(plain, wish, device);
    if (!b.filled) wish.pack(plain, b.memory->data);
    b.filled = true;
    return b.memory;
  }

 private:
  PackedBlocks<ConvWeights>& blocks(const ConvWeights&) { return convs_; }
  PackedBlocks<ProductSide>& blocks(const ProductSide&) { return products_; }
  std::mutex mutex_;
  PackedBlocks<ConvWeights> convs_;
  PackedBlocks<ProductSide> products_;
};

WeightKeeper::WeightKeeper(const Tensor& weights) {
  // The backward pass of a step asks no gradient either, and what it packs is not used again.
  if (!weights || !weights.requires_grad() || !weights.is_contiguous() || t_state.origin.phase == Phase::backward)
    return;
  device_ = weights.device();
  if (device_.type != DeviceType::cpu && !is_dry(device_)) return;
  Storage& s = *weights.storage();
  if (grad_enabled()) {
    if (s.has_forms.load(std::memory_order_relaxed)) drop_kept_forms(s);
    return;
  }
  plain_ = weights.raw();
  kept_ = std::static_pointer_cast<KeptWeights>(kept_forms(s, [] { return std::make_shared<KeptWeights>(); }));
}

void WeightKeeper::take(const ConvShape& s, ConvPass pass, WeightCut cut) const {
  kept_->take(plain_, ConvWeights{s, pass, cut}, device_);
}
void WeightKeeper::take(const MatmulShape& s, WeightCut cut) const {
  kept_->take(plain_, ProductSide{s, cut}, device_);
}
Ref<Storage> WeightKeeper::packed(const ConvShape& s, ConvPass pass, WeightCut cut) const {
  return kept_->packed(plain_, ConvWeights{s, pass, cut}, device_);
}
Ref<Storage> WeightKeeper::packed(const MatmulShape& s, WeightCut cut) const {
  return kept_->packed(plain_, ProductSide{s, cut}, device_);
}

}  // namespace tenon::kernels
