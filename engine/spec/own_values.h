#pragma once
#include <string>

#include "engine/spec/model_spec.h"

// Values that each instance of a sub-model has of its own (SubModelSpec::own); see Note [Sub-models] in
// engine/spec/submodel.h.
namespace tenon {

/// The outermost of the sub-models around a layer whose instances have each a value of their own for an attribute;
/// empty: all have the same one.
std::string own_in(const ModelSpec& spec, const std::string& layer, const std::string& attr);
/// From now on each instance of a sub-model around the layer has a value of its own for an attribute, and those of the
/// sub-models within it; the instances of what is around it are alike. With an empty name all have the layer's value.
void set_own(ModelSpec& spec, const std::string& layer, const std::string& attr, const std::string& submodel);

/// A layer has what another one has for an attribute: its default, where that one was told nothing.
void copy_attr(const LayerSpec& from, LayerSpec& to, const std::string& attr);
/// What each outer instance has a value of its own for, each one within it has, too.
void own_values_inside(ModelSpec& spec);
/// Of a layer, or an attribute, that is not there nobody has a value.
void settle_own_values(const ModelSpec& spec, SubModelSpec& s);

}  // namespace tenon
