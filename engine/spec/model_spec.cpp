#include "engine/spec/model_spec.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tenon {
namespace {

using nlohmann::json;

const json& need(const json& j, const char* key, json::value_t kind, const std::string& where) {
  auto found = j.find(key);
  if (found == j.end()) throw Error(where + " has no \"" + key + "\"");
  bool number = kind == json::value_t::number_integer && found->is_number_integer();
  if (!number && found->type() != kind)
    throw Error(where + ": \"" + key + "\" is " + found->type_name() + ", not " + json(kind).type_name());
  return *found;
}

double number_or_zero(const json& j, const char* key, const std::string& where) {
  auto found = j.find(key);
  if (found == j.end()) return 0;
  if (!found->is_number()) throw Error(where + ": \"" + key + "\" is " + found->type_name() + ", not a number");
  return found->get<double>();
}

int port(const json& j, const char* key, const std::string& where) {
  if (j.find(key) == j.end()) return 0;
  auto p = need(j, key, json::value_t::number_integer, where).get<int64_t>();
  if (p < 0 || p > 1000) throw Error(where + ": \"" + key + "\" = " + std::to_string(p) + " is no port");
  return static_cast<int>(p);
}

}  // namespace

const AttrValue* LayerSpec::find(const std::string& attr) const {
  for (const Attr& a : attrs)
    if (a.name == attr) return &a.value;
  return nullptr;
}

const LayerSpec* ModelSpec::find(const std::string& layer) const {
  for (const LayerSpec& l : layers)
    if (l.name == layer) return &l;
  return nullptr;
}
LayerSpec* ModelSpec::find(const std::string& layer) {
  return const_cast<LayerSpec*>(std::as_const(*this).find(layer));
}

std::vector<const LayerSpec*> ModelSpec::topological() const {
  std::map<std::string, int> waiting;  // wires into a layer whose other end is not yet placed
  for (const LayerSpec& l : layers) {
    if (l.name.empty()) throw Error("a layer of type " + l.type + " has no name", "name it");
    if (!waiting.emplace(l.name, 0).second) throw Error("two layers are called \"" + l.name + "\"", "rename one");
  }
  for (const WireSpec& w : wires) {
    for (const std::string& end : {w.from, w.to})
      if (!waiting.count(end))
        throw Error("a wire from \"" + w.from + "\" to \"" + w.to + "\" ends at \"" + end + "\", which is no layer");
    ++waiting[w.to];
  }
  // Of the layers that could come next the first in the list does, so the order is stable under edits elsewhere.
  std::vector<const LayerSpec*> order;
  std::vector<bool> placed(layers.size());
  while (order.size() < layers.size()) {
    size_t i = 0;
    while (i < layers.size() && (placed[i] || waiting[layers[i].name] > 0)) ++i;
    if (i == layers.size()) {
      i = 0;
      while (placed[i]) ++i;
      // Walk backwards until a layer repeats: that one is on the cycle, not merely behind it.
      std::map<std::string, bool> seen;
      std::string at = layers[i].name;
      while (!seen[at]) {
        seen[at] = true;
        for (const WireSpec& w : wires) {
          const LayerSpec* from = find(w.from);
          if (w.to == at && !placed[static_cast<size_t>(from - layers.data())]) {
            at = w.from;
            break;
          }
        }
      }
      throw Error("the wires form a circle through \"" + at + "\"", "remove one wire of the circle");
    }
    placed[i] = true;
    order.push_back(&layers[i]);
    for (const WireSpec& w : wires)
      if (w.from == layers[i].name) --waiting[w.to];
  }
  return order;
}

json ModelSpec::to_json() const {
  json j = {{"name", name}, {"layers", json::array()}, {"wires", json::array()}};
  for (const LayerSpec& l : layers) {
    json attrs = json::array();
    for (const Attr& a : l.attrs) attrs.push_back({{"name", a.name}, {"value", attr_to_json(a.value)}});
    j["layers"].push_back({{"name", l.name}, {"type", l.type}, {"attrs", attrs}, {"x", l.x}, {"y", l.y}});
  }
  for (const WireSpec& w : wires)
    j["wires"].push_back({{"from", w.from}, {"from_port", w.from_port}, {"to", w.to}, {"to_port", w.to_port}});
  return j;
}

ModelSpec ModelSpec::from_json(const json& j) {
  using K = json::value_t;
  if (!j.is_object()) throw Error(std::string("a model is a JSON object, not ") + j.type_name());
  ModelSpec m;
  m.name = need(j, "name", K::string, "the model").get<std::string>();
  int i = 0;
  for (const json& l : need(j, "layers", K::array, "the model")) {
    std::string where = "layer " + std::to_string(i++) + " of the model";
    if (!l.is_object()) throw Error(where + " is " + l.type_name() + ", not an object");
    LayerSpec spec;
    spec.name = need(l, "name", K::string, where).get<std::string>();
    spec.type = need(l, "type", K::string, where).get<std::string>();
    spec.x = number_or_zero(l, "x", where);
    spec.y = number_or_zero(l, "y", where);
    if (l.contains("attrs"))
      for (const json& a : need(l, "attrs", K::array, where)) {
        if (!a.is_object() || !a.contains("value"))
          throw Error(where + ": an attribute without \"name\" and \"value\"");
        std::string key = need(a, "name", K::string, where).get<std::string>();
        spec.attrs.push_back({key, attr_from_json(a["value"], where + ", attribute " + key)});
      }
    m.layers.push_back(std::move(spec));
  }
  i = 0;
  for (const json& w : need(j, "wires", K::array, "the model")) {
    std::string where = "wire " + std::to_string(i++) + " of the model";
    if (!w.is_object()) throw Error(where + " is " + w.type_name() + ", not an object");
    m.wires.push_back({need(w, "from", K::string, where).get<std::string>(), port(w, "from_port", where),
                       need(w, "to", K::string, where).get<std::string>(), port(w, "to_port", where)});
  }
  return m;
}

}  // namespace tenon
