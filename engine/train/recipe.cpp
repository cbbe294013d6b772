#include "engine/train/recipe.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "core/error.h"
#include "core/registry.h"
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

/// The keys, and where each stands among them.
struct Keys {
  std::vector<AttrDef> list;
  std::unordered_map<std::string, size_t> at;
};
const Keys& table() {
  static auto& cache = *new MadeOfRegistries<Keys>([] {
    Keys k{make_recipe_table(), {}};
    for (size_t i = 0; i < k.list.size(); ++i) k.at.emplace(k.list[i].name, i);
    return k;
  });
  return cache.get();
}

const AttrDef& key_of(const std::string& key) {
  const Keys& all = table();
  if (auto found = all.at.find(key); found != all.at.end()) return all.list[found->second];
  std::vector<std::string> names;
  for (const AttrDef& k : all.list) {
    names.push_back(k.name);
    // "lr" means optimizer.lr to most people.
    if (k.name.ends_with("." + key))
      throw Error::usage("a recipe has no key \"" + key + "\" (did you mean " + k.name + "?)");
  }
  std::string near = near_names(key, names.data(), names.size());
  throw Error::usage("a recipe has no key \"" + key + "\"" + (near.empty() ? "" : " (" + near + ")"),
                     "keys look like optimizer.lr, data.batch_size, epochs, seed");
}

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

void read(Recipe& recipe, const nlohmann::json& j, const std::string& prefix) {
  for (const auto& [name, value] : j.items()) {
    std::string key = prefix + name;
    if (value.is_object())
      read(recipe, value, key + ".");
    else
      recipe.set_value(key, attr_from_json(value, key));
  }
}

}  // namespace

const std::vector<AttrDef>& Recipe::keys() { return table().list; }

Recipe Recipe::from_json(const nlohmann::json& j) {
  Recipe r;
  if (j.is_null()) return r;
  if (!j.is_object()) throw Error::usage("a recipe is a JSON object, not " + std::string(j.type_name()));
  read(r, j, "");
  std::vector<std::string> usual;
  for (const auto& [key, value] : r.values_) {
    const RecipeGroup* g = group_of(key);
    const AttrDef* own = g && is_attr(*g, key) ? attr_in(chosen(*g, r), *g, key) : nullptr;
    bool same = value == (own ? own->fallback : key_of(key).fallback);
    // A recipe of an earlier version holds the keys of every definition there was.
    if (g && !own && is_attr(*g, key))
      for (const auto& m : g->members)
        if (const AttrDef* a = attr_in(m, *g, key)) same |= value == a->fallback;
    if (same) usual.push_back(key);
  }
  for (const std::string& key : usual) r.values_.erase(key);
  return r;
}

nlohmann::json Recipe::to_json() const {
  nlohmann::json j = nlohmann::json::object();
  for (const AttrDef& k : keys()) {
    const RecipeGroup* g = group_of(k.name);
    if (g && !values_.count(k.name) && is_attr(*g, k.name) && !attr_in(chosen(*g, *this), *g, k.name)) continue;
    size_t dot = k.name.find('.');
    nlohmann::json& place = dot == std::string::npos ? j[k.name] : j[k.name.substr(0, dot)][k.name.substr(dot + 1)];
    place = attr_to_json(at(k.name));
  }
  return j;
}

void Recipe::set(const std::string& key, const std::string& text) { values_[key] = parse_attr(key_of(key), text, key); }

void Recipe::set_value(const std::string& key, AttrValue value) {
  values_[key] = fit_attr(key_of(key), std::move(value), key);
}

void Recipe::check_used(const std::string& key) const {
  key_of(key);
  const RecipeGroup* g = group_of(key);
  if (!g || !is_attr(*g, key)) return;
  const RecipeGroup::Member& m = chosen(*g, *this);
  if (const AttrDef* own = attr_in(m, *g, key)) {
    fit_attr(*own, at(key), key);  // another definition's attribute of this name may have wider limits
    return;
  }
  std::string list, owners;
  for (const AttrDef& a : *m.attrs) list += (list.empty() ? "" : ", ") + g->name + "." + a.name;
  for (const auto& o : g->members)
    if (attr_in(o, *g, key)) owners += (owners.empty() ? "" : ", ") + o.name;
  throw Error::usage(key + " says nothing to " + g->name + "." + g->selector + " = " + m.name + "; it is of " + owners,
                     list.empty() ? m.name + " has no settings of its own" : m.name + " has " + list);
}

std::vector<AttrDef> Recipe::used_keys() const {
  std::vector<AttrDef> used;
  for (const AttrDef& k : keys())
    if (!group_of(k.name)) used.push_back(k);
  for (const RecipeGroup& g : recipe_groups()) {
    const std::string selector = g.name + "." + g.selector;
    used.push_back(key_of(selector));
    for (const AttrDef& a : *chosen(g, *this).attrs) {
      used.push_back(a);
      used.back().name = g.name + "." + a.name;
    }
    for (const AttrDef& k : keys())
      if (group_of(k.name) == &g && k.name != selector && !is_attr(g, k.name)) used.push_back(k);
  }
  return used;
}

void Recipe::reset(const std::string& key) {
  key_of(key);
  values_.erase(key);
}

const AttrValue& Recipe::at(const std::string& key) const {
  if (auto set = values_.find(key); set != values_.end()) return set->second;
  return fallback(key);
}

const AttrValue& Recipe::fallback(const std::string& key) const {
  const AttrDef& def = key_of(key);
  if (const RecipeGroup* g = group_of(key); g && is_attr(*g, key))
    if (const AttrDef* a = attr_in(chosen(*g, *this), *g, key)) return a->fallback;
  return def.fallback;
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

std::vector<KeyDifference> differences(const Recipe& from, const Recipe& to) {
  std::vector<KeyDifference> out;
  std::map<std::string, bool> used;  // by the one, by both
  for (const AttrDef& k : from.used_keys()) used[k.name] = false;
  for (const AttrDef& k : to.used_keys()) {
    const auto old = used.find(k.name);
    if (old != used.end()) old->second = true;
    if (old == used.end())
      out.push_back({k.name, "", attr_text(to.at(k.name))});
    else if (!(from.at(k.name) == to.at(k.name)))
      out.push_back({k.name, attr_text(from.at(k.name)), attr_text(to.at(k.name))});
  }
  for (const AttrDef& k : from.used_keys())
    if (!used[k.name]) out.push_back({k.name, attr_text(from.at(k.name)), ""});
  return out;
}

Recipe merged(const Recipe& base, const Recipe& mine, const Recipe& theirs) {
  Recipe all = theirs;
  std::set<std::string> known;
  for (const AttrDef& k : base.used_keys()) known.insert(k.name);
  for (const AttrDef& k : mine.used_keys()) {  // what chooses a definition comes before its settings
    if (known.contains(k.name) && base.at(k.name) == mine.at(k.name)) continue;
    if (mine.at(k.name) == mine.fallback(k.name))
      all.reset(k.name);
    else
      all.set_value(k.name, mine.at(k.name));
  }
  return all;
}

std::string difference_text(const std::vector<KeyDifference>& all) {
  auto shown = [](const std::string& v) { return v.empty() ? std::string("–") : v; };
  std::string text;
  for (const KeyDifference& d : all)
    text += (text.empty() ? "" : ", ") + d.key + " " + shown(d.from) + " → " + shown(d.to);
  return text;
}

}  // namespace tenon
