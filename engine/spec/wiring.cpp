#include "engine/spec/wiring.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/error.h"
#include "engine/spec/layer_registry.h"

namespace tenon {

Wiring::Wiring(const ModelSpec& spec) : order(spec.topological()) {
  for (const char* end : {"Input", "Output"}) {
    int count = 0;
    for (const LayerSpec& l : spec.layers) count += l.type == end;
    if (count == 0) throw Error(std::string("the model has no ") + end + " layer", "add one");
    if (count > 1)
      throw Error("the model has " + std::to_string(count) + " " + end + " layers",
                  std::string("it needs exactly one ") + end);
  }
  std::unordered_map<std::string_view, const LayerSpec*> named;
  for (const LayerSpec& l : spec.layers) {
    named.emplace(l.name, &l);
    if (l.off && (l.type == "Input" || l.type == "Output"))
      throw Error("\"" + l.name + "\" is off: a model has no " + l.type + " then", "turn it on again");
  }
  for (const WireSpec& w : spec.wires) {
    const LayerSpec *from = named.at(w.from), *to = named.at(w.to);
    std::string wire = "the wire from \"" + w.from + "\" to \"" + w.to + "\"";
    const LayerDef *source = layers().find(from->type), *target = layers().find(to->type);
    if (source && (w.from_port < 0 || w.from_port >= source->info.outputs))
      throw Error(wire + " begins at port " + std::to_string(w.from_port) + ", which a " + from->type +
                  " does not have");
    if (target && (w.to_port < 0 || w.to_port >= target->info.inputs))
      throw Error(wire + " ends at port " + std::to_string(w.to_port) + ", which a " + to->type + " does not have");
    if (!sources_[w.to].emplace(w.to_port, from).second)
      throw Error("two wires end at port " + std::to_string(w.to_port) + " of \"" + w.to + "\"",
                  "remove one, or join them in an Add layer");
  }
  for (const LayerSpec* layer : order) {  // those in front first: several that are off may follow each other
    auto found = sources_.find(layer->name);
    if (found == sources_.end()) continue;
    for (auto source = found->second.begin(); source != found->second.end();) {
      if (!source->second->off) {
        ++source;
        continue;
      }
      const auto around = sources_.find(source->second->name);
      if (around != sources_.end() && around->second.count(0))
        (source++)->second = around->second.at(0);
      else
        source = found->second.erase(source);
    }
  }
  std::erase_if(order, [](const LayerSpec* l) { return l->off; });
}

std::vector<const LayerSpec*> Wiring::inputs_of(const LayerSpec& layer) const {
  std::vector<const LayerSpec*> in;
  const LayerInfo* info = find_layer_type(layer.type);
  auto found = sources_.find(layer.name);
  for (int port = 0; info && port < info->inputs; ++port) {
    if (found == sources_.end() || !found->second.count(port)) {
      if (port >= info->inputs - info->optional) {
        in.push_back(nullptr);
        continue;
      }
      throw Error(
          info->inputs == 1 ? "nothing is wired to its input" : "nothing is wired to its input " + std::to_string(port),
          "draw a wire from another layer's output");
    }
    in.push_back(found->second.at(port));
  }
  return in;
}

Meta input_meta(const LayerSpec& input) {
  const LayerInfo& info = *find_layer_type("Input");
  const AttrValues values = layer_values(input, info);
  std::vector<int64_t> shape = values.ints("shape");
  if (shape.size() >= kMaxDims)
    throw Error("shape has " + std::to_string(shape.size()) + " axes; at most " + std::to_string(kMaxDims - 1) +
                " fit beside the batch");
  for (int64_t s : shape)
    if (s < 1) throw Error("shape " + to_string(Dims(shape)) + " has an axis below 1");
  DType dtype;
  std::string type = values.text("dtype");
  if (!parse_dtype(type.c_str(), dtype))
    throw Error("dtype \"" + type + "\" is no type of elements", "f32 for values, i64 for tokens and indices");
  return {dtype, {}, Dims(shape)};
}

Tensor with_batch(const Meta& sample, int64_t batch) {
  Shape s = sample.shape;
  s.insert(0, batch);
  return empty(s, sample.dtype, {DeviceType::meta});
}

namespace {

const bool input_layer = register_layer(
    {{.type = "Input",
      .group = "Ends",
      .help = "Where the samples enter.",
      .inputs = 0,
      .attrs = {{"shape", std::vector<int64_t>{1, 28, 28}, 1, 1e9, "shape of one sample, without the batch"},
                {"dtype", std::string("f32"), 0, 0,
                 "type of its elements: f32 for values, i64 for tokens and indices"}}},
     nullptr});
const bool output_layer = register_layer(
    {{.type = "Output", .group = "Ends", .help = "What the loss is computed from.", .outputs = 0, .attrs = {}},
     nullptr});

}  // namespace
}  // namespace tenon
