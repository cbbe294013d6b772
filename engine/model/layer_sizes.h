#pragma once
#include <map>
#include <string>

#include "core/layout.h"
#include "engine/spec/model_spec.h"

namespace tenon {

/// Of the tensors of a model, by name: "fc1.weight".
using Sizes = std::map<std::string, Shape>;
/// Throws Error for a model that cannot be built.
Sizes tensor_sizes(const ModelSpec& spec);

/// The sizes that a layer says of itself, as its tensors have them.
void fit_to_tensors(LayerSpec& layer, const Sizes& tensors);

/// Gives an attribute a value, whether the layer has named it or not.
void set_anyway(LayerSpec& layer, const char* name, AttrValue value);
/// ... a number, where the layer names one: 0 stands for what arrives, and still does.
void set_where_said(LayerSpec& layer, const char* name, int64_t value);

/// The layer that has a tensor; null where none does.
const LayerSpec* layer_of(const ModelSpec& spec, const std::string& tensor);
/// The attribute that says how many channels a layer makes: "out_features"; of one that makes none "".
const char* channels_attr(const LayerSpec& layer);

/// The model in which a Linear or a convolution makes another number of channels, together with all that goes with
/// it (channel_groups()): layers whose results are added to its own, depthwise convolutions, norms. Where its
/// channels must stay, its own attribute is changed and nothing else.
ModelSpec with_channels(const ModelSpec& spec, const std::string& layer, int64_t channels);

}  // namespace tenon
