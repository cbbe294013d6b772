#pragma once
#include "engine/nn/module.h"
#include "engine/ops/embedding.h"

namespace tenon::nn {

/// A trained row for every number: i64 of any size -> [its size, width].
class Embedding : public Module {
 public:
  Embedding(int64_t rows, int64_t width, int64_t padding_idx = -1, Device device = {}, DType dtype = DType::f32);
  std::string describe() const override;
  const Tensor& weight() const { return weight_; }

 protected:
  Tensor forward(const Tensor& index) override;
  void reset(uint64_t seed) override;

 private:
  int64_t padding_;
  Tensor weight_;
};

/// Sums (means, maxima) of bags of rows. Inputs: numbers [bags, n], or [all] with offsets; offsets?; per-sample
/// weights?.
class EmbeddingBag : public Module {
 public:
  EmbeddingBag(int64_t rows, int64_t width, const EmbeddingBagOptions& options = {}, Device device = {},
               DType dtype = DType::f32);
  std::string describe() const override;

 protected:
  using Module::forward;
  Tensor forward(std::span<const Tensor> in) override;
  void reset(uint64_t seed) override;

 private:
  EmbeddingBagOptions options_;
  Tensor weight_;
};

}  // namespace tenon::nn
