#include "engine/spec/own_values.h"

#include <algorithm>
#include <set>

#include "engine/spec/submodel.h"

namespace tenon {
namespace {

/// The layers that stand where this one does in the other instances around it, and itself.
std::set<std::string> twins_of(const ModelSpec& spec, const std::string& layer) {
  std::set<std::string> all{layer};
  std::vector<std::string> next{layer};
  while (!next.empty()) {
    const std::string at = std::move(next.back());
    next.pop_back();
    for (const SubModelSpec* s : submodels_around(spec, at))
      for (const std::string& i : s->instances)
        if (in_scope(at, i))
          for (const std::string& other : s->instances)
            if (const std::string twin = other + "." + name_within(at, i); spec.find(twin) && all.insert(twin).second)
              next.push_back(twin);
  }
  return all;
}
/// The instance that a layer lies in, of those of one sub-model; the first where it lies in none.
const std::string& instance_with(const SubModelSpec& s, const std::string& layer) {
  const auto at = std::find_if(s.instances.begin(), s.instances.end(), [&](auto& i) { return in_scope(layer, i); });
  return at == s.instances.end() ? s.instances.front() : *at;
}

}  // namespace

void copy_attr(const LayerSpec& from, LayerSpec& to, const std::string& attr) {
  const AttrValue* value = from.find(attr);
  const auto at = std::find_if(to.attrs.begin(), to.attrs.end(), [&](const Attr& a) { return a.name == attr; });
  if (!value) {
    if (at != to.attrs.end()) to.attrs.erase(at);
  } else if (at == to.attrs.end()) {
    to.attrs.push_back({attr, *value});
  } else {
    at->value = *value;
  }
}

void own_values_inside(ModelSpec& spec) {
  for (const SubModelSpec& outer : spec.submodels)
    for (const OwnAttr& o : outer.own)
      for (const std::string& i : outer.instances)
        for (SubModelSpec& inner : spec.submodels)
          for (const std::string& j : inner.instances)
            if (const std::string layer = i + "." + o.layer; in_scope(j, i) && in_scope(layer, j))
              if (&inner != &outer) inner.own.push_back({name_within(layer, j), o.attr});
}

void settle_own_values(const ModelSpec& spec, SubModelSpec& s) {
  std::sort(s.own.begin(), s.own.end());
  s.own.erase(std::unique(s.own.begin(), s.own.end()), s.own.end());
  std::erase_if(s.own, [&](const OwnAttr& o) {
    const LayerSpec* l = s.instances.empty() ? nullptr : spec.find(s.instances.front() + "." + o.layer);
    const LayerInfo* info = l ? find_layer_type(l->type) : nullptr;
    return !info || std::none_of(info->attrs.begin(), info->attrs.end(), [&](auto& d) { return d.name == o.attr; });
  });
}

std::string own_in(const ModelSpec& spec, const std::string& layer, const std::string& attr) {
  std::string found;
  for (const SubModelSpec* s : submodels_around(spec, layer)) {
    const OwnAttr o{name_within(layer, instance_with(*s, layer)), attr};
    if (std::find(s->own.begin(), s->own.end(), o) != s->own.end()) found = s->name;
  }
  return found;
}

void set_own(ModelSpec& spec, const std::string& layer, const std::string& attr, const std::string& submodel) {
  const std::set<std::string> twins = twins_of(spec, layer);
  std::set<std::string> on, off;
  bool outside = submodel.empty();
  for (const SubModelSpec* s : submodels_around(spec, layer)) {
    (outside ? off : on).insert(s->name);
    outside = outside || s->name == submodel;
  }
  for (SubModelSpec& s : spec.submodels) {
    const std::string& mine = instance_with(s, layer);
    const bool ends = off.contains(s.name) || submodel.empty();
    for (const std::string& t : twins) {
      if (!in_scope(t, mine)) continue;
      const OwnAttr o{name_within(t, mine), attr};
      if (on.contains(s.name)) s.own.push_back(o);
      if (!ends) continue;
      std::erase(s.own, o);
      for (const std::string& i : s.instances)
        if (LayerSpec* other = spec.find(i + "." + o.layer); other && i != mine) copy_attr(*spec.find(t), *other, attr);
    }
  }
  settle_submodels(spec);
}

}  // namespace tenon
