#pragma once
#include <functional>
#include <memory>
#include <span>

#include "core/registry.h"
#include "core/tensor.h"
#include "engine/spec/model_spec.h"

namespace tenon {

namespace nn {
class Module;
}

/// What a layer is made from: its spec, its attributes, and what arrives at its ports.
struct LayerArgs {
  const LayerSpec& spec;
  const LayerInfo& info;
  const AttrValues& values;               ///< the spec's, and the defaults of what it leaves out
  std::span<const Meta> inputs;           ///< with the batch axis; that of an optional input without a wire is empty
  Device device;                          ///< of the parameters
  std::vector<Attr>* resolved = nullptr;  ///< where sizes that are taken from the inputs are noted

  int64_t integer(const std::string& attr) const { return values.integer(attr); }
  double number(const std::string& attr) const { return values.number(attr); }
  bool flag(const std::string& attr) const { return values.flag(attr); }
  const std::string& text(const std::string& attr) const { return values.text(attr); }
  const std::vector<int64_t>& ints(const std::string& attr) const { return values.ints(attr); }
  /// A list of one or two numbers, or one number, as height and width.
  Dims pair(const std::string& attr) const { return sizes(attr, 2); }
  /// A list of `axes` numbers, one an axis; one number stands for all.
  Dims sizes(const std::string& attr, int axes) const;
  /// The size of an axis of an input where the attribute is 0 ("from the input"), else the attribute, which must agree
  /// with it.
  int64_t features(const std::string& attr, int axis, size_t input = 0) const;
  /// Notes the value of an attribute that comes from the inputs.
  void note(const std::string& attr, AttrValue value) const;
};

/// One layer type: registered in the file that defines the layer.
///   const bool registered = register_layer({{.type = "ReLU", ...}, [](const LayerArgs&) { return
///   std::make_shared<ReLU>(); }});
struct LayerDef {
  LayerInfo info;
  std::function<std::shared_ptr<nn::Module>(const LayerArgs&)> make;  ///< none: an end of the model
};
bool register_layer(LayerDef def, Place place = Place::current());
/// Sorted by group, then by type.
const Registry<LayerDef>& layers();

/// The attributes of a layer. Throws Error naming one that the type does not have, or that does not fit.
AttrValues layer_values(const LayerSpec& spec, const LayerInfo& info);
/// Checks the attributes and makes the layer; attributes that it takes from what arrives are added to `resolved`.
/// Throws Error naming the attribute or the type.
std::shared_ptr<nn::Module> make_layer(const LayerSpec& spec, std::span<const Meta> inputs, Device device,
                                       std::vector<Attr>* resolved = nullptr);

}  // namespace tenon
