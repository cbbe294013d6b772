#include "engine/spec/model_spec.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <queue>
#include <string_view>
#include <unordered_map>

#include "core/error.h"
#include "engine/spec/submodel.h"

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
  std::unordered_map<std::string_view, size_t> index;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& l = layers[i];
    if (l.name.empty()) throw Error("a layer of type " + l.type + " has no name", "name it");
    if (!index.emplace(l.name, i).second) throw Error("two layers are called \"" + l.name + "\"", "rename one");
  }
  std::vector<int> waiting(layers.size(), 0);  // wires into a layer whose other end is not yet placed
  std::vector<std::vector<size_t>> fed(layers.size()), feeds(layers.size());
  for (const WireSpec& w : wires) {
    for (const std::string& end : {w.from, w.to})
      if (!index.count(end))
        throw Error("a wire from \"" + w.from + "\" to \"" + w.to + "\" ends at \"" + end + "\", which is no layer");
    const size_t from = index[w.from], to = index[w.to];
    fed[from].push_back(to);
    feeds[to].push_back(from);
    ++waiting[to];
  }
  // Of the layers that could come next the first in the list does, so the order is stable under edits elsewhere.
  std::vector<const LayerSpec*> order;
  std::vector<bool> placed(layers.size());
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < layers.size(); ++i)
    if (!waiting[i]) ready.push(i);
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    placed[i] = true;
    order.push_back(&layers[i]);
    for (size_t to : fed[i])
      if (--waiting[to] == 0) ready.push(to);
  }
  if (order.size() == layers.size()) return order;
  // Walk backwards until a layer repeats: that one is on the circle, not merely behind it.
  size_t at = static_cast<size_t>(std::find(placed.begin(), placed.end(), false) - placed.begin());
  std::vector<bool> seen(layers.size());
  while (!seen[at]) {
    seen[at] = true;
    at = *std::find_if(feeds[at].begin(), feeds[at].end(), [&](size_t from) { return !placed[from]; });
  }
  throw Error("the wires form a circle through \"" + layers[at].name + "\"", "remove one wire of the circle");
}

json ModelSpec::to_json() const {
  json j = {{"name", name}, {"layers", json::array()}, {"wires", json::array()}};
  for (const LayerSpec& l : layers) {
    json attrs = json::array();
    for (const Attr& a : l.attrs) attrs.push_back({{"name", a.name}, {"value", attr_to_json(a.value)}});
    json layer = {{"name", l.name}, {"type", l.type}, {"attrs", attrs}, {"x", l.x}, {"y", l.y}};
    if (l.off) layer["off"] = true;
    if (!l.comment.empty()) layer["comment"] = l.comment;
    if (!l.shares.empty()) layer["shares"] = l.shares;
    j["layers"].push_back(std::move(layer));
  }
  for (const WireSpec& w : wires)
    j["wires"].push_back({{"from", w.from}, {"from_port", w.from_port}, {"to", w.to}, {"to_port", w.to_port}});
  for (const SubModelSpec& s : submodels) {
    json submodel = {{"name", s.name}, {"instances", s.instances}};
    for (const OwnAttr& o : s.own) submodel["own"].push_back({{"layer", o.layer}, {"attr", o.attr}});
    j["submodels"].push_back(std::move(submodel));
  }
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
    if (l.contains("off")) spec.off = need(l, "off", K::boolean, where).get<bool>();
    if (l.contains("comment")) spec.comment = need(l, "comment", K::string, where).get<std::string>();
    if (l.contains("shares")) spec.shares = need(l, "shares", K::string, where).get<std::string>();
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
  if (!j.contains("submodels")) return m;
  i = 0;
  for (const json& s : need(j, "submodels", K::array, "the model")) {
    std::string where = "sub-model " + std::to_string(i++) + " of the model";
    if (!s.is_object()) throw Error(where + " is " + s.type_name() + ", not an object");
    SubModelSpec spec{need(s, "name", K::string, where).get<std::string>(), {}};
    for (const json& scope : need(s, "instances", K::array, where)) {
      if (!scope.is_string())
        throw Error(where + ": an instance is " + scope.type_name() + ", not the name of a scope");
      spec.instances.push_back(scope.get<std::string>());
    }
    if (s.contains("own"))
      for (const json& o : need(s, "own", K::array, where)) {
        if (!o.is_object()) throw Error(where + ": a value of its own is " + o.type_name() + ", not an object");
        spec.own.push_back({need(o, "layer", K::string, where).get<std::string>(),
                            need(o, "attr", K::string, where).get<std::string>()});
      }
    m.submodels.push_back(std::move(spec));
  }
  settle_submodels(m);
  return m;
}

}  // namespace tenon
