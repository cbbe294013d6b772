#pragma once
#include <map>
#include <string>
#include <vector>

#include "engine/spec/model_spec.h"

// Note [Sub-models]
// A model is flat: its layers are named by module paths, and whoever walks it (shapes, training, surgery, export) needs
// to know nothing of sub-models. A sub-model is a list of scopes, its instances: the layers below one are those below
// any other, of the same names, types, attributes and wires among each other. What differs is where an instance stands,
// what feeds it and reads it, whether it is off as a whole, whose weights it has, and the values that each instance has
// of its own (engine/spec/own_values.h: Block with 64 channels here, 128 there). Whatever else changes one instance is
// carried to the others (mirror_edits); one that was changed by what knows nothing of it (surgery that prunes a layer)
// is an instance no longer (settle_submodels), and a group like any other.
//
// Where instances of a sub-model stand within those of another, a value that each outer instance has of its own each
// inner one has of its own as well: else the inner ones would be the same in all outer ones.
//
// Weights are shared layer by layer (LayerSpec::shares). An instance shares those of another where each of its layers
// with parameters shares those of the other's layer of that name.
namespace tenon {

/// Whether a layer of that name lies in a scope: "layer1.0.conv" in "layer1.0".
bool in_scope(const std::string& layer, const std::string& scope);
/// Its name within the scope: "conv".
std::string name_within(const std::string& layer, const std::string& scope);

/// The sub-model that a scope is an instance of; null: of none.
const SubModelSpec* submodel_of(const ModelSpec& spec, const std::string& scope);
/// The innermost instance that a layer lies in; empty: in none.
std::string instance_around(const ModelSpec& spec, const std::string& layer);
/// The instance that a scope is, or that is all there is in it ("tail.end" in "tail"); empty: there is none.
std::string instance_filling(const ModelSpec& spec, const std::string& scope);
const SubModelSpec* find_submodel(const ModelSpec& spec, const std::string& name);
/// The sub-models that a layer lies in an instance of, the innermost first.
std::vector<const SubModelSpec*> submodels_around(const ModelSpec& spec, const std::string& layer);

/// A wire's end inside a scope, by the layer's name within it: what a sub-model is given at an input or gives at an
/// output.
struct ScopePort {
  std::string layer;
  int port = 0;
  auto operator<=>(const ScopePort&) const = default;
};
/// What an instance can be fed at, and what it gives. An input is every place that one value arrives at.
struct ScopePorts {
  std::vector<std::vector<ScopePort>> inputs;
  std::vector<ScopePort> outputs;
};
/// Those of a scope as it is wired; of an instance those of whichever of its sub-model has most wires, so that one that
/// is not wired yet has them too. Where nothing is read outside, an output is what nothing reads.
ScopePorts ports_of(const ModelSpec& spec, const std::string& scope);

/// Whether two scopes hold the same layers, wired alike. What instances of `of` have of their own may differ.
bool same_inside(const ModelSpec& spec, const std::string& a, const std::string& b, const SubModelSpec* of = nullptr);
/// Forgets instances that are not like the first any longer, scopes that hold nothing, and sub-models without an
/// instance.
void settle_submodels(ModelSpec& spec);
/// What was done to one instance of a sub-model is done to the others too: `after` is an edit of `before`. What an
/// instance is fed with and who reads it stays, as far as it has the ports. Layers that share weights keep the same
/// attributes. Returns how many other instances were changed, by name of the sub-model.
std::map<std::string, int> mirror_edits(const ModelSpec& before, ModelSpec& after);

/// The other instance whose weights an instance has, as far as any of its layers shares; empty: they are its own.
std::string shared_instance(const ModelSpec& spec, const std::string& scope);
/// A layer whose weights' owner is gone, or shares them itself: with the owner of those, or it becomes the owner, and
/// what shared with the one that is gone shares with it.
void settle_shares(ModelSpec& spec);

}  // namespace tenon
