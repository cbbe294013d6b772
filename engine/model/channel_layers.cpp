// Layers of several groups of channels: attention, whole or wired by hand, transformers and recurrent layers.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "engine/model/channel_follower.h"

namespace tenon {
namespace {

const nn::Module* child(const nn::Module& module, const std::string& name) {
  for (const auto& [own, m] : module.children())
    if (own == name) return m.get();
  return nullptr;
}

}  // namespace

void ChannelFollower::feed_forward(const LayerSpec& layer, const std::string& at, int64_t units) {
  const Flow within = begin(1, units);
  ChannelGroup& g = group(within.parts[0]);
  g.makers.push_back(at);
  g.sized.push_back(layer.name + ".dim_feedforward");
  if (at != layer.name) g.bound = fmt::format("the layers of {} are of one width", layer.name);
  put(within, &ChannelGroup::made, at + ".linear1.weight", 0);
  put(within, &ChannelGroup::made, at + ".linear1.bias", 0);
  put(within, &ChannelGroup::read, at + ".linear2.weight", 1);
}

bool ChannelFollower::attention(const std::string& at, const std::string& sized, const Flow& q, const Flow& k,
                                const Flow& v, int64_t heads, bool bias) {
  for (const Flow* f : {&q, &k, &v})
    if (f->parts.size() != 1 || f->parts[0].repeat != 1) return false;
  const int64_t features = q.parts[0].channels;
  const bool together = k.parts[0].channels == features && v.parts[0].channels == features;
  const Flow within = begin(1, features);
  ChannelGroup& inner = group(within.parts[0]);
  inner.makers.push_back(at + ".in_proj");
  inner.sized.push_back(sized);
  inner.block = features / heads;
  inner.dotted = true;
  inner.bound = fmt::format("{} has heads of {}", at, inner.block);
  for (const auto& [letter, f, i] : {std::tuple("q", &q, 0), {"k", &k, 1}, {"v", &v, 2}}) {
    const std::string own = fmt::format("{}.{}_proj_weight", at, letter);
    const int64_t begin = i * features;
    inner.made.push_back(
        {together ? at + ".in_proj_weight" : own, 0, together ? begin : 0, 1, i == 0 ? Asks::root : Asks::no});
    if (bias) inner.made.push_back({at + ".in_proj_bias", 0, begin, 1, i == 0 ? Asks::root : Asks::no});
    if (!together) put(*f, &ChannelGroup::read, own, 1);
  }
  inner.read.push_back({at + ".out_proj.weight", 1, 0, 1});
  group(q.parts[0]).sized.push_back(sized);
  if (group(q.parts[0]).bound.empty()) group(q.parts[0]).bound = at + " has as many features";
  if (!together) return true;
  join(q.parts[0].group, k.parts[0].group);
  join(q.parts[0].group, v.parts[0].group);
  put(q, &ChannelGroup::read, at + ".in_proj_weight", 1);
  return true;
}

void ChannelFollower::projected(const Flow& f, const std::string& at, const std::string& maker, bool bias) {
  ChannelGroup& g = group(f.parts[0]);
  g.makers.push_back(maker);
  g.made.push_back({at + ".weight", 0, 0, 1});
  if (bias) g.made.push_back({at + ".bias", 0, 0, 1});
}

bool ChannelFollower::attention_layer(const LayerSpec& layer, const AttrValues& values, const std::vector<Tensor>& in,
                                      const Tensor& out, const std::vector<Flow>& flows, Flow& flow) {
  size_t next = 0;
  std::vector<const Flow*> given;
  for (const Tensor& t : in) given.push_back(t ? &flows[next++] : nullptr);
  given.resize(3, nullptr);
  const Flow &q = *given[0], &k = given[1] ? *given[1] : q, &v = given[2] ? *given[2] : k;
  for (const Flow* f : {&q, &k, &v})
    if (f->axis != 2) return false;
  const std::string sized = layer.name + ".embed_dim";
  const bool bias = values.flag("bias");
  if (!attention(layer.name, sized, q, k, v, values.integer("num_heads"), bias)) return false;
  flow = begin(2, out.size(2));
  group(flow.parts[0]).sized.push_back(sized);
  group(flow.parts[0]).bound = layer.name + " has as many features";
  projected(flow, layer.name + ".out_proj", layer.name, bias);
  return true;
}

bool ChannelFollower::transformer(const LayerSpec& layer, const nn::Module& module, const AttrValues& values,
                                  const std::vector<Tensor>& in, const std::vector<Flow>& flows, Flow& flow) {
  const bool whole = layer.type == "Transformer", decodes = layer.type.find("Decoder") != std::string::npos;
  const Flow& x = flows[0];
  bool followed = true;
  for (size_t i = 0; i < (whole || decodes ? 2u : 1u); ++i)
    followed &= i < flows.size() && flows[i].axis == in[i].ndim() - 1 && flows[i].parts.size() == 1 &&
                flows[i].parts[0].repeat == 1;
  const auto stack = [&](const std::string& at, const nn::Module& of, const Flow& f, const Flow* memory) {
    for (size_t i = 0; i < child(of, "layers")->children().size(); ++i)
      one(layer, fmt::format("{}.layers.{}", at, i), values, f, memory, followed);
    if (child(of, "norm") && followed) stack_norm(at + ".norm", f);
  };
  if (whole) {
    stack(layer.name + ".encoder", *child(module, "encoder"), x, nullptr);
    stack(layer.name + ".decoder", *child(module, "decoder"), flows.size() > 1 ? flows[1] : x, &x);
  } else if (child(module, "layers")) {
    stack(layer.name, module, x, decodes && followed ? &flows[1] : nullptr);
  } else {
    one(layer, layer.name, values, x, decodes && followed ? &flows[1] : nullptr, followed);
  }
  flow = whole && followed ? flows[1] : x;
  return followed;
}

void ChannelFollower::stack_norm(const std::string& at, const Flow& f) {
  for (const char* name : {".weight", ".bias"}) put(f, &ChannelGroup::along, at + name, 0);
  norm_over(f, at, at + " sees all of them");
}

void ChannelFollower::one(const LayerSpec& layer, const std::string& at, const AttrValues& values, const Flow& x,
                          const Flow* memory, bool followed) {
  feed_forward(layer, at, values.integer("dim_feedforward"));
  if (!followed) return;
  const std::string sized = layer.name + ".d_model";
  const int64_t heads = values.integer("nhead");
  attention(at + ".self_attn", sized, x, x, x, heads, true);
  projected(x, at + ".self_attn.out_proj", at + ".self_attn.out_proj", true);
  if (memory) {
    attention(at + ".multihead_attn", sized, x, *memory, *memory, heads, true);
    projected(x, at + ".multihead_attn.out_proj", at + ".multihead_attn.out_proj", true);
  }
  put(x, &ChannelGroup::read, at + ".linear1.weight", 1);
  projected(x, at + ".linear2", at + ".linear2", true);
  for (const char* norm : {".norm1", ".norm2", ".norm3"})
    if (norm != std::string(".norm3") || memory) stack_norm(at + norm, x);
}

bool ChannelFollower::recurrent(const LayerSpec& layer, const nn::Module& module, const AttrValues& values,
                                const std::vector<Tensor>& in, const Tensor& out, const Flow& f, Flow& flow) {
  const bool cell = layer.type.ends_with("Cell");
  const size_t states = layer.type.starts_with("LSTM") ? 2 : 1;
  for (size_t i = 1; i <= states && i < in.size(); ++i)
    if (in[i]) return false;  // a state of its own
  const int64_t units = values.integer("hidden_size"), layers = cell ? 1 : values.integer("num_layers");
  const int directions = !cell && values.flag("bidirectional") ? 2 : 1;
  const bool reads = f.axis == in[0].ndim() - 1;
  if (!reads) hold(f, fmt::format("{} ({}) reads another axis", layer.name, layer.type));
  Flow arrives = f;
  for (int64_t l = 0; l < layers; ++l) {
    Flow made{out.ndim() - 1, {}};
    for (int direction = 0; direction < directions; ++direction) {
      const std::string suffix = cell ? "" : fmt::format("_l{}{}", l, direction ? "_reverse" : "");
      const Flow own = begin(out.ndim() - 1, units);
      ChannelGroup& g = group(own.parts[0]);
      g.makers.push_back(cell ? layer.name : layer.name + "." + suffix.substr(1));
      g.sized.push_back(layer.name + ".hidden_size");
      if (layers * directions > 1) g.bound = fmt::format("the layers of {} are of one width", layer.name);
      for (const char* name : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"})
        if (const Tensor t = module.own(name + suffix))
          for (int64_t gate = 0; gate < t.size(0); gate += units)
            g.made.push_back({layer.name + "." + name + suffix, 0, gate, 1});
      g.read.push_back({layer.name + ".weight_hh" + suffix, 1, 0, 1});
      if (reads || l > 0) put(arrives, &ChannelGroup::read, layer.name + ".weight_ih" + suffix, 1);
      made.parts.push_back(own.parts[0]);
    }
    arrives = std::move(made);
  }
  flow = std::move(arrives);
  return true;
}

bool ChannelFollower::regrouped(const LayerSpec& layer, const Tensor& in, const Tensor& out, const Flow& f,
                                Flow& flow) {
  const int n = in.ndim(), last = n - 1;
  if (f.axis != last || f.parts.size() != 1 || f.parts[0].repeat != 1) return false;
  const auto same_upto = [&](int axes) {
    for (int i = 0; i < axes; ++i)
      if (in.size(i) != out.size(i)) return false;
    return true;
  };
  ChannelGroup& g = group(f.parts[0]);
  if (f.heads < 0 && out.ndim() == n + 1 && same_upto(last)) {
    block(g, out.size(n));
    g.sized.push_back(layer.name + ".heads");
    if (g.bound.empty()) g.bound = fmt::format("{} has heads of {}", layer.name, out.size(n));
    flow = f;
    flow.heads = last;
    flow.axis = n;
    return true;
  }
  if (f.heads != last - 1 || out.ndim() != last || !same_upto(last - 1)) return false;
  if (layer.type == "Reshape") g.sized.push_back(layer.name + ".width");
  flow = f;
  flow.heads = -1;
  flow.axis = last - 1;
  return true;
}

bool ChannelFollower::dot(const LayerSpec& layer, const Flow& q, const Flow& k, Asks asks, Flow& scores) {
  for (const Flow* f : {&q, &k})
    if (f->parts.size() != 1 || f->parts[0].repeat != 1 || group(f->parts[0]).makers.empty()) return false;
  if ((q.heads < 0) != (k.heads < 0)) return false;
  for (const Flow* f : {&q, &k}) {
    ChannelGroup& g = group(f->parts[0]);
    if (f->heads < 0) block(g, g.channels);
    if (g.bound.empty()) g.bound = fmt::format("{} adds up the products of all of them", layer.name);
  }
  for (const Flow* f : {&q, &k}) {
    if (f->asker.empty()) continue;
    for (ChannelSlot& s : group(f->parts[0]).made)
      if (s.tensor.starts_with(f->asker + ".")) s.asks = asks;
    break;
  }
  join(q.parts[0].group, k.parts[0].group);
  group(q.parts[0]).dotted = true;
  if (q.heads >= 0) {
    group(q.parts[0]).sized.push_back(layer.name + ".scores");
    without_values_[layer.name] = q.parts[0].group;
  }
  scores = begin(1, 1, "products of all channels");
  scores.scores = layer.name;
  return true;
}

bool ChannelFollower::weigh(const Flow& scores, const Flow& v, const Tensor& out, Flow& flow) {
  if (v.axis != out.ndim() - 1) return false;
  flow = v;
  flow.asker.clear();
  const auto asked = without_values_.find(scores.scores);
  if ((v.heads >= 0) != (asked != without_values_.end())) return false;
  if (v.heads < 0) return true;
  // As many heads of each: all are of one width, or stay as they are.
  const Part of{asked->second, 0, 1};
  if (v.parts.size() != 1 || group(of).channels != group(v.parts[0]).channels) return false;
  group(v.parts[0]).sized.push_back(scores.scores + ".scores");
  without_values_.erase(asked);
  return true;
}

bool ChannelFollower::matrix_product(const LayerSpec& layer, const std::vector<Tensor>& in, const Tensor& out,
                                     const std::vector<Flow>& flows, Flow& flow) {
  const Flow &a = flows[0], &b = flows[1];
  if (!a.scores.empty() && b.scores.empty()) return weigh(a, b, out, flow);
  if (a.axis != in[0].ndim() - 1 || b.axis != in[1].ndim() - 2) return false;
  return dot(layer, a, b, Asks::sum, flow);
}

}  // namespace tenon
