#include "views/builder/model_edits.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/spec/submodel.h"
#include "views/builder/model_layout.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/selection.h"

namespace tenon::views::edits {

namespace {
/// The scope that all names stand in, "" where there is none.
std::string common_scope(const std::vector<std::string>& names) {
  std::string scope = names.empty() ? "" : names[0].substr(0, names[0].find_last_of('.') + 1);
  for (const std::string& n : names)
    while (!scope.empty() && !n.starts_with(scope)) {
      const size_t dot = scope.size() < 2 ? std::string::npos : scope.find_last_of('.', scope.size() - 2);
      scope.resize(dot == std::string::npos ? 0 : dot + 1);
    }
  return scope.empty() ? scope : scope.substr(0, scope.size() - 1);
}

bool taken(const ModelSpec& spec, const std::string& scope) {
  return std::any_of(spec.layers.begin(), spec.layers.end(),
                     [&](const LayerSpec& l) { return in_module(l.name, scope); });
}

}  // namespace

std::string replace_type(ModelSpec& spec, const std::string& name, const LayerInfo& info) {
  LayerSpec* l = spec.find(name);
  const LayerSpec old = *l;
  l->type = info.type;
  l->shares.clear();
  l->attrs.clear();
  for (const AttrDef& a : info.attrs) {
    const AttrValue* had = old.find(a.name);
    l->attrs.push_back({a.name, had && had->index() == a.fallback.index() ? *had : a.fallback});
  }
  std::erase_if(spec.wires, [&](const WireSpec& w) {
    return (w.to == name && w.to_port >= info.inputs) || (w.from == name && w.from_port >= info.outputs);
  });
  if (numbered(name).first != lower(old.type) && name != lower(old.type)) return name;
  const std::string now = free_name(spec, lower(info.type));
  l->name = now;
  for (WireSpec& w : spec.wires) {
    if (w.from == name) w.from = now;
    if (w.to == name) w.to = now;
  }
  return now;
}

namespace {
/// Where an instance stands whose layers get other names; it stays where they do not all go to one place.
std::string moved_scope(const ModelSpec& spec, const std::map<std::string, std::string>& names,
                        const std::string& scope) {
  std::string to;
  for (const LayerSpec& l : spec.layers) {
    if (!in_scope(l.name, scope)) continue;
    const auto at = names.find(l.name);
    const std::string& now = at == names.end() ? l.name : at->second;
    const std::string end = "." + name_within(l.name, scope);
    if (!now.ends_with(end)) return scope;
    const std::string place = now.substr(0, now.size() - end.size());
    if (!to.empty() && place != to) return scope;
    to = place;
  }
  return to.empty() ? scope : to;
}
}  // namespace

std::string rename_all(ModelSpec& spec, const std::map<std::string, std::string>& names) {
  std::set<std::string> all;
  for (const LayerSpec& l : spec.layers) {
    const auto to = names.find(l.name);
    const std::string& name = to == names.end() ? l.name : to->second;
    if (name.empty() || name.ends_with('.')) return tr("A layer needs a name");
    if (!all.insert(name).second) return tr("There is a layer {} already", name);
  }
  for (SubModelSpec& s : spec.submodels)
    for (std::string& i : s.instances) i = moved_scope(spec, names, i);
  for (LayerSpec& l : spec.layers) {
    if (const auto to = names.find(l.name); to != names.end()) l.name = to->second;
    if (const auto to = names.find(l.shares); to != names.end()) l.shares = to->second;
  }
  for (WireSpec& w : spec.wires) {
    if (const auto to = names.find(w.from); to != names.end()) w.from = to->second;
    if (const auto to = names.find(w.to); to != names.end()) w.to = to->second;
  }
  return {};
}

std::string rename_scope(ModelSpec& spec, const std::string& from, const std::string& to) {
  std::map<std::string, std::string> names;
  for (const LayerSpec& l : spec.layers)
    if (l.name.starts_with(from + "."))
      names[l.name] = to.empty() ? l.name.substr(from.size() + 1) : to + l.name.substr(from.size());
  return rename_all(spec, names);
}

std::string put_into_scope(ModelSpec& spec, const std::set<std::string>& layers, const std::string& scope) {
  if (scope.empty()) return tr("A group needs a name");
  const std::string common = common_scope({layers.begin(), layers.end()});
  const std::string before = common.empty() ? "" : common + ".";
  std::map<std::string, std::string> names;
  for (const std::string& name : layers) names[name] = before + scope + "." + name.substr(before.size());
  return rename_all(spec, names);
}

std::string part_as_text(const ModelSpec& spec, const std::set<std::string>& names) {
  ModelSpec part;
  part.name = spec.name;
  for (const LayerSpec& l : spec.layers)
    if (names.contains(l.name)) part.layers.push_back(l);
  for (const WireSpec& w : spec.wires)
    if (names.contains(w.from) || names.contains(w.to)) part.wires.push_back(w);
  // Of what is copied whole the copy is an instance too.
  for (const SubModelSpec& s : spec.submodels) {
    SubModelSpec whole{s.name, {}, s.own};
    for (const std::string& i : s.instances)
      if (std::all_of(spec.layers.begin(), spec.layers.end(),
                      [&](const LayerSpec& l) { return !in_scope(l.name, i) || names.contains(l.name); }))
        whole.instances.push_back(i);
    if (!whole.instances.empty()) part.submodels.push_back(std::move(whole));
  }
  return part.to_json().dump(1);
}

namespace {
/// An instance that came with a part: of the sub-model of that name where it is like its instances, else of another.
void add_instance(ModelSpec& spec, const SubModelSpec& of, const std::string& scope,
                  const std::map<std::string, std::string>& to) {
  std::string now;
  for (const auto& [was, is] : to) {
    if (!in_scope(was, scope)) continue;
    const std::string end = "." + name_within(was, scope);
    if (!is.ends_with(end)) return;
    const std::string place = is.substr(0, is.size() - end.size());
    if (!now.empty() && now != place) return;
    now = place;
  }
  if (now.empty() || submodel_of(spec, now)) return;
  for (SubModelSpec& s : spec.submodels)
    if (s.name == of.name && same_inside(spec, s.instances.front(), now, &s)) {
      s.instances.push_back(now);
      return;
    }
  spec.submodels.push_back(
      {next_free(of.name, [&](const auto& n) { return find_submodel(spec, n) != nullptr; }), {now}, of.own});
}
}  // namespace

ModelSpec with_part(ModelSpec spec, const std::string& text, const std::string& behind,
                    std::vector<std::string>& added) {
  nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
  if (j.is_discarded()) throw Error(tr("What was copied is no part of a model"), tr("copy layers in the builder"));
  ModelSpec part = ModelSpec::from_json(j);
  for (const char* end : {"Input", "Output"})  // a model has one of each
    if (std::any_of(spec.layers.begin(), spec.layers.end(), [&](const LayerSpec& l) { return l.type == end; }))
      std::erase_if(part.layers, [&](const LayerSpec& l) { return l.type == end; });
  if (part.layers.empty()) throw Error(tr("What was copied holds no layer that this model lacks"));
  std::vector<std::string> names;
  for (const LayerSpec& l : part.layers) names.push_back(l.name);
  // A block that was copied whole becomes another block: "layer1.0" is followed by "layer1.1".
  const std::string scope = common_scope(names);
  const bool clash = std::any_of(names.begin(), names.end(), [&](const std::string& n) { return spec.find(n); });
  std::map<std::string, std::string> to;
  if (clash && !scope.empty() && (names.size() > 1 || submodel_of(spec, scope))) {
    const std::string now = next_free(scope, [&](const std::string& s) { return taken(spec, s); });
    for (const std::string& n : names) to[n] = now + n.substr(scope.size());
  } else {
    ModelSpec grown = spec;
    for (const std::string& n : names) {
      to[n] = free_name(grown, n);
      grown.layers.push_back({to[n], "", {}});
    }
  }
  double right = 0, top = 0, left = 0;
  const bool places = ModelLayout::has_places(spec);
  for (const LayerSpec& l : spec.layers)
    right = std::max(right, l.x + ModelLayout::kNodeW + 32), top = std::min(top, l.y);
  for (const LayerSpec& l : part.layers) left = std::min(left, l.x);
  std::set<std::pair<std::string, int>> sources;
  std::set<std::string> tails;
  std::vector<WireSpec> heads;
  for (const WireSpec& w : part.wires) {
    if (!to.contains(w.from) && to.contains(w.to)) sources.insert({w.from, w.from_port}), heads.push_back(w);
    if (to.contains(w.from) && !to.contains(w.to)) tails.insert(w.from);
    if (to.contains(w.from) && to.contains(w.to)) spec.wires.push_back({to[w.from], w.from_port, to[w.to], w.to_port});
  }
  for (LayerSpec& l : part.layers) {
    l.name = to[l.name];
    if (const auto owner = to.find(l.shares); owner != to.end())
      l.shares = owner->second;
    else if (!spec.find(l.shares))
      l.shares.clear();
    l.x = places ? l.x - left + right : 0;
    l.y = places ? l.y + top : 0;
    added.push_back(l.name);
    spec.layers.push_back(std::move(l));
  }
  for (const SubModelSpec& s : part.submodels)
    for (const std::string& i : s.instances) add_instance(spec, s, i, to);
  if (behind.empty() || sources.size() != 1 || tails.size() > 1) return spec;
  if (!tails.empty())
    for (WireSpec& w : spec.wires)
      if (w.from == behind && w.from_port == 0) w.from = to[*tails.begin()], w.from_port = 0;
  for (const WireSpec& w : heads) spec.wires.push_back({behind, 0, to[w.to], w.to_port});
  return spec;
}

ModelSpec aligned(ModelSpec spec, const std::set<std::string>& names, Line line) {
  double sum = 0, least = 1e300, most = -1e300;
  const bool across = line == Line::top || line == Line::bottom;
  for (const LayerSpec& l : spec.layers)
    if (names.contains(l.name)) {
      const double at = across ? l.y : l.x;
      sum += at, least = std::min(least, at), most = std::max(most, at);
    }
  const double to = line == Line::left || line == Line::top       ? least
                    : line == Line::right || line == Line::bottom ? most
                                                                  : sum / static_cast<double>(names.size());
  for (LayerSpec& l : spec.layers)
    if (names.contains(l.name)) (across ? l.y : l.x) = to;
  return spec;
}

ModelSpec spread(ModelSpec spec, const std::set<std::string>& names) {
  std::vector<LayerSpec*> all;
  for (LayerSpec& l : spec.layers)
    if (names.contains(l.name)) all.push_back(&l);
  if (all.size() < 3) return spec;
  const auto reach = [&](auto LayerSpec::*at) {
    const auto [a, b] = std::minmax_element(all.begin(), all.end(),
                                            [&](const LayerSpec* l, const LayerSpec* r) { return l->*at < r->*at; });
    return (*b)->*at - (*a)->*at;
  };
  double LayerSpec::*const at = reach(&LayerSpec::y) >= reach(&LayerSpec::x) ? &LayerSpec::y : &LayerSpec::x;
  std::stable_sort(all.begin(), all.end(), [&](const LayerSpec* l, const LayerSpec* r) { return l->*at < r->*at; });
  const double from = all.front()->*at, step = (all.back()->*at - from) / static_cast<double>(all.size() - 1);
  for (size_t i = 0; i < all.size(); ++i) all[i]->*at = from + step * static_cast<double>(i);
  return spec;
}

}  // namespace tenon::views::edits
