#include "engine/spec/layer_registry.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"

namespace tenon {
namespace {

std::map<std::string, LayerDef>& registry() {
  static std::map<std::string, LayerDef> layers;
  return layers;
}

std::string near(const std::string& word, const std::vector<std::string>& names) {
  std::string n = near_names(word, names.data(), names.size());
  return n.empty() ? "" : " (" + n + ")";
}

const AttrDef& definition(const LayerInfo& info, const std::string& attr) {
  for (const AttrDef& d : info.attrs)
    if (d.name == attr) return d;
  throw Error(info.type + " has no attribute \"" + attr + "\"");
}

const AttrValue& value(const LayerArgs& a, const std::string& attr) {
  const AttrValue* v = a.spec.find(attr);
  return v ? *v : definition(a.info, attr).fallback;
}

const char* kind(size_t index) {
  constexpr const char* kinds[] = {"a whole number", "a number", "true or false", "text", "a list of whole numbers"};
  return kinds[index];
}

/// A whole number stands for a number, and for a list of one.
bool fits(const AttrValue& v, const AttrValue& like) {
  return v.index() == like.index() || (v.index() == 0 && (like.index() == 1 || like.index() == 4));
}

void check(const LayerInfo& info, const Attr& a) {
  std::vector<std::string> names;
  for (const AttrDef& d : info.attrs) names.push_back(d.name);
  if (std::find(names.begin(), names.end(), a.name) == names.end())
    throw Error(info.type + " has no attribute \"" + a.name + "\"" + near(a.name, names));
  const AttrDef& d = definition(info, a.name);
  if (!fits(a.value, d.fallback))
    throw Error(a.name + " is " + kind(a.value.index()) + "; it must be " + kind(d.fallback.index()));
  if (d.min == d.max) return;
  auto limited = [&](double x) {
    if (x >= d.min && x <= d.max) return;
    auto text = [](double v) {
      return v == std::floor(v) && std::abs(v) < 1e15 ? std::to_string(static_cast<int64_t>(v)) : std::to_string(v);
    };
    throw Error(a.name + " = " + text(x) + " is out of its limits " + text(d.min) + " to " + text(d.max));
  };
  if (auto* i = std::get_if<int64_t>(&a.value)) limited(static_cast<double>(*i));
  if (auto* x = std::get_if<double>(&a.value)) limited(*x);
  if (auto* list = std::get_if<std::vector<int64_t>>(&a.value))
    for (int64_t i : *list) limited(static_cast<double>(i));
}

}  // namespace

int64_t LayerArgs::integer(const std::string& attr) const { return std::get<int64_t>(value(*this, attr)); }
bool LayerArgs::flag(const std::string& attr) const { return std::get<bool>(value(*this, attr)); }
std::string LayerArgs::text(const std::string& attr) const { return std::get<std::string>(value(*this, attr)); }
double LayerArgs::number(const std::string& attr) const {
  const AttrValue& v = value(*this, attr);
  if (auto* i = std::get_if<int64_t>(&v)) return static_cast<double>(*i);
  return std::get<double>(v);
}
std::vector<int64_t> LayerArgs::ints(const std::string& attr) const {
  const AttrValue& v = value(*this, attr);
  if (auto* i = std::get_if<int64_t>(&v)) return {*i};
  return std::get<std::vector<int64_t>>(v);
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
  if (given == 0 || given == s[at]) return s[at];
  throw Error(attr + " is " + std::to_string(given) + ", but its input of shape " + to_string(s) + " has " +
                  std::to_string(s[at]),
              "set " + attr + " to " + std::to_string(s[at]) + ", or to 0 to take it from the input");
}

bool register_layer(LayerDef def) {
  std::string type = def.info.type;
  return registry().emplace(std::move(type), std::move(def)).second;
}

const LayerDef* find_layer(const std::string& type) {
  auto found = registry().find(type);
  return found == registry().end() ? nullptr : &found->second;
}

void check_attrs(const LayerSpec& spec, const LayerInfo& info) {
  for (const Attr& a : spec.attrs) check(info, a);
}

std::shared_ptr<nn::Module> make_layer(const LayerSpec& spec, std::span<const Meta> inputs, Device device) {
  const LayerDef* def = find_layer(spec.type);
  if (!def) {
    std::vector<std::string> names;
    for (const auto& [name, d] : registry()) names.push_back(name);
    throw Error("there is no layer type \"" + spec.type + "\"" + near(spec.type, names));
  }
  check_attrs(spec, def->info);
  if (static_cast<int>(inputs.size()) != def->info.inputs)
    throw Error(spec.type + " takes " + std::to_string(def->info.inputs) + " inputs, not " +
                std::to_string(inputs.size()));
  if (!def->make) throw Error(spec.type + " marks an end of the model and makes no module");
  return def->make({spec, def->info, inputs, device});
}

const std::vector<LayerInfo>& layer_types() {
  static const std::vector<LayerInfo> types = [] {
    std::vector<LayerInfo> list;
    for (const auto& [name, def] : registry()) list.push_back(def.info);
    std::stable_sort(list.begin(), list.end(),
                     [](const LayerInfo& a, const LayerInfo& b) { return a.group < b.group; });
    return list;
  }();
  return types;
}

const LayerInfo* find_layer_type(const std::string& type) {
  const LayerDef* def = find_layer(type);
  return def ? &def->info : nullptr;
}

}  // namespace tenon
