#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "engine/spec/layer_registry.h"
#include "engine/spec/model_spec.h"

// Edits of a model that put layers in and take them out. Names are of layers.
namespace tenon {

/// A name and the number at its end; 1 where it has none.
std::pair<std::string, int64_t> numbered(const std::string& name);
/// A name that is not taken: the wanted one, or it with the next number.
std::string next_free(const std::string& wanted, const std::function<bool(const std::string&)>& is_taken);
/// "conv2d", "conv2d2" ...: a name that no layer has.
std::string free_name(const ModelSpec& spec, const std::string& wanted);
/// Of the type's defaults, called as the type is in small letters.
LayerSpec new_layer(const ModelSpec& spec, const LayerInfo& info);
/// A layer behind another one, in the place of whose readers it is read; of a layer without inputs or outputs, only
/// what it can have is wired.
void wire_behind(ModelSpec& spec, const std::string& name, const std::string& behind);
/// Onto a wire: its source feeds the layer, which feeds its target.
void wire_into(ModelSpec& spec, const std::string& name, const WireSpec& wire);
/// Takes layers out; what fed one feeds what it fed, where one thing did.
ModelSpec without_layers(ModelSpec spec, const std::set<std::string>& gone);

}  // namespace tenon
