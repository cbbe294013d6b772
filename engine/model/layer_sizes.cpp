#include "engine/model/layer_sizes.h"

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

void fit_to_tensors(LayerSpec& layer, const Sizes& tensors) {
  const auto own = [&](const char* name) {
    const auto at = tensors.find(layer.name + "." + name);
    return at == tensors.end() ? Shape{} : at->second;
  };
  const Shape w = own("weight");
  if (layer.type.starts_with("Transformer")) {
    set_anyway(layer, "dim_feedforward", own("linear1.weight")[0]);
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
  if (layer.type.starts_with("Transformer")) return "dim_feedforward";
  return layer.type.starts_with("Conv") ? "out_channels" : "";
}

ModelSpec with_channels(const ModelSpec& spec, const std::string& layer, int64_t channels) {
  ModelSpec changed = spec;
  LayerSpec* own = changed.find(layer);
  if (!own) throw Error::usage("the model has no layer \"" + layer + "\"");
  std::vector<ChannelGroup> groups;
  try {
    groups = channel_groups(spec);
  } catch (const Error&) {  // on the way from one model to another, whose layers are changed one by one
  }
  const auto group = std::find_if(groups.begin(), groups.end(), [&](const ChannelGroup& g) {
    return g.fixed.empty() && std::find(g.makers.begin(), g.makers.end(), layer) != g.makers.end();
  });
  if (group == groups.end()) {
    set_anyway(*own, channels_attr(*own), channels);
    return changed;
  }
  Sizes sizes = tensor_sizes(spec);
  std::set<std::string> touched;
  for (const auto* list : {&group->made, &group->along, &group->read})
    for (const ChannelSlot& s : *list) {
      sizes.at(s.tensor)[s.axis] += (channels - group->channels) * s.repeat;
      if (const LayerSpec* l = layer_of(spec, s.tensor)) touched.insert(l->name);
    }
  for (const std::string& name : touched) fit_to_tensors(*changed.find(name), sizes);
  return changed;
}

}  // namespace tenon
