#include <fmt/format.h>

#include "core/error.h"
#include "engine/nn/attention.h"
#include "engine/nn/containers.h"
#include "engine/ops/pointwise.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {
namespace {

Tensor activate(const TransformerOptions& o, const Tensor& x) { return o.activation == "gelu" ? gelu(x) : relu(x); }
void check_activation(const TransformerOptions& o) {
  if (o.activation != "relu" && o.activation != "gelu")
    throw Error(fmt::format("activation is \"{}\"; it must be relu or gelu", o.activation));
}
Tensor input(std::span<const Tensor> in, size_t i) { return i < in.size() ? in[i] : Tensor(); }
std::shared_ptr<MultiheadAttention> attention(int64_t d, int64_t heads, const TransformerOptions& o, Device device,
                                              DType dtype) {
  return std::make_shared<MultiheadAttention>(d, heads, MultiheadAttentionOptions{o.dropout, true, 0, 0, o.batch_first},
                                              device, dtype);
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d, int64_t heads, const TransformerOptions& o, Device device,
                                                 DType dtype)
    : options_(o), d_model_(d), self_attn_(attention(d, heads, o, device, dtype)) {
  check_activation(o);
  add_child("self_attn", self_attn_);
  add_child("linear1", linear1_ = std::make_shared<Linear>(d, o.dim_feedforward, true, device, dtype));
  add_child("dropout", dropout_ = std::make_shared<Dropout>(o.dropout));
  add_child("linear2", linear2_ = std::make_shared<Linear>(o.dim_feedforward, d, true, device, dtype));
  add_child("norm1", norm1_ = std::make_shared<LayerNorm>(Shape{d}, o.layer_norm_eps, true, false, device, dtype));
  add_child("norm2", norm2_ = std::make_shared<LayerNorm>(Shape{d}, o.layer_norm_eps, true, false, device, dtype));
  add_child("dropout1", dropout1_ = std::make_shared<Dropout>(o.dropout));
  add_child("dropout2", dropout2_ = std::make_shared<Dropout>(o.dropout));
}

Tensor TransformerEncoderLayer::attend(const Tensor& x, const MultiheadAttention::Masks& masks) {
  return (*dropout1_)(self_attn_->attend(x, x, x, masks).output);
}
Tensor TransformerEncoderLayer::feed(const Tensor& x) {
  return (*dropout2_)((*linear2_)((*dropout_)(activate(options_, (*linear1_)(x)))));
}

Tensor TransformerEncoderLayer::forward(std::span<const Tensor> in) {
  MultiheadAttention::Masks masks{input(in, 1), input(in, 2), options_.causal};
  const Tensor& x = in[0];
  if (options_.norm_first) {
    Tensor y = add(x, attend((*norm1_)(x), masks));
    return add(y, feed((*norm2_)(y)));
  }
  Tensor y = (*norm1_)(add(x, attend(x, masks)));
  return (*norm2_)(add(y, feed(y)));
}
std::string TransformerEncoderLayer::describe() const {
  return fmt::format("TransformerEncoderLayer({}, feed-forward {})", d_model_, options_.dim_feedforward);
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d, int64_t heads, const TransformerOptions& o, Device device,
                                                 DType dtype)
    : options_(o),
      d_model_(d),
      self_attn_(attention(d, heads, o, device, dtype)),
      multihead_attn_(attention(d, heads, o, device, dtype)) {
  check_activation(o);
  add_child("self_attn", self_attn_);
  add_child("multihead_attn", multihead_attn_);
  add_child("linear1", linear1_ = std::make_shared<Linear>(d, o.dim_feedforward, true, device, dtype));
  add_child("dropout", dropout_ = std::make_shared<Dropout>(o.dropout));
  add_child("linear2", linear2_ = std::make_shared<Linear>(o.dim_feedforward, d, true, device, dtype));
  for (auto [name, norm] : {std::pair{"norm1", &norm1_}, {"norm2", &norm2_}, {"norm3", &norm3_}})
    add_child(name, *norm = std::make_shared<LayerNorm>(Shape{d}, o.layer_norm_eps, true, false, device, dtype));
  for (auto [name, drop] : {std::pair{"dropout1", &dropout1_}, {"dropout2", &dropout2_}, {"dropout3", &dropout3_}})
    add_child(name, *drop = std::make_shared<Dropout>(o.dropout));
}

Tensor TransformerDecoderLayer::forward(std::span<const Tensor> in) {
  if (in.size() < 2) throw Error("TransformerDecoderLayer needs a target and a memory");
  MultiheadAttention::Masks own{input(in, 2), input(in, 4), options_.causal}, other{input(in, 3), input(in, 5), false};
  const Tensor& memory = in[1];
  auto self = [&](const Tensor& x) { return (*dropout1_)(self_attn_->attend(x, x, x, own).output); };
  auto look = [&](const Tensor& x) { return (*dropout2_)(multihead_attn_->attend(x, memory, memory, other).output); };
  auto feed = [&](const Tensor& x) {
    return (*dropout3_)((*linear2_)((*dropout_)(activate(options_, (*linear1_)(x)))));
  };
  Tensor x = in[0];
  if (options_.norm_first) {
    x = add(x, self((*norm1_)(x)));
    x = add(x, look((*norm2_)(x)));
    return add(x, feed((*norm3_)(x)));
  }
  x = (*norm1_)(add(x, self(x)));
  x = (*norm2_)(add(x, look(x)));
  return (*norm3_)(add(x, feed(x)));
}
std::string TransformerDecoderLayer::describe() const {
  return fmt::format("TransformerDecoderLayer({}, feed-forward {})", d_model_, options_.dim_feedforward);
}

TransformerStack::TransformerStack(std::string name, std::vector<std::shared_ptr<Module>> layers,
                                   std::shared_ptr<Module> norm)
    : name_(std::move(name)), layers_(std::make_shared<ModuleList>(std::move(layers))), norm_(std::move(norm)) {
  add_child("layers", layers_);
  if (norm_) add_child("norm", norm_);
}
Tensor TransformerStack::forward(std::span<const Tensor> in) {
  std::vector<Tensor> all(in.begin(), in.end());
  for (const auto& layer : layers_->children()) all[0] = (*layer.second)(all);
  return norm_ ? (*norm_)(all[0]) : all[0];
}
std::string TransformerStack::describe() const {
  return fmt::format("{}({} layers)", name_, layers_->children().size());
}

namespace {

using Made = std::shared_ptr<Module>;

template <class Layer>
Made stack_of(const char* name, int64_t d, int64_t heads, int64_t count, bool norm, const TransformerOptions& o,
              Device device) {
  std::vector<Made> layers;
  for (int64_t i = 0; i < count; ++i) layers.push_back(std::make_shared<Layer>(d, heads, o, device));
  return std::make_shared<TransformerStack>(
      name, std::move(layers),
      norm ? std::make_shared<LayerNorm>(Shape{d}, o.layer_norm_eps, true, false, device) : Made());
}

}  // namespace

Made transformer_encoder(int64_t d, int64_t heads, int64_t count, bool norm, const TransformerOptions& o,
                         Device device) {
  return stack_of<TransformerEncoderLayer>("TransformerEncoder", d, heads, count, norm, o, device);
}
Made transformer_decoder(int64_t d, int64_t heads, int64_t count, bool norm, const TransformerOptions& o,
                         Device device) {
  return stack_of<TransformerDecoderLayer>("TransformerDecoder", d, heads, count, norm, o, device);
}

namespace {

/// Inputs: src, tgt, src_mask?, tgt_mask?, memory_mask?, src_key_padding_mask?, tgt_key_padding_mask?,
/// memory_key_padding_mask?.
class Transformer : public Module {
 public:
  Transformer(int64_t d, int64_t heads, int64_t encoder_layers, int64_t decoder_layers, const TransformerOptions& o,
              Device device)
      : d_model_(d),
        encoder_(transformer_encoder(d, heads, encoder_layers, true, without_causal(o), device)),
        decoder_(transformer_decoder(d, heads, decoder_layers, true, o, device)) {
    add_child("encoder", encoder_);
    add_child("decoder", decoder_);
  }
  std::string describe() const override { return fmt::format("Transformer({})", d_model_); }

 protected:
  using Module::forward;
  Tensor forward(std::span<const Tensor> in) override {
    if (in.size() < 2) throw Error("Transformer needs a source and a target");
    Tensor memory = (*encoder_)({in[0], input(in, 2), input(in, 5)});
    return (*decoder_)({in[1], memory, input(in, 3), input(in, 4), input(in, 6), input(in, 7)});
  }

 private:
  static TransformerOptions without_causal(TransformerOptions o) {
    o.causal = false;
    return o;
  }
  int64_t d_model_;
  Made encoder_, decoder_;
};

std::vector<AttrDef> layer_attrs(bool stack) {
  std::vector<AttrDef> attrs{
      {"d_model", int64_t{0}, 0, 1e6, "features; 0: whatever arrives"},
      {"nhead", int64_t{1}, 1, 1e4, "heads of attention, which share the features"},
      {"dim_feedforward", int64_t{2048}, 1, 1e7, "width of the feed-forward network"},
      {"dropout", 0.1, 0, 1, "share of values set to 0 in training"},
      {"activation", std::string("relu"), 0, 0, "of the feed-forward network: relu or gelu", {"relu", "gelu"}},
      {"layer_norm_eps", 1e-5, 0, 1, "added to the variance"},
      {"batch_first", true, 0, 0, "[batch, length, features]; false: [length, batch, features]"},
      {"norm_first", false, 0, 0, "normalise before attention and feed-forward instead of behind"},
      {"causal", false, 0, 0, "self-attention sees no later positions"}};
  if (stack) {
    attrs.push_back({"num_layers", int64_t{2}, 1, 1e4, "layers"});
    attrs.push_back({"norm", false, 0, 0, "normalise once more at the end"});
  }
  return attrs;
}
TransformerOptions transformer_options(const LayerArgs& a) {
  return {a.integer("dim_feedforward"), a.number("dropout"),  a.text("activation"), a.number("layer_norm_eps"),
          a.flag("batch_first"),        a.flag("norm_first"), a.flag("causal")};
}
constexpr const char* kEncoderHelp =
    "Self-attention and a feed-forward network. Inputs: src, src_mask, src_key_padding_mask (true where attention is "
    "not allowed).";
constexpr const char* kDecoderHelp =
    "Self-attention, attention to a memory and a feed-forward network. Inputs: tgt, memory, tgt_mask, memory_mask, "
    "tgt_key_padding_mask, memory_key_padding_mask.";

const bool registered_transformer[] = {
    register_layer({{.type = "TransformerEncoderLayer",
                     .group = "Attention",
                     .help = kEncoderHelp,
                     .inputs = 3,
                     .attrs = layer_attrs(false),
                     .optional = 2,
                     .examples = {{{2, 5, 8}}}},
                    [](const LayerArgs& a) -> Made {
                      return std::make_shared<TransformerEncoderLayer>(a.features("d_model", -1), a.integer("nhead"),
                                                                       transformer_options(a), a.device);
                    }}),
    register_layer({{.type = "TransformerDecoderLayer",
                     .group = "Attention",
                     .help = kDecoderHelp,
                     .inputs = 6,
                     .attrs = layer_attrs(false),
                     .optional = 4,
                     .examples = {{{2, 5, 8}}, {{2, 4, 8}}}},
                    [](const LayerArgs& a) -> Made {
                      return std::make_shared<TransformerDecoderLayer>(a.features("d_model", -1), a.integer("nhead"),
                                                                       transformer_options(a), a.device);
                    }}),
    register_layer({{.type = "TransformerEncoder",
                     .group = "Attention",
                     .help = kEncoderHelp,
                     .inputs = 3,
                     .attrs = layer_attrs(true),
                     .optional = 2,
                     .examples = {{{2, 5, 8}}}},
                    [](const LayerArgs& a) -> Made {
                      return transformer_encoder(a.features("d_model", -1), a.integer("nhead"), a.integer("num_layers"),
                                                 a.flag("norm"), transformer_options(a), a.device);
                    }}),
    [] {
      std::vector<AttrDef> attrs = layer_attrs(false);
      attrs.back().help = "the decoder's self-attention sees no later positions";
      attrs.push_back({"num_encoder_layers", int64_t{6}, 0, 1e4, "layers of the encoder"});
      attrs.push_back({"num_decoder_layers", int64_t{6}, 0, 1e4, "layers of the decoder"});
      return register_layer({{.type = "Transformer",
                              .group = "Attention",
                              .help = "An encoder and a decoder. Inputs: src, tgt, src_mask, tgt_mask, memory_mask, "
                                      "src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask.",
                              .inputs = 8,
                              .attrs = std::move(attrs),
                              .optional = 6,
                              .examples = {{{2, 5, 8}}, {{2, 4, 8}}}},
                             [](const LayerArgs& a) -> Made {
                               return std::make_shared<Transformer>(
                                   a.features("d_model", -1), a.integer("nhead"), a.integer("num_encoder_layers"),
                                   a.integer("num_decoder_layers"), transformer_options(a), a.device);
                             }});
    }(),
    register_layer({{.type = "TransformerDecoder",
                     .group = "Attention",
                     .help = kDecoderHelp,
                     .inputs = 6,
                     .attrs = layer_attrs(true),
                     .optional = 4,
                     .examples = {{{2, 5, 8}}, {{2, 4, 8}}}},
                    [](const LayerArgs& a) -> Made {
                      return transformer_decoder(a.features("d_model", -1), a.integer("nhead"), a.integer("num_layers"),
                                                 a.flag("norm"), transformer_options(a), a.device);
                    }}),
};

}  // namespace
}  // namespace tenon::nn
