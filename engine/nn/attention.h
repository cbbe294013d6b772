#pragma once
#include <memory>

#include "engine/nn/layers.h"
#include "engine/nn/module.h"

namespace tenon::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;
  bool bias = true;
  int64_t kdim = 0, vdim = 0;  ///< features of keys and values; 0: embed_dim
  bool batch_first = false;    ///< [batch, length, features] instead of [length, batch, features]
};
/// Attention in several heads between linear projections. Vaswani et al. (2017), with PyTorch's parameters and masks (a
/// bool mask is true where attention is not allowed). Inputs: query, key?, value?, attn_mask?, key_padding_mask?; a key
/// that is left out is the query, a value the key.
class MultiheadAttention : public Module {
 public:
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& options = {},
                     Device device = {}, DType dtype = DType::f32);
  std::string describe() const override;

  struct Masks {
    Tensor attn;         ///< [lq, lk] or [batch * heads, lq, lk]: bool, or numbers that are added
    Tensor key_padding;  ///< [batch, lk]: bool (true: padding), or numbers that are added
    bool causal = false;
  };
  struct Result {
    Tensor output;
    Tensor weights;  ///< [batch, lq, lk], or [batch, heads, lq, lk] where not averaged; undefined unless asked for
  };
  Result attend(const Tensor& query, const Tensor& key, const Tensor& value, const Masks& masks,
                bool need_weights = false, bool average = true);
  /// What forward() uses: the layer's attribute.
  void set_causal(bool on) { causal_ = on; }

 protected:
  using Module::forward;
  Tensor forward(std::span<const Tensor> in) override;
  void reset(uint64_t seed) override;

 private:
  Tensor heads_of(const Tensor& x) const;
  int64_t embed_, heads_;
  MultiheadAttentionOptions options_;
  bool causal_ = false;
  Tensor in_proj_weight_, q_proj_weight_, k_proj_weight_, v_proj_weight_, in_proj_bias_;
  std::shared_ptr<Linear> out_proj_;
};

struct TransformerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  ///< or gelu
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false;
  bool causal = false;  ///< of self-attention in forward()
};

/// Self-attention and a feed-forward network, each with a shortcut and a normalisation. Inputs: src, src_mask?,
/// src_key_padding_mask?.
class TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t nhead, const TransformerOptions& options = {}, Device device = {},
                          DType dtype = DType::f32);
  std::string describe() const override;

 protected:
  using Module::forward;
  Tensor forward(std::span<const Tensor> in) override;

 private:
  Tensor attend(const Tensor& x, const MultiheadAttention::Masks& masks);
  Tensor feed(const Tensor& x);
  TransformerOptions options_;
  int64_t d_model_;
  std::shared_ptr<MultiheadAttention> self_attn_;
  std::shared_ptr<Module> linear1_, dropout_, linear2_, norm1_, norm2_, dropout1_, dropout2_;
};

/// Self-attention, attention to a memory and a feed-forward network. Inputs: tgt, memory, tgt_mask?, memory_mask?,
/// tgt_key_padding_mask?, memory_key_padding_mask?.
class TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(int64_t d_model, int64_t nhead, const TransformerOptions& options = {}, Device device = {},
                          DType dtype = DType::f32);
  std::string describe() const override;

 protected:
  using Module::forward;
  Tensor forward(std::span<const Tensor> in) override;

 private:
  TransformerOptions options_;
  int64_t d_model_;
  std::shared_ptr<MultiheadAttention> self_attn_, multihead_attn_;
  std::shared_ptr<Module> linear1_, dropout_, linear2_, norm1_, norm2_, norm3_, dropout1_, dropout2_, dropout3_;
};

/// Layers one after the other, "layers.0", "layers.1", ..., and a last normalisation "norm" where asked for. All but
/// the first input go to every layer as they are.
class TransformerStack : public Module {
 public:
  TransformerStack(std::string name, std::vector<std::shared_ptr<Module>> layers, std::shared_ptr<Module> norm);
  std::string describe() const override;

 protected:
  using Module::forward;
  Tensor forward(std::span<const Tensor> in) override;

 private:
  std::string name_;
  std::shared_ptr<Module> layers_, norm_;
};
std::shared_ptr<Module> transformer_encoder(int64_t d_model, int64_t nhead, int64_t num_layers, bool norm,
                                            const TransformerOptions& options, Device device = {});
std::shared_ptr<Module> transformer_decoder(int64_t d_model, int64_t nhead, int64_t num_layers, bool norm,
                                            const TransformerOptions& options, Device device = {});

}  // namespace tenon::nn
