#include "engine/spec/layer_registry.h"

#include "core/error.h"

namespace tenon {

static Registry<LayerDef>& registry() {
  static auto& all =
      *new Registry<LayerDef>("layer type", [](const LayerDef& d) { return d.info.group + "/" + d.info.type; });
  return all;
}

bool register_layer(LayerDef def, Place place) { return registry().add(std::move(def), place); }
const Registry<LayerDef>& layers() { return registry(); }

const LayerInfo* find_layer_type(const std::string& type) {
  const LayerDef* def = layers().find(type);
  return def ? &def->info : nullptr;
}

Dims LayerArgs::sizes(const std::string& attr, int axes) const {
  std::vector<int64_t> v = ints(attr);
  if (v.size() == 1) return Dims::filled(axes, v[0]);
  if (static_cast<int>(v.size()) == axes) return Dims(v);
  throw Error(attr + " is a list of " + std::to_string(v.size()) + " numbers; it must be one number, or " +
              (axes == 2 ? "height and width" : std::to_string(axes) + ", one an axis"));
}
int64_t LayerArgs::features(const std::string& attr, int axis, size_t input) const {
  const Shape& s = inputs[input].shape;
  int at = axis < 0 ? axis + s.n : axis;
  int64_t given = integer(attr);
  if (at < 0 || at >= s.n)
    throw Error("its input has shape " + to_string(s) + ", which has no axis " + std::to_string(axis));
  if (given == 0 || given == s[at]) {
    note(attr, s[at]);
    return s[at];
  }
  throw Error(attr + " is " + std::to_string(given) + ", but its input of shape " + to_string(s) + " has " +
                  std::to_string(s[at]),
              "set " + attr + " to " + std::to_string(s[at]) + ", or to 0 to take it from the input");
}

void LayerArgs::note(const std::string& attr, AttrValue value) const {
  if (resolved) resolved->push_back({attr, std::move(value)});
}

AttrValues layer_values(const LayerSpec& spec, const LayerInfo& info) {
  try {
    return AttrValues(info.attrs, spec.attrs, info.type);
  } catch (const Error& e) {
    throw Error(e.message(), e.hint());  // what a model says is none of the words on a command line
  }
}

std::shared_ptr<nn::Module> make_layer(const LayerSpec& spec, std::span<const Meta> inputs, Device device,
                                       std::vector<Attr>* resolved) {
  const LayerDef* def = layers().find(spec.type);
  if (!def) {
    const std::vector<std::string> names = layers().names();
    const std::string near = near_names(spec.type, names.data(), names.size());
    throw Error("there is no layer type \"" + spec.type + "\"" + (near.empty() ? "" : " (" + near + ")"),
                "a plug-in may bring it: tenon --plugin FILE.so");
  }
  const AttrValues values = layer_values(spec, def->info);
  if (static_cast<int>(inputs.size()) != def->info.inputs)
    throw Error(spec.type + " takes " + std::to_string(def->info.inputs) + " inputs, not " +
                std::to_string(inputs.size()));
  if (!def->make) throw Error(spec.type + " marks an end of the model and makes no module");
  return def->make({spec, def->info, values, inputs, device, resolved});
}

}  // namespace tenon
