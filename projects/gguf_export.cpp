#include "projects/gguf_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/version.h"
#include "engine/data/dataset.h"
#include "engine/formats/gguf.h"
#include "engine/nn/module.h"
#include "engine/spec/layer_registry.h"
#include "engine/train/session.h"
#include "projects/graph_exports.h"

namespace tenon::projects {
namespace {

/// Follows the wires of a model from layer to layer, and throws where the next one is not what it should be.
class GptWalk {
 public:
  explicit GptWalk(const ModelSpec& model) : model_(model) {}

  [[noreturn]] static void fail(const std::string& why) {
    throw Error("GGUF has no form for the model: " + why,
                "It takes transformers built as byte-gpt is. safetensors takes every model: --format safetensors.");
  }
  /// What reads a layer, each once; a Dropout passes everything on.
  std::vector<const LayerSpec*> readers(const LayerSpec& of) const {
    std::vector<const LayerSpec*> out;
    for (const WireSpec& w : model_.wires) {
      if (w.from != of.name) continue;
      const LayerSpec* l = model_.find(w.to);
      if (!l) continue;
      if (l->off) fail(fmt::format("the layer {} is switched off", l->name));
      if (l->type == "Dropout") {
        for (const LayerSpec* next : readers(*l)) out.push_back(next);
      } else {
        out.push_back(l);
      }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
  const LayerSpec& only(const LayerSpec& of, const std::string& type) const {
    const auto all = readers(of);
    if (all.size() != 1 || all[0]->type != type)
      fail(fmt::format("{} should be read by one {}{}", of.name, type,
                       all.empty() ? "" : fmt::format(", and {} reads it", all[0]->name)));
    return *all[0];
  }
  /// The layer behind a shortcut: what a block adds to and what it begins with are the two readers of one layer.
  const LayerSpec* shortcut(const LayerSpec& of, const LayerSpec*& norm) const {
    const auto all = readers(of);
    const LayerSpec* add = nullptr;
    norm = nullptr;
    for (const LayerSpec* l : all) (l->type == "Add" ? add : norm) = l;
    if (!norm || norm->type != "LayerNorm" || all.size() != (add ? 2u : 1u))
      fail(fmt::format("{} should be read by a LayerNorm, and by an Add where a block begins", of.name));
    return add;
  }
  /// Attention of a layer to itself, without masks: whatever else it reads would be lost in the file.
  void attends_to_itself(const LayerSpec& attention) const {
    std::string from;
    for (const WireSpec& w : model_.wires) {
      if (w.to != attention.name) continue;
      if (w.to_port > 2 || (!from.empty() && w.from != from))
        fail(fmt::format("{} reads more than the layer in front of it", attention.name));
      from = w.from;
    }
  }
  void joins(const LayerSpec& branch, const LayerSpec& add) const {
    if (std::count_if(model_.wires.begin(), model_.wires.end(), [&](const auto& w) { return w.to == add.name; }) != 2)
      fail(fmt::format("{} should add two layers", add.name));
    if (&only(branch, "Add") != &add) fail(fmt::format("{} is added to another layer than it came from", branch.name));
  }

 private:
  const ModelSpec& model_;
};

/// An attribute as it is set, or its default.
template <class T>
T gpt_attribute(const LayerSpec& layer, const std::string& name) {
  if (const AttrValue* v = layer.find(name)) return std::get<T>(*v);
  for (const AttrDef& d : find_layer_type(layer.type)->attrs)
    if (d.name == name) return std::get<T>(d.fallback);
  throw Error(fmt::format("{} has no attribute {}", layer.type, name));
}

/// Collects what all blocks have in common.
struct GptCommon {
  GptLayers& out;
  bool first = true;
  void norm(const LayerSpec& l) {
    const auto eps = gpt_attribute<double>(l, "eps");
    if (gpt_attribute<std::vector<int64_t>>(l, "normalized_shape").size() != 1)
      GptWalk::fail(fmt::format("{} normalises more than the last axis", l.name));
    if (out.epsilon == 0) out.epsilon = eps;
    out.same_as_gpt2 &= eps == out.epsilon && gpt_attribute<bool>(l, "elementwise_affine");
  }
  void attention(const LayerSpec& l) {
    const auto heads = gpt_attribute<int64_t>(l, "num_heads");
    if (!gpt_attribute<bool>(l, "causal")) GptWalk::fail(fmt::format("{} sees what comes later", l.name));
    if (!gpt_attribute<bool>(l, "batch_first")) GptWalk::fail(fmt::format("{} is not batch_first", l.name));
    if (out.heads && out.heads != heads) GptWalk::fail("its blocks differ in their heads");
    out.heads = heads;
    out.same_as_gpt2 &= gpt_attribute<bool>(l, "bias");
  }
  void activation(const LayerSpec& l) {
    const bool tanh = l.type == "GELU" && gpt_attribute<std::string>(l, "approximate") == "tanh";
    const std::string called = tanh ? "GELU(tanh)" : l.type;
    if (!out.activation.empty() && out.activation != called) GptWalk::fail("its blocks differ in their activations");
    out.activation = called;
    out.same_as_gpt2 &= tanh;
  }
};

GptLayers::Block find_block(const GptWalk& walk, const LayerSpec& norm1, const LayerSpec& add1, GptCommon& common,
                            const LayerSpec*& end) {
  common.norm(norm1);
  const LayerSpec& attention = walk.only(norm1, "MultiheadAttention");
  common.attention(attention);
  walk.attends_to_itself(attention);
  walk.joins(attention, add1);
  const LayerSpec* norm2 = nullptr;
  const LayerSpec* add2 = walk.shortcut(add1, norm2);
  if (!add2) GptWalk::fail(fmt::format("the block of {} has no feed-forward network", attention.name));
  common.norm(*norm2);
  const LayerSpec& up = walk.only(*norm2, "Linear");
  const auto act = walk.readers(up);
  if (act.size() != 1) GptWalk::fail(fmt::format("{} should be read by one activation", up.name));
  if (const LayerInfo* info = find_layer_type(act[0]->type); !info || info->group != "Activation")
    GptWalk::fail(fmt::format("{} is no activation", act[0]->name));
  common.activation(*act[0]);
  const LayerSpec& down = walk.only(*act[0], "Linear");
  walk.joins(down, *add2);
  common.out.same_as_gpt2 &= gpt_attribute<bool>(up, "bias") && gpt_attribute<bool>(down, "bias");
  end = add2;
  return {norm1.name, attention.name, norm2->name, up.name, down.name};
}

/// Bytes as GPT-2's tokenizer writes them: those that can be seen stand for themselves, the others for what follows
/// the first 256 characters of Unicode.
std::vector<std::string> byte_tokens() {
  std::vector<std::string> out;
  for (int b = 0, hidden = 0; b < 256; ++b) {
    const bool seen = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    const int c = seen ? b : 256 + hidden++;
    if (c < 0x80)
      out.push_back({static_cast<char>(c)});
    else
      out.push_back({static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 63))});
  }
  return out;
}

/// Of the tensor that a layer names, on an axis.
int64_t size_in(const formats::NamedTensors& all, const std::string& name, int axis) {
  for (const auto& [n, t] : all)
    if (n == name) return t.size(axis);
  throw Error(fmt::format("the model has no tensor {}", name));
}

formats::GgufMetadata metadata_of(const GptLayers& gpt, const formats::NamedTensors& all, const std::string& arch,
                                  const std::string& name, const std::string& doc) {
  auto size = [&](const std::string& layer, int axis) {
    return static_cast<uint32_t>(size_in(all, layer + ".weight", axis));
  };
  formats::GgufMetadata m = {{"general.architecture", arch},
                             {"general.name", name},
                             {"general.description", doc},
                             {"general.file_type", uint32_t{0}},
                             {"tenon.version", std::string(TENON_VERSION)}};
  auto add = [&](const char* key, formats::GgufValue value) { m.emplace_back(arch + "." + key, std::move(value)); };
  add("block_count", static_cast<uint32_t>(gpt.blocks.size()));
  add("context_length", size(gpt.positions, 0));
  add("embedding_length", size(gpt.embedding, 1));
  add("feed_forward_length", size(gpt.blocks[0].up, 0));
  add("attention.head_count", static_cast<uint32_t>(gpt.heads));
  add("attention.layer_norm_epsilon", static_cast<float>(gpt.epsilon));
  add("vocab_size", size(gpt.embedding, 0));
  if (arch == "tenon") add("activation", gpt.activation);
  return m;
}

/// Token 0 never stands in a text: it is what llama.cpp may take for its end.
void add_byte_tokenizer(formats::GgufMetadata& m) {
  m.emplace_back("tokenizer.ggml.model", std::string("gpt2"));
  m.emplace_back("tokenizer.ggml.pre", std::string("gpt-2"));
  m.emplace_back("tokenizer.ggml.tokens", byte_tokens());
  m.emplace_back("tokenizer.ggml.token_type", std::vector<int32_t>(256, 1));
  m.emplace_back("tokenizer.ggml.merges", std::vector<std::string>());
  m.emplace_back("tokenizer.ggml.bos_token_id", uint32_t{0});
  m.emplace_back("tokenizer.ggml.eos_token_id", uint32_t{0});
  m.emplace_back("tokenizer.ggml.add_bos_token", false);
}

bool tokens_are_bytes(const data::Dataset& data) {
  if (data.classes() != 256) return false;
  for (int64_t i = 0; i < 256; ++i)
    if (data.token_text(i) != std::string(1, static_cast<char>(i))) return false;
  return true;
}

}  // namespace

GptLayers find_gpt(const ModelSpec& model) {
  const GptWalk walk(model);
  const auto input =
      std::find_if(model.layers.begin(), model.layers.end(), [](const LayerSpec& l) { return l.type == "Input"; });
  if (input == model.layers.end()) GptWalk::fail("it has no input");
  GptLayers out;
  out.same_as_gpt2 = true;
  GptCommon common{out};
  const LayerSpec& embedding = walk.only(*input, "Embedding");
  const LayerSpec& positions = walk.only(embedding, "LearnedPositions");
  out.embedding = embedding.name, out.positions = positions.name;
  const LayerSpec *here = &positions, *norm = nullptr;
  while (const LayerSpec* add = walk.shortcut(*here, norm))
    out.blocks.push_back(find_block(walk, *norm, *add, common, here));
  if (out.blocks.empty()) GptWalk::fail("it has no blocks of attention");
  common.norm(*norm);
  const LayerSpec& head = walk.only(*norm, "Linear");
  walk.only(head, "Output");
  out.norm = norm->name, out.head = head.name;
  out.same_as_gpt2 &= !gpt_attribute<bool>(head, "bias");
  return out;
}

std::vector<std::pair<std::string, std::string>> gpt2_names(const GptLayers& gpt) {
  std::vector<std::pair<std::string, std::string>> out = {{gpt.embedding + ".weight", "token_embd.weight"},
                                                          {gpt.positions + ".weight", "position_embd.weight"}};
  auto both = [&](const std::string& ours, const std::string& theirs) {
    out.emplace_back(ours + ".weight", theirs + ".weight");
    out.emplace_back(ours + ".bias", theirs + ".bias");
  };
  for (size_t i = 0; i < gpt.blocks.size(); ++i) {
    const GptLayers::Block& b = gpt.blocks[i];
    const std::string block = fmt::format("blk.{}.", i);
    both(b.norm1, block + "attn_norm");
    out.emplace_back(b.attention + ".in_proj_weight", block + "attn_qkv.weight");
    out.emplace_back(b.attention + ".in_proj_bias", block + "attn_qkv.bias");
    both(b.attention + ".out_proj", block + "attn_output");
    both(b.norm2, block + "ffn_norm");
    both(b.up, block + "ffn_up");
    both(b.down, block + "ffn_down");
  }
  both(gpt.norm, "output_norm");
  out.emplace_back(gpt.head + ".weight", "output.weight");
  return out;
}

ExportReport export_gguf(TrainingSession& session, const std::string& doc, const std::string& path, bool verify) {
  const GptLayers gpt = find_gpt(session.spec());
  formats::NamedTensors all = state_dict_of(session);
  const bool bytes = tokens_are_bytes(session.train_data()), gpt2 = gpt.same_as_gpt2 && bytes;
  formats::GgufMetadata metadata = metadata_of(gpt, all, gpt2 ? "gpt2" : "tenon", session.spec().name, doc);
  if (bytes) add_byte_tokenizer(metadata);
  if (gpt2) {
    const auto names = gpt2_names(gpt);
    const std::map<std::string, std::string> theirs(names.begin(), names.end());
    for (auto& [name, t] : all) name = theirs.at(name);
  }
  formats::save_gguf(path, all, metadata);

  ExportReport e;
  e.parts = all.size();
  e.text = fmt::format(
      "{} tensors, {}", e.parts,
      gpt2 ? "a gpt2 for llama.cpp" : "under their own names: no architecture of llama.cpp's computes the same");
  if (!verify) return e;
  formats::NamedTensors back;
  const formats::Gguf file = formats::Gguf::open(path);
  for (const auto& t : file.entries()) back.emplace_back(t.name, file.tensor(t));
  verify_tensors(all, back, path, e);
  return e;
}

}  // namespace tenon::projects
