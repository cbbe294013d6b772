#include "engine/model/layer_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "engine/model/channel_groups.h"
#include "engine/model/graph_module.h"

namespace tenon {
void set_where_said(LayerSpec& layer, const char* name, int64_t value) {
  for (Attr& a : layer.attrs)
    if (a.name == name)
      if (const auto* was = std::get_if<int64_t>(&a.value); was && *was != 0) a.value = value;
}

void set_anyway(LayerSpec& layer, const char* name, AttrValue value) {
  for (Attr& a : layer.attrs)
    if (a.name == name) {
      a.value = std::move(value);
      return;
    }
  layer.attrs.push_back({name, std::move(value)});
}

Sizes tensor_sizes(const ModelSpec& spec) {
  const GraphModule model(spec, {DeviceType::meta});
  Sizes sizes;
  for (const nn::Named& n : model.state_dict()) sizes[n.name] = n.tensor.size();
  return sizes;
}

namespace {
bool is_recurrent(const LayerSpec& layer) {
  return layer.type.starts_with("LSTM") || layer.type.starts_with("GRU") || layer.type.starts_with("RNN");
}
}  // namespace

void fit_to_tensors(LayerSpec& layer, const Sizes& tensors) {
  const auto own = [&](const char* name) {
    const auto at = tensors.find(layer.name + "." + name);
    return at == tensors.end() ? Shape{} : at->second;
  };
  const Shape w = own("weight");
  if (layer.type.starts_with("Transformer")) {
    for (const char* first : {"", "layers.0.", "encoder.layers.0.", "decoder.layers.0."})
      if (const Shape up = own((std::string(first) + "linear1.weight").c_str()); up.n > 0) {
        set_anyway(layer, "dim_feedforward", up[0]);
        set_where_said(layer, "d_model", up[1]);
      }
  } else if (is_recurrent(layer)) {
    const bool cell = layer.type.ends_with("Cell");
    set_anyway(layer, "hidden_size", own(cell ? "weight_hh" : "weight_hh_l0")[1]);
    set_where_said(layer, "input_size", own(cell ? "weight_ih" : "weight_ih_l0")[1]);
  } else if (layer.type == "MultiheadAttention") {
    set_where_said(layer, "embed_dim", own("out_proj.weight")[0]);
  } else if (layer.type.starts_with("Embedding")) {
    set_anyway(layer, "num_embeddings", w[0]);
    set_anyway(layer, "embedding_dim", w[1]);
  } else if (layer.type == "LayerNorm" || layer.type == "RMSNorm") {
    for (Attr& a : layer.attrs)
      if (auto* said = std::get_if<std::vector<int64_t>>(&a.value); said && a.name == "normalized_shape" && w.n > 0)
        for (size_t i = 0; i < said->size(); ++i)
          if ((*said)[i] != 0) (*said)[i] = w[static_cast<int>(i)];
  } else if (layer.type == "GroupNorm") {
    if (w.n > 0) set_where_said(layer, "num_channels", w[0]);
  } else if (w.n == 0) {
    if (const Shape t = own("running_mean"); t.n > 0) set_where_said(layer, "num_features", t[0]);
  } else if (layer.type == "Linear") {
    set_where_said(layer, "in_features", w[1]);
    set_anyway(layer, "out_features", w[0]);
  } else if (layer.type.starts_with("Conv")) {
    const AttrValue* groups = layer.find("groups");
    const bool depthwise = groups && *groups != AttrValue(int64_t{1});
    if (depthwise) set_anyway(layer, "groups", w[0]);
    set_where_said(layer, "in_channels", depthwise ? w[0] : w[1]);
    set_anyway(layer, "out_channels", w[0]);
  } else if (layer.type == "PReLU") {
    set_anyway(layer, "num_parameters", w[0]);
  } else {
    set_where_said(layer, "num_features", w[0]);
  }
}

const LayerSpec* layer_of(const ModelSpec& spec, const std::string& tensor) {
  const LayerSpec* owner = nullptr;
  for (const LayerSpec& l : spec.layers)
    if (tensor.starts_with(l.name + ".") && (!owner || l.name.size() > owner->name.size())) owner = &l;
  return owner;
}

const char* channels_attr(const LayerSpec& layer) {
  if (layer.type == "Linear") return "out_features";
  if (layer.type.starts_with("Embedding")) return "embedding_dim";
  if (layer.type.starts_with("Transformer")) return "dim_feedforward";
  if (is_recurrent(layer)) return "hidden_size";
  return layer.type.starts_with("Conv") ? "out_channels" : "";
}

namespace {

using Together = std::vector<const ChannelGroup*>;

/// The group that a layer says the size of, and all that must then be of that size.
Together of_one_size(const std::vector<ChannelGroup>& groups, const LayerSpec& layer) {
  const std::string own = layer.name + "." + channels_attr(layer);
  const auto holds = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  Together all;
  for (const ChannelGroup& g : groups)
    if (all.empty() ? holds(g.makers, layer.name) || holds(g.sized, own) : holds(g.sized, own)) all.push_back(&g);
  for (size_t i = 0; i < all.size(); ++i)
    for (const ChannelGroup& g : groups)
      if (std::find(all.begin(), all.end(), &g) == all.end() &&
          std::any_of(g.sized.begin(), g.sized.end(), [&](const std::string& s) { return holds(all[i]->sized, s); }))
        all.push_back(&g);
  return all;
}

/// `count` blocks of `size`, of which there are more if they go into as many channels, else larger ones.
std::pair<int64_t, int64_t> blocks_in(int64_t is, int64_t count, int64_t size, const LayerSpec& layer,
                                      const char* attr) {
  if (count == 1) return {1, is};
  if (is % size == 0) return {is / size, size};
  if (is % count == 0) return {count, is / count};
  throw Error::usage(
      fmt::format("{} channels: {} ({}) has {} = {} of {} each", is, layer.name, layer.type, attr, count, size),
      fmt::format("take a multiple of {}, or of {}", size, count));
}

/// A Reshape or Unflatten that takes heads apart, or puts them together: -1 stands for the rest, and still does.
void keep_shape(LayerSpec& layer, bool apart, int64_t was, int64_t is) {
  const char* attr = layer.type == "Reshape" ? "shape" : "unflattened_size";
  for (Attr& a : layer.attrs) {
    auto* sizes = a.name == attr ? std::get_if<std::vector<int64_t>>(&a.value) : nullptr;
    if (!sizes || sizes->size() < (apart ? 2u : 1u)) continue;
    int64_t& last = sizes->back();
    if (!apart) {
      if (last > 0) last = is;
      continue;
    }
    int64_t& first = (*sizes)[sizes->size() - 2];
    const int64_t size = last > 0 ? last : was / first, count = was / size;
    const auto [heads, each] = blocks_in(is, count, size, layer, attr);
    if (first > 0) first = heads;
    if (last > 0) last = each;
  }
}

/// Heads, or groups of a GroupNorm, of as many channels as they had, where these go into it.
void keep_blocks(LayerSpec& layer, const std::string& what, int64_t was, int64_t is) {
  if (what == "heads" || what == "width") return keep_shape(layer, what == "heads", was, is);
  const char* attr = layer.type == "MultiheadAttention"      ? "num_heads"
                     : layer.type.starts_with("Transformer") ? "nhead"
                     : layer.type == "GroupNorm"             ? "num_groups"
                                                             : nullptr;
  if (!attr) return;
  const AttrValue* said = layer.find(attr);
  const int64_t count = said ? std::get<int64_t>(*said) : 1;
  if (count > 1) set_anyway(layer, attr, blocks_in(is, count, was / count, layer, attr).first);
}

}  // namespace

ModelSpec with_channels(const ModelSpec& spec, const std::string& layer, int64_t channels) {
  ModelSpec changed = spec;
  LayerSpec* own = changed.find(layer);
  if (!own) throw Error::usage("the model has no layer \"" + layer + "\"");
  std::vector<ChannelGroup> groups;
  try {
    groups = channel_groups(spec);
  } catch (const Error&) {  // on the way from one model to another, whose layers are changed one by one
  }
  const Together all = of_one_size(groups, *own);
  if (all.empty() || std::any_of(all.begin(), all.end(), [](const ChannelGroup* g) { return !g->fixed.empty(); })) {
    set_anyway(*own, channels_attr(*own), channels);
    return changed;
  }
  Sizes sizes = tensor_sizes(spec);
  std::set<std::string> touched;
  std::set<std::pair<std::string, std::string>> blocks;  // layers, and what of them
  for (const ChannelGroup* group : all) {
    for (const auto* list : {&group->made, &group->along, &group->read})
      for (const ChannelSlot& s : *list) {
        sizes.at(s.tensor)[s.axis] += (channels - group->channels) * s.repeat;
        const LayerSpec* l = layer_of(spec, s.tensor);
        if (!l) continue;
        touched.insert(l->name);
        if (l->type == "GroupNorm") blocks.insert({l->name, "num_groups"});
      }
    for (const std::string& s : group->sized)
      if (const size_t dot = s.rfind('.'); s.substr(dot) != ".dim_feedforward")
        blocks.insert({s.substr(0, dot), s.substr(dot + 1)});
  }
  for (const std::string& name : touched) fit_to_tensors(*changed.find(name), sizes);
  for (const auto& [name, what] : blocks) keep_blocks(*changed.find(name), what, all[0]->channels, channels);
  return changed;
}

}  // namespace tenon
