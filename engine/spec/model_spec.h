#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "engine/spec/attr.h"

namespace tenon {

/// One layer of a model: its name is the module path ("features.0"), its type a registered layer ("Conv2d").
struct LayerSpec {
  std::string name;
  std::string type;
  std::vector<Attr> attrs;
  double x = 0, y = 0;       ///< place on the builder's canvas, logical pixels; all at 0: it lays them out
  bool off = false;          ///< what it would read goes on in its place: a way to try the model without it
  std::string comment = {};  ///< for people
  std::string shares = {};   ///< the layer whose parameters and buffers it has instead of its own; empty: its own
  const AttrValue* find(const std::string& attr) const;
  bool operator==(const LayerSpec&) const = default;
};

/// A wire from output `from_port` of layer `from` to input `to_port` of layer `to`, by name.
struct WireSpec {
  std::string from;
  int from_port = 0;
  std::string to;
  int to_port = 0;
  bool operator==(const WireSpec&) const = default;
};

/// An attribute of a layer within a sub-model ("conv", "out_channels") that each instance has a value of its own for.
struct OwnAttr {
  std::string layer, attr;
  auto operator<=>(const OwnAttr&) const = default;
};

/// A sub-model: scopes ("layer1.0", "layer1.1") whose layers are the same ones, wired in the same way, and stay so. See
/// Note [Sub-models] in engine/spec/submodel.h.
struct SubModelSpec {
  std::string name;                    ///< "ResidualBlock"
  std::vector<std::string> instances;  ///< at least one
  std::vector<OwnAttr> own = {};       ///< sorted
  bool operator==(const SubModelSpec&) const = default;
};

/// What the builder edits and the project file keeps: layers and wires. The layer types "Input" and "Output" are its
/// ends. There is no second description of a model: the module tree is built from it, the op graph traced from that.
struct ModelSpec {
  std::string name;
  std::vector<LayerSpec> layers;
  std::vector<WireSpec> wires;
  std::vector<SubModelSpec> submodels = {};

  LayerSpec* find(const std::string& layer);
  const LayerSpec* find(const std::string& layer) const;
  /// Layers in an order in which every wire goes forward; throws Error naming a layer on a cycle.
  std::vector<const LayerSpec*> topological() const;

  nlohmann::json to_json() const;
  /// Throws Error naming the key that is missing or of the wrong kind.
  static ModelSpec from_json(const nlohmann::json& j);
  bool operator==(const ModelSpec&) const = default;
};

/// An input that suits a layer's defaults, the batch axis included: what the tests of all layers try it with.
struct LayerExample {
  std::vector<int64_t> shape;
  DType dtype = DType::f32;
  int64_t below = 4;  ///< integers are in [0, below)
};

/// What the builder's palette and inspector know of a layer type; made from the layer's one definition.
struct LayerInfo {
  std::string type, group, help;
  int inputs = 1, outputs = 1;
  std::vector<AttrDef> attrs;
  int optional = 0;                         ///< so many of the last inputs may be left without a wire
  std::vector<LayerExample> examples = {};  ///< by input; those left out are f32 [2, 3, 8, 8]
};
/// Null where no layer of that type is registered; layers() of engine/spec/layer_registry.h lists all.
const LayerInfo* find_layer_type(const std::string& type);

}  // namespace tenon
