#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/spec/model_spec.h"

namespace tenon::python {

/// The layers of a model in an order in which every wire goes forward, and what each reads.
struct Flow {
  /// Throws Error for a circle, for a wire without an end, for names that no module tree has.
  explicit Flow(const ModelSpec& spec);
  std::vector<const LayerSpec*> layers;
  std::vector<std::vector<int>> sources;  ///< by layer and port; -1: nothing
  std::vector<std::vector<int>> readers;
  std::set<std::string> instances;  ///< scopes that are sub-models: classes, whatever their layers are called
};

/// A place in the tree that the layers' paths make ("layer1.0.conv1"): a layer, or a group of them.
struct Unit {
  enum class Kind : uint8_t {
    layer,
    sequence,  ///< nn.Sequential: a chain of parts called 0, 1, 2, ...
    block,     ///< a class with a forward of its own
    loose,     ///< nn.ModuleDict: its parts are called one by one, because they do not run one behind the other
  };
  Kind kind = Kind::layer;
  std::string name, path;
  int layer = -1;  ///< in the flow
  std::vector<std::unique_ptr<Unit>> parts;
  std::vector<int> inside;   ///< layers, in the order of the flow
  std::vector<int> in, out;  ///< layers outside that it reads, each once; layers inside that are read outside
  bool holds(int layer) const;
};

/// The tree of a model, whose root holds all layers but Input and Output. Throws Error for a layer that stands where a
/// group is.
std::unique_ptr<Unit> outline(const Flow& flow);

/// The groups of a model that a source has a class for. None where outline() throws.
std::set<std::string> class_scopes(const ModelSpec& spec);

}  // namespace tenon::python
