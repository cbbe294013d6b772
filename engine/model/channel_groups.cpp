#include "engine/model/channel_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/state.h"
#include "engine/nn/module.h"
#include "engine/spec/layer_registry.h"
#include "engine/spec/wiring.h"

namespace tenon {
namespace {

bool begins_with(const std::string& text, std::initializer_list<const char*> heads) {
  return std::any_of(heads.begin(), heads.end(), [&](const char* h) { return text.starts_with(h); });
}
bool is_one_of(const std::string& text, std::initializer_list<const char*> all) {
  return std::any_of(all.begin(), all.end(), [&](const char* a) { return text == a; });
}

/// Every channel of the output is made of the same one of the input, wherever the channels lie.
bool is_elementwise(const LayerInfo& info) {
  if (info.group == "Activation")
    return !is_one_of(info.type, {"Softmax", "LogSoftmax", "Softmin", "Softmax2d", "GLU", "PReLU"});
  return is_one_of(info.type, {"Identity", "Cast", "Log1p", "Dropout", "AlphaDropout"});
}
/// The same, where the channels are axis 1.
bool is_channelwise(const std::string& type) {
  return begins_with(type, {"MaxPool", "AvgPool", "LPPool", "AdaptiveAvgPool", "AdaptiveMaxPool", "ZeroPad",
                            "ConstantPad", "ReflectionPad", "ReplicationPad", "CircularPad", "FractionalMaxPool"}) ||
         is_one_of(type, {"Upsample", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"});
}

}  // namespace

ChannelFollower::ChannelFollower(const ModelSpec& spec) {
  const NoGrad no_grad;
  const PhaseScope build(Phase::build, Category::parameter);
  const Wiring wiring(spec);
  for (const LayerSpec& l : spec.layers)
    if (!l.shares.empty()) shared_[l.name] = l.shares, shared_[l.shares] = l.name;
  for (const WireSpec& w : spec.wires) ++readers_[w.from];
  for (const LayerSpec* layer : wiring.order) {
    try {
      follow(*layer, wiring.inputs_of(*layer));
    } catch (const Error& e) {
      throw e.in("layer " + layer->name);
    }
  }
}

std::vector<ChannelGroup> ChannelFollower::result() {
  for (const auto& [product, g] : without_values_)
    if (ChannelGroup& of = groups_[root(g)]; of.fixed.empty())
      of.fixed = fmt::format("what is made of {} is not followed", product);
  std::vector<ChannelGroup> out;
  for (size_t i = 0; i < groups_.size(); ++i)
    if (root(i) == i && !groups_[i].makers.empty()) out.push_back(std::move(groups_[i]));
  return out;
}

size_t ChannelFollower::root(size_t i) const {
  while (parent_[i] != i) i = parent_[i];
  return i;
}

void ChannelFollower::join(size_t a, size_t b) {
  a = root(a), b = root(b);
  if (a == b) return;
  if (b < a) std::swap(a, b);
  ChannelGroup &to = groups_[a], &from = groups_[b];
  const auto append = [](auto& x, auto& y) { x.insert(x.end(), y.begin(), y.end()); };
  append(to.makers, from.makers);
  append(to.made, from.made);
  append(to.along, from.along);
  append(to.read, from.read);
  append(to.sized, from.sized);
  append(to.normed, from.normed);
  to.dotted = to.dotted || from.dotted;
  if (to.fixed.empty()) to.fixed = from.fixed;
  if (to.bound.empty()) to.bound = from.bound;
  block(to, from.block);
  parent_[b] = a;
}

void ChannelFollower::block(ChannelGroup& g, int64_t size) {
  if (std::max(g.block, size) % std::min(g.block, size) && g.fixed.empty())
    g.fixed = fmt::format("groups of {} and of {} lie across each other", g.block, size);
  g.block = std::max(g.block, size);
}

ChannelFollower::Flow ChannelFollower::begin(int axis, int64_t channels, const std::string& fixed) {
  groups_.push_back(
      {.channels = channels, .makers = {}, .made = {}, .along = {}, .read = {}, .fixed = fixed, .bound = {}});
  parent_.push_back(parent_.size());
  return {axis, {{groups_.size() - 1, channels, 1}}};
}

void ChannelFollower::hold(const Flow& f, const std::string& why) {
  for (const Part& p : f.parts)
    if (group(p).fixed.empty()) group(p).fixed = why;
}

void ChannelFollower::put(const Flow& f, std::vector<ChannelSlot> ChannelGroup::*list, const std::string& tensor,
                          int axis) {
  int64_t at = 0;
  for (const Part& p : f.parts) {
    (group(p).*list).push_back({tensor, axis, at, p.repeat});
    at += p.channels * p.repeat;
  }
}

void ChannelFollower::make(const Flow& f, const LayerSpec& layer, const nn::Module& module, int weight_axis) {
  ChannelGroup& g = group(f.parts[0]);
  g.makers.push_back(layer.name);
  put(f, &ChannelGroup::made, layer.name + ".weight", weight_axis);
  if (module.own("bias")) put(f, &ChannelGroup::made, layer.name + ".bias", 0);
}

void ChannelFollower::follow(const LayerSpec& layer, const std::vector<const LayerSpec*>& from) {
  std::vector<Tensor> in;
  std::vector<Flow> flows;
  for (const LayerSpec* f : from) {
    in.push_back(f ? values_.at(f) : Tensor());
    if (f) flows.push_back(flows_.at(f));
  }
  const LayerInfo* info = find_layer_type(layer.type);
  if (!(info && is_elementwise(*info)) &&
      !is_one_of(layer.type, {"MatMul", "ScaledDotProductAttention", "Permute", "Unflatten", "Reshape", "Flatten"}))
    for (size_t i = 0, next = 0; i < in.size(); ++i) {
      if (!in[i]) continue;
      Flow& f = flows[next++];
      if (f.heads < 0) continue;
      const std::string why = fmt::format("{} ({}) reads parts of them", layer.name, layer.type);
      hold(f, why);
      f = begin(1, in[i].size(1), why);
    }
  if (layer.type == "Output") return hold(flows.at(0), "the model's output");
  if (layer.type == "Input") {
    const Tensor x = with_batch(input_meta(layer), 2);
    flows_[&layer] = begin(1, x.ndim() > 1 ? x.size(1) : 1, "the model's input");
    values_[&layer] = x;
    return;
  }
  std::vector<Meta> metas;
  for (const Tensor& t : in) metas.push_back(t ? t.meta() : Meta{});
  const auto module = make_layer(layer, metas, {DeviceType::meta});
  const Tensor out = (*module)(in);
  Flow flow;
  const auto shared = shared_.find(layer.name);
  if (shared != shared_.end() || !known(layer, *module, in, out, flows, flow)) {
    const std::string why = shared != shared_.end()
                                ? fmt::format("{} shares its weights with {}", layer.name, shared->second)
                                : fmt::format("{} ({}) is not followed", layer.name, layer.type);
    for (const Flow& f : flows) hold(f, why);
    flow = begin(1, out.ndim() > 1 ? out.size(1) : 1, why);
  }
  // What multiplies every channel alike can be done by the Linear before it.
  if (readers_[layer.name] > 1 ||
      !is_one_of(layer.type, {"Linear", "Identity", "Dropout", "Permute", "Unflatten", "Reshape"}))
    flow.asker.clear();
  flows_[&layer] = std::move(flow);
  values_[&layer] = out;
}

bool ChannelFollower::known(const LayerSpec& layer, const nn::Module& module, const std::vector<Tensor>& in,
                            const Tensor& out, const std::vector<Flow>& flows, Flow& flow) {
  if (flows.empty()) return false;
  const LayerInfo& info = *find_layer_type(layer.type);
  const AttrValues values = layer_values(layer, info);
  const Flow& f = flows[0];
  if (is_elementwise(info) && flows.size() == 1) return flow = f, true;
  if (layer.type == "Softmax" && !f.scores.empty()) return flow = f, true;
  if (layer.type == "MatMul") return matrix_product(layer, in, out, flows, flow);
  if (layer.type == "ScaledDotProductAttention")
    return flows.size() >= 3 && flows[1].axis == in[1].ndim() - 1 &&
           dot(layer, f, flows[1], values.number("scale") > 0 ? Asks::sum : Asks::root, flow) &&
           weigh(Flow(flow), flows[2], out, flow);
  if (is_one_of(layer.type, {"Unflatten", "Reshape", "Flatten"}) && regrouped(layer, in[0], out, f, flow)) return true;
  if (f.heads >= 0 && is_one_of(layer.type, {"Unflatten", "Reshape", "Flatten"})) return false;
  if (layer.type == "Permute") return moved(layer.type, values, in[0].ndim(), f, flow);
  if (begins_with(layer.type, {"LSTM", "GRU", "RNN"})) return recurrent(layer, module, values, in, out, f, flow);
  if (is_channelwise(layer.type) && flows.size() == 1) return flow = f, f.axis == 1;
  if (layer.type == "Linear") return linear(layer, module, in[0], out, f, flow), true;
  if (is_one_of(layer.type, {"Conv1d", "Conv2d", "Conv3d"})) return conv(layer, module, values, f, flow);
  if (begins_with(layer.type, {"BatchNorm", "InstanceNorm"}) || layer.type == "PReLU")
    return each_channel(layer, module, f, flow);
  if (is_one_of(layer.type, {"Add", "Sub", "Mul"}) && flows.size() == 2 &&
      flows[0].scores.empty() != flows[1].scores.empty()) {  // a mask, or a factor
    hold(flows[f.scores.empty() ? 0 : 1], fmt::format("{} goes into products of queries and keys", layer.name));
    return flow = flows[f.scores.empty() ? 1 : 0], true;
  }
  if (is_one_of(layer.type, {"Add", "Sub", "Mul"})) return together(flows, in, flow);
  if (layer.type == "Concat") return concat(values.integer("dim"), in[0].ndim(), flows, flow);
  if (layer.type == "Flatten") return flatten(values, in[0], f, flow);
  if (layer.type == "Mean") return mean(values, in[0].ndim(), f, flow);
  if (is_one_of(layer.type, {"LayerNorm", "RMSNorm"})) return layer_norm(layer, module, values, in[0], f, flow);
  if (layer.type == "GroupNorm") return group_norm(layer, module, values.integer("num_groups"), f, flow);
  if (is_one_of(layer.type, {"Embedding", "EmbeddingBag"})) return embedding(layer, out, flow), true;
  if (is_one_of(layer.type, {"LearnedPositions", "LearnedTokens"})) {
    if (f.axis != 2) return false;
    put(f, &ChannelGroup::along, layer.name + ".weight", 1);
    return flow = f, true;
  }
  if (layer.type == "Select") return moved(layer.type, values, in[0].ndim(), f, flow);
  if (layer.type == "MultiheadAttention") return attention_layer(layer, values, in, out, flows, flow);
  if (layer.type.starts_with("Transformer")) return transformer(layer, module, values, in, flows, flow);
  return false;
}

bool ChannelFollower::layer_norm(const LayerSpec& layer, const nn::Module& module, const AttrValues& values,
                                 const Tensor& x, const Flow& f, Flow& flow) {
  const int first = x.ndim() - static_cast<int>(values.ints("normalized_shape").size());
  flow = f;
  if (f.axis < first) return true;  // each channel by itself
  for (const char* name : {"weight", "bias"})
    if (module.own(name)) put(f, &ChannelGroup::along, layer.name + "." + name, f.axis - first);
  norm_over(f, layer.name, fmt::format("{} ({}) sees all of them", layer.name, layer.type));
  return true;
}

void ChannelFollower::norm_over(const Flow& f, const std::string& module, const std::string& bound) {
  for (const Part& p : f.parts) {
    ChannelGroup& g = group(p);
    if (std::find(g.normed.begin(), g.normed.end(), module) == g.normed.end()) g.normed.push_back(module);
    if (g.bound.empty()) g.bound = bound;
  }
}

bool ChannelFollower::group_norm(const LayerSpec& layer, const nn::Module& module, int64_t groups, const Flow& f,
                                 Flow& flow) {
  if (f.axis != 1 || f.parts.size() != 1 || f.parts[0].repeat != 1) return false;
  for (const char* name : {"weight", "bias"})
    if (module.own(name)) put(f, &ChannelGroup::along, layer.name + "." + name, 0);
  ChannelGroup& g = group(f.parts[0]);
  if (groups < g.channels) {
    block(g, g.channels / groups);
    if (g.bound.empty()) g.bound = fmt::format("{} (GroupNorm) has groups of {}", layer.name, g.channels / groups);
  }
  flow = f;
  return true;
}

void ChannelFollower::embedding(const LayerSpec& layer, const Tensor& out, Flow& flow) {
  flow = begin(out.ndim() - 1, out.size(-1));
  group(flow.parts[0]).makers.push_back(layer.name);
  put(flow, &ChannelGroup::made, layer.name + ".weight", 1);
}

bool ChannelFollower::moved(const std::string& type, const AttrValues& values, int axes, const Flow& f, Flow& flow) {
  flow = f;
  if (type == "Select") {
    const int64_t dim = values.integer("dim"), at = dim < 0 ? dim + axes : dim;
    if (at < f.axis) --flow.axis;
    return at != f.axis;
  }
  const std::vector<int64_t>& dims = values.ints("dims");
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t from = dims[i] < 0 ? dims[i] + axes : dims[i];
    if (from == f.axis) flow.axis = static_cast<int>(i);
    if (from == f.heads) flow.heads = static_cast<int>(i);
  }
  return true;
}

void ChannelFollower::linear(const LayerSpec& layer, const nn::Module& module, const Tensor& x, const Tensor& out,
                             const Flow& f, Flow& flow) {
  if (f.axis == x.ndim() - 1)
    put(f, &ChannelGroup::read, layer.name + ".weight", 1);
  else
    hold(f, fmt::format("{} (Linear) reads another axis", layer.name));
  flow = begin(out.ndim() - 1, out.size(-1));
  flow.asker = layer.name;
  make(flow, layer, module, 0);
}

bool ChannelFollower::conv(const LayerSpec& layer, const nn::Module& module, const AttrValues& values, const Flow& f,
                           Flow& flow) {
  const Tensor w = module.own("weight");
  const int64_t groups = values.integer("groups");
  const bool plain = f.axis == 1 && std::all_of(f.parts.begin(), f.parts.end(), [](auto& p) { return p.repeat == 1; });
  if (!plain) return false;
  if (groups == 1) {
    put(f, &ChannelGroup::read, layer.name + ".weight", 1);
    flow = begin(1, w.size(0));
    make(flow, layer, module, 0);
    return true;
  }
  if (w.size(1) != 1 || w.size(0) != groups) return false;
  put(f, &ChannelGroup::along, layer.name + ".weight", 0);
  if (module.own("bias")) put(f, &ChannelGroup::along, layer.name + ".bias", 0);
  flow = f;
  return true;
}

bool ChannelFollower::each_channel(const LayerSpec& layer, const nn::Module& module, const Flow& f, Flow& flow) {
  int64_t all = 0;
  for (const Part& p : f.parts) all += p.channels * p.repeat;
  for (const auto& list : {module.parameters(), module.buffers()})
    for (const nn::Named& n : list)
      if (n.tensor.numel() > 1 && (f.axis != 1 || n.tensor.ndim() != 1 || n.tensor.size(0) != all)) return false;
  if (f.axis != 1 && layer.type != "PReLU") return false;
  for (const auto& list : {module.parameters(), module.buffers()})
    for (const nn::Named& n : list)
      if (n.tensor.ndim() == 1 && n.tensor.size(0) == all && (all > 1 || layer.type != "PReLU"))
        put(f, &ChannelGroup::along, layer.name + "." + n.name, 0);
  flow = f;
  return true;
}

bool ChannelFollower::together(const std::vector<Flow>& flows, const std::vector<Tensor>& in, Flow& flow) {
  if (flows.size() != 2 || in[0].ndim() != in[1].ndim() || flows[0].axis != flows[1].axis) return false;
  if (flows[0].parts != flows[1].parts) return false;
  for (size_t i = 0; i < flows[0].parts.size(); ++i) join(flows[0].parts[i].group, flows[1].parts[i].group);
  flow = flows[0];
  return true;
}

bool ChannelFollower::concat(int64_t dim, int axes, const std::vector<Flow>& flows, Flow& flow) {
  if (dim < 0) dim += axes;
  flow = flows[0];
  for (size_t i = 1; i < flows.size(); ++i) {
    if (flows[i].axis != flow.axis) return false;
    if (dim == flow.axis) {
      flow.parts.insert(flow.parts.end(), flows[i].parts.begin(), flows[i].parts.end());
      continue;
    }
    if (flows[i].parts != flow.parts) return false;
    for (size_t k = 0; k < flow.parts.size(); ++k) join(flow.parts[k].group, flows[i].parts[k].group);
  }
  return true;
}

bool ChannelFollower::flatten(const AttrValues& values, const Tensor& x, const Flow& f, Flow& flow) {
  const int n = x.ndim();
  int64_t first = values.integer("start_dim"), last = values.integer("end_dim");
  if (last < 0) last += n;
  flow = f;
  if (f.axis < first || first >= last) return true;
  if (f.axis > last) return flow.axis -= static_cast<int>(last - first), true;
  int64_t before = 1, behind = 1;
  for (int i = static_cast<int>(first); i <= last; ++i)
    if (i != f.axis) (i < f.axis ? before : behind) *= x.size(i);
  flow.axis = static_cast<int>(first);
  for (Part& p : flow.parts) p.repeat *= behind;
  return before == 1;
}

bool ChannelFollower::mean(const AttrValues& values, int axes, const Flow& f, Flow& flow) {
  flow = f;
  for (int64_t d : values.ints("dims")) {
    if (d < 0) d += axes;
    if (d == f.axis) return false;
    if (d < f.axis && !values.flag("keepdim")) --flow.axis;
  }
  return true;
}

std::vector<ChannelGroup> channel_groups(const ModelSpec& spec) { return ChannelFollower(spec).result(); }

}  // namespace tenon
