#include "engine/train/recipe.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/train/recipe_table.h"

namespace tenon {
namespace {

const RecipeGroup* group_of(const std::string& key) {
  size_t dot = key.find('.');
  if (dot == key.npos) return nullptr;
  for (const RecipeGroup& g : recipe_groups())
    if (key.compare(0, dot, g.name) == 0 && g.name.size() == dot) return &g;
  return nullptr;
}

size_t index_of(const std::string& key) {
  const auto& keys = Recipe::keys();
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i].key == key) return i;
  std::vector<std::string> names;
  for (const RecipeKey& k : keys) {
    names.push_back(k.key);
    // "lr" means optimizer.lr to most people.
    if (k.key.ends_with("." + key))
      throw Error::usage("a recipe has no key \"" + key + "\" (did you mean " + k.key + "?)");
  }
  std::string near = near_names(key, names.data(), names.size());
  throw Error::usage("a recipe has no key \"" + key + "\"" + (near.empty() ? "" : " (" + near + ")"),
                     "keys look like optimizer.lr, data.batch_size, epochs, seed");
}

AttrDef as_attr(const RecipeKey& k) { return {k.key, k.fallback, k.min, k.max, k.help, k.choices}; }

/// The attribute a key stands for in a definition; null where it has none, or the key is none of a group's.
const AttrDef* attr_in(const RecipeGroup::Member& m, const RecipeGroup& g, const std::string& key) {
  for (const AttrDef& a : *m.attrs)
    if (key.size() == g.name.size() + 1 + a.name.size() && key.ends_with(a.name)) return &a;
  return nullptr;
}
bool is_attr(const RecipeGroup& g, const std::string& key) {
  return std::any_of(g.members.begin(), g.members.end(), [&](const auto& m) { return attr_in(m, g, key); });
}
const RecipeGroup::Member& chosen(const RecipeGroup& g, const Recipe& r) {
  const std::string& name = r.text(g.name + "." + g.selector);
  for (const auto& m : g.members)
    if (m.name == name) return m;
  throw Error(g.name + "." + g.selector + " = \"" + name + "\" is not registered");
}

AttrValue from_json_value(const RecipeKey& k, const nlohmann::json& j) {
  switch (k.fallback.index()) {
    case 0:
      if (j.is_number_integer()) return j.get<int64_t>();
      if (j.is_number_float() && j.get<double>() == std::floor(j.get<double>()) && std::abs(j.get<double>()) < 9e15)
        return static_cast<int64_t>(j.get<double>());
      break;
    case 1:
      if (j.is_number()) return j.get<double>();
      break;
    case 2:
      if (j.is_boolean()) return j.get<bool>();
      break;
    case 3:
      if (j.is_string()) return j.get<std::string>();
      break;
    default:
      if (j.is_array() && std::all_of(j.begin(), j.end(), [](const auto& e) { return e.is_number_integer(); }))
        return j.get<std::vector<int64_t>>();
      break;
  }
  throw Error::usage(k.key + " = " + j.dump() + ": it is " + attr_kind(k.fallback), k.key + ": " + k.help);
}

void read(Recipe& recipe, const nlohmann::json& j, const std::string& prefix) {
  for (const auto& [name, value] : j.items()) {
    std::string key = prefix + name;
    if (value.is_object())
      read(recipe, value, key + ".");
    else
      recipe.set_value(key, from_json_value(Recipe::keys()[index_of(key)], value));
  }
}

}  // namespace

const std::vector<RecipeKey>& Recipe::keys() {
  static const std::vector<RecipeKey> table = make_recipe_table();
  return table;
}

Recipe::Recipe() : values_(keys().size()) {}

Recipe Recipe::from_json(const nlohmann::json& j) {
  Recipe r;
  if (j.is_null()) return r;
  if (!j.is_object()) throw Error::usage("a recipe is a JSON object, not " + std::string(j.type_name()));
  read(r, j, "");
  for (size_t i = 0; i < keys().size(); ++i) {
    if (!r.values_[i]) continue;
    const RecipeGroup* g = group_of(keys()[i].key);
    const AttrDef* own = g && is_attr(*g, keys()[i].key) ? attr_in(chosen(*g, r), *g, keys()[i].key) : nullptr;
    bool usual = own ? *r.values_[i] == own->fallback : *r.values_[i] == keys()[i].fallback;
    // A recipe of an earlier version holds the keys of every definition there was.
    if (g && !own && is_attr(*g, keys()[i].key))
      for (const auto& m : g->members)
        if (const AttrDef* a = attr_in(m, *g, keys()[i].key)) usual |= *r.values_[i] == a->fallback;
    if (usual) r.values_[i].reset();
  }
  return r;
}

nlohmann::json Recipe::to_json() const {
  nlohmann::json j = nlohmann::json::object();
  for (size_t i = 0; i < values_.size(); ++i) {
    const std::string& key = keys()[i].key;
    const RecipeGroup* g = group_of(key);
    if (g && !values_[i] && is_attr(*g, key) && !attr_in(chosen(*g, *this), *g, key)) continue;
    size_t dot = key.find('.');
    nlohmann::json& place = dot == std::string::npos ? j[key] : j[key.substr(0, dot)][key.substr(dot + 1)];
    std::visit([&](const auto& v) { place = v; }, at(key));
  }
  return j;
}

void Recipe::set(const std::string& key, const std::string& text) {
  size_t i = index_of(key);
  AttrDef def = as_attr(keys()[i]);
  AttrValue v = parse_attr(def, text, key);
  check_attr(def, v, key);
  values_[i] = std::move(v);
}

void Recipe::set_value(const std::string& key, AttrValue value) {
  size_t i = index_of(key);
  const RecipeKey& k = keys()[i];
  if (value.index() == 0 && k.fallback.index() == 1) value = static_cast<double>(std::get<int64_t>(value));
  check_attr(as_attr(k), value, key);
  values_[i] = std::move(value);
}

void Recipe::check_used(const std::string& key) const {
  index_of(key);
  const RecipeGroup* g = group_of(key);
  if (!g || !is_attr(*g, key)) return;
  const RecipeGroup::Member& m = chosen(*g, *this);
  if (attr_in(m, *g, key)) return;
  std::string list, owners;
  for (const AttrDef& a : *m.attrs) list += (list.empty() ? "" : ", ") + g->name + "." + a.name;
  for (const auto& o : g->members)
    if (attr_in(o, *g, key)) owners += (owners.empty() ? "" : ", ") + o.name;
  throw Error::usage(key + " says nothing to " + g->name + "." + g->selector + " = " + m.name + "; it is of " + owners,
                     list.empty() ? m.name + " has no settings of its own" : m.name + " has " + list);
}

const AttrValue& Recipe::at(const std::string& key) const {
  size_t i = index_of(key);
  if (values_[i]) return *values_[i];
  if (const RecipeGroup* g = group_of(key); g && is_attr(*g, key))
    if (const AttrDef* a = attr_in(chosen(*g, *this), *g, key)) return a->fallback;
  return keys()[i].fallback;
}
int64_t Recipe::integer(const std::string& key) const { return std::get<int64_t>(at(key)); }
double Recipe::number(const std::string& key) const { return std::get<double>(at(key)); }
bool Recipe::flag(const std::string& key) const { return std::get<bool>(at(key)); }
const std::string& Recipe::text(const std::string& key) const { return std::get<std::string>(at(key)); }

std::vector<Attr> Recipe::attrs(const std::string& group) const {
  std::vector<Attr> list;
  const RecipeGroup* g = group_of(group + ".");
  if (!g) throw Error("a recipe has no group \"" + group + "\"");
  for (const AttrDef& a : *chosen(*g, *this).attrs) list.push_back({a.name, at(group + "." + a.name)});
  return list;
}

bool Recipe::operator==(const Recipe& o) const { return to_json() == o.to_json(); }

}  // namespace tenon
