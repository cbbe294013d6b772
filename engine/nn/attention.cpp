#include "engine/nn/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/nn/functional.h"
#include "engine/nn/init.h"
#include "engine/nn/random_state.h"
#include "engine/ops/attention.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& options,
                                       Device device, DType dtype)
    : embed_(embed_dim), heads_(num_heads), options_(options) {
  if (num_heads < 1 || embed_dim % num_heads)
    throw Error(fmt::format("{} heads do not divide {} features", num_heads, embed_dim));
  CategoryScope parameters(Category::parameter);
  int64_t k = options.kdim ? options.kdim : embed_dim, v = options.vdim ? options.vdim : embed_dim;
  if (k == embed_dim && v == embed_dim) {
    in_proj_weight_ = empty({3 * embed_dim, embed_dim}, dtype, device);
    add_parameter("in_proj_weight", in_proj_weight_);
  } else {
    q_proj_weight_ = empty({embed_dim, embed_dim}, dtype, device);
    k_proj_weight_ = empty({embed_dim, k}, dtype, device);
    v_proj_weight_ = empty({embed_dim, v}, dtype, device);
    add_parameter("q_proj_weight", q_proj_weight_);
    add_parameter("k_proj_weight", k_proj_weight_);
    add_parameter("v_proj_weight", v_proj_weight_);
  }
  if (options.bias) {
    in_proj_bias_ = empty({3 * embed_dim}, dtype, device);
    add_parameter("in_proj_bias", in_proj_bias_);
  }
  out_proj_ = std::make_shared<Linear>(embed_dim, embed_dim, options.bias, device, dtype);
  add_child("out_proj", out_proj_);
}

/// [batch, length, features] -> [batch, heads, length, features / heads]
Tensor MultiheadAttention::heads_of(const Tensor& x) const {
  return permute(reshape(x, {x.size(0), x.size(1), heads_, embed_ / heads_}), {0, 2, 1, 3});
}

namespace {

/// PyTorch's masks say what is left out, the op's what takes part.
Tensor additive(const Tensor& mask, const Tensor& like) {
  if (mask.dtype() != DType::boolean) return mask;
  return where(mask, scalar_like(-std::numeric_limits<double>::infinity(), like), scalar_like(0, like));
}

}  // namespace

MultiheadAttention::Result MultiheadAttention::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                                      const Masks& masks, bool need_weights, bool average) {
  Entered entered(*this);
  if (query.ndim() != 3 || key.ndim() != 3 || value.ndim() != 3 || query.size(2) != embed_)
    throw Error(fmt::format("its query has size {}; it must be [{}, {}]", to_string(query.size()),
                            options_.batch_first ? "batch, length" : "length, batch", embed_));
  auto batched = [&](const Tensor& t) { return options_.batch_first ? t : transpose(t, 0, 1); };
  Tensor q, k, v;
  Tensor bq = in_proj_bias_ ? narrow(in_proj_bias_, 0, 0, embed_) : Tensor(),
         bk = in_proj_bias_ ? narrow(in_proj_bias_, 0, embed_, embed_) : Tensor(),
         bv = in_proj_bias_ ? narrow(in_proj_bias_, 0, 2 * embed_, embed_) : Tensor();
  if (in_proj_weight_ && query.same(key) && key.same(value)) {
    Tensor all = linear(batched(query), in_proj_weight_, in_proj_bias_);
    q = narrow(all, 2, 0, embed_);
    k = narrow(all, 2, embed_, embed_);
    v = narrow(all, 2, 2 * embed_, embed_);
  } else {
    auto weight = [&](const Tensor& own, int i) { return own ? own : narrow(in_proj_weight_, 0, i * embed_, embed_); };
    q = linear(batched(query), weight(q_proj_weight_, 0), bq);
    k = linear(batched(key), weight(k_proj_weight_, 1), bk);
    v = linear(batched(value), weight(v_proj_weight_, 2), bv);
  }
  int64_t n = q.size(0), lq = q.size(1), lk = k.size(1);
  q = heads_of(q);
  k = heads_of(k);
  v = heads_of(v);
  Tensor attn = masks.attn, padding = masks.key_padding, mask;
  if (attn && attn.ndim() == 3) attn = reshape(attn, {n, heads_, lq, lk});
  if (padding) padding = reshape(padding, {n, 1, 1, lk});
  bool all_bool = (!attn || attn.dtype() == DType::boolean) && (!padding || padding.dtype() == DType::boolean);
  if (all_bool) {
    if (attn) mask = eq(attn, 0);
    if (padding) mask = mask ? mul(mask, eq(padding, 0)) : eq(padding, 0);
  } else {
    if (attn) mask = additive(attn, q);
    if (padding) mask = mask ? add(mask, additive(padding, q)) : additive(padding, q);
  }
  AttentionOptions o;
  o.causal = masks.causal;
  if (training() && options_.dropout > 0) {
    o.dropout = options_.dropout;
    o.draws = draws(static_cast<uint64_t>(n * heads_ * lq * lk), path(), q);
  }
  Result result;
  if (need_weights) {
    Tensor shares = attention_weights(q, k, mask, o);
    result.output = matmul(shares, v);
    result.weights = average ? mean(shares, {1}) : shares;
  } else {
    result.output = scaled_dot_product_attention(q, k, v, mask, o);
  }
  result.output = (*out_proj_)(reshape(permute(result.output, {0, 2, 1, 3}), {n, lq, embed_}));
  if (!options_.batch_first) result.output = transpose(result.output, 0, 1);
  return result;
}

Tensor MultiheadAttention::forward(std::span<const Tensor> in) {
  auto given = [&](size_t i) { return i < in.size() ? in[i] : Tensor(); };
  if (in.empty() || !in[0]) throw Error("MultiheadAttention needs a query");
  Tensor key = given(1) ? given(1) : in[0], value = given(2) ? given(2) : key;
  return attend(in[0], key, value, {given(3), given(4), causal_}).output;
}

void MultiheadAttention::reset(uint64_t seed) {
  if (in_proj_weight_) {
    init_xavier_uniform(in_proj_weight_, 1, seed, path() + ".in_proj_weight");
  } else {
    init_xavier_uniform(q_proj_weight_, 1, seed, path() + ".q_proj_weight");
    init_xavier_uniform(k_proj_weight_, 1, seed, path() + ".k_proj_weight");
    init_xavier_uniform(v_proj_weight_, 1, seed, path() + ".v_proj_weight");
  }
  if (in_proj_bias_) nn::fill(in_proj_bias_, 0);
}

std::string MultiheadAttention::describe() const {
  return fmt::format("MultiheadAttention({}, {} heads)", embed_, heads_);
}

namespace {

using Made = std::shared_ptr<Module>;

const bool attention_layer = register_layer(
    {{.type = "MultiheadAttention",
      .group = "Attention",
      .help = "Every position gathers from others what it asks for. Inputs: query, key, value, attn_mask, "
              "key_padding_mask; a key left out is the query. Masks are true "
              "where attention is not allowed.",
      .inputs = 5,
      .attrs = {{"embed_dim", int64_t{0}, 0, 1e6, "features of the query; 0: whatever arrives"},
                {"num_heads", int64_t{1}, 1, 1e4, "heads, which share the features"},
                {"dropout", 0.0, 0, 1, "share of the weights set to 0 in training"},
                {"bias", true, 0, 0, "add a trained constant to the projections"},
                {"causal", false, 0, 0, "no position sees later ones"},
                {"batch_first", true, 0, 0, "[batch, length, features]; false: [length, batch, features]"}},
      .optional = 4,
      .examples = {{{2, 5, 8}}}},
     [](const LayerArgs& a) -> Made {
       int64_t embed = a.features("embed_dim", -1);
       MultiheadAttentionOptions o{a.number("dropout"), a.flag("bias"), 0, 0, a.flag("batch_first")};
       const Shape &k = a.inputs[1].shape, &v = a.inputs[2].shape;
       if (k.n == 3 && k.back() != embed) o.kdim = k.back();
       if (v.n == 3 && v.back() != embed) o.vdim = v.back();
       if (k.n == 3 && v.n != 3) o.vdim = o.kdim;
       auto m = std::make_shared<MultiheadAttention>(embed, a.integer("num_heads"), o, a.device);
       m->set_causal(a.flag("causal"));
       return m;
     }});

const bool sdpa_layer = register_layer(
    {{.type = "ScaledDotProductAttention",
      .group = "Attention",
      .help = "softmax(q k^T / sqrt(d)) v. Inputs: q, k, v, mask (true takes part, or numbers that are added).",
      .inputs = 4,
      .attrs = {{"causal", false, 0, 0, "no position sees later ones"},
                {"scale", 0.0, 0, 1e6, "of the products; 0: 1 / sqrt(d)"}},
      .optional = 1,
      .examples = {{{2, 5, 8}}, {{2, 5, 8}}, {{2, 5, 8}}}},
     [](const LayerArgs& a) -> Made {
       AttentionOptions o;
       o.causal = a.flag("causal");
       o.scale = a.number("scale");
       return nary("ScaledDotProductAttention", 4, [o](std::span<const Tensor> in) {
         return scaled_dot_product_attention(in[0], in[1], in[2], in[3], o);
       });
     }});

}  // namespace
}  // namespace tenon::nn
