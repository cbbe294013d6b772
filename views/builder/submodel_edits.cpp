#include "views/builder/submodel_edits.h"

#include <algorithm>
#include <map>

#include "views/builder/model_edits.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/selection.h"

namespace tenon::views::edits {
namespace {

/// The group that has these layers and no others; empty: there is none.
std::string group_of(const ModelSpec& spec, const std::set<std::string>& layers) {
  const std::string& first = *layers.begin();
  for (size_t dot = first.rfind('.'); dot != std::string::npos && dot > 0; dot = first.rfind('.', dot - 1)) {
    const std::string scope = first.substr(0, dot);
    size_t inside = 0;
    for (const LayerSpec& l : spec.layers) inside += in_scope(l.name, scope);
    const bool all = std::all_of(layers.begin(), layers.end(), [&](const auto& n) { return in_scope(n, scope); });
    if (all && inside == layers.size()) return scope;
    if (inside > layers.size()) break;
  }
  return {};
}

std::set<std::string> reached(const ModelSpec& spec, const std::set<std::string>& from, bool forward) {
  std::set<std::string> seen;
  std::vector<std::string> next(from.begin(), from.end());
  while (!next.empty()) {
    const std::string at = std::move(next.back());
    next.pop_back();
    for (const WireSpec& w : spec.wires)
      if ((forward ? w.from : w.to) == at && seen.insert(forward ? w.to : w.from).second)
        next.push_back(forward ? w.to : w.from);
  }
  return seen;
}

std::string fault_of_name(const ModelSpec& spec, const std::string& name) {
  if (name.empty()) return tr("A sub-model needs a name");
  if (find_submodel(spec, name)) return tr("There is a sub-model {} already", name);
  if (find_layer_type(name)) return tr("There is a layer type {}: name the sub-model otherwise", name);
  return {};
}

/// The next instance has the next number: of Block64 they are block64_1, block64_2.
std::string scope_word(const std::string& name) {
  std::string word;
  for (const char c : lower(name)) word += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return std::isdigit(static_cast<unsigned char>(word.back())) ? word + "_1" : word;
}

}  // namespace

std::string make_submodel(ModelSpec& spec, const std::set<std::string>& layers, const std::string& name,
                          std::string& scope) {
  if (layers.empty()) return tr("Select the layers of the sub-model");
  if (const std::string fault = fault_of_name(spec, name); !fault.empty()) return fault;
  for (const std::string& n : layers)
    if (const LayerSpec* l = spec.find(n); l && (l->type == "Input" || l->type == "Output"))
      return tr("{} is an end of the model, which no sub-model has", n);
  const std::set<std::string> behind = reached(spec, layers, true), before = reached(spec, layers, false);
  for (const std::string& n : behind)
    if (before.contains(n) && !layers.contains(n))
      return tr("{} lies between them: a sub-model has it, too, or one of its ends not", n);
  scope = group_of(spec, layers);
  if (const SubModelSpec* s = scope.empty() ? nullptr : submodel_of(spec, scope))
    return tr("{} is an instance of {} already", scope, s->name);
  if (scope.empty()) {
    ModelSpec next = spec;
    std::string word = scope_word(name);
    const auto taken = [&](const std::string& w) {
      return std::any_of(spec.layers.begin(), spec.layers.end(), [&](const LayerSpec& l) {
        return in_module(l.name, w) || l.name.find("." + w + ".") != std::string::npos;
      });
    };
    for (int n = 2; taken(word); ++n) word = scope_word(name) + std::to_string(n);
    if (const std::string fault = put_into_scope(next, layers, word); !fault.empty()) return fault;
    std::set<std::string> now;
    for (size_t i = 0; i < spec.layers.size(); ++i)
      if (layers.contains(spec.layers[i].name)) now.insert(next.layers[i].name);
    scope = group_of(next, now);
    spec = std::move(next);
  }
  spec.submodels.push_back({name, {scope}});
  return {};
}

std::string rename_submodel(ModelSpec& spec, const std::string& from, const std::string& to) {
  if (const std::string fault = fault_of_name(spec, to); !fault.empty()) return fault;
  for (SubModelSpec& s : spec.submodels)
    if (s.name == from) s.name = to;
  return {};
}

ModelSpec with_instance(ModelSpec spec, const std::string& submodel, std::vector<std::string>& added,
                        std::string& scope) {
  const SubModelSpec* s = find_submodel(spec, submodel);
  const std::string of = s->instances.front();
  std::set<std::string> names;
  ModelSpec copied = spec;
  for (LayerSpec& l : copied.layers) {
    if (!in_scope(l.name, of)) continue;
    names.insert(l.name);
    if (!in_scope(l.shares, of)) l.shares.clear();  // its weights are its own
  }
  const std::string text = part_as_text(copied, names);
  spec = with_part(std::move(spec), text, "", added);
  for (const std::string& i : find_submodel(spec, submodel)->instances)
    if (in_scope(added.front(), i)) scope = i;
  return spec;
}

void dissolve(ModelSpec& spec, const std::string& scope, std::set<std::string>& now) {
  for (SubModelSpec& s : spec.submodels) std::erase(s.instances, scope);
  const size_t dot = scope.rfind('.');
  const std::string around = dot == std::string::npos ? "" : scope.substr(0, dot + 1);
  std::map<std::string, std::string> names;
  ModelSpec grown = spec;  // with the names that are given
  for (const LayerSpec& l : spec.layers) {
    if (!in_scope(l.name, scope)) continue;
    const std::string to = free_name(grown, around + name_within(l.name, scope));
    grown.layers.push_back({to, "", {}});
    names[l.name] = to;
    now.insert(to);
  }
  rename_all(spec, names);
}

std::vector<std::string> weight_owners(const ModelSpec& spec, const std::string& of, const ReportOf& report) {
  std::vector<std::string> all;
  if (const SubModelSpec* s = submodel_of(spec, of)) {
    for (const std::string& i : s->instances)
      if (i != of && shared_instance(spec, i) != of) all.push_back(i);
    return all;
  }
  const LayerSpec* layer = spec.find(of);
  const LayerInfo* info = layer ? find_layer_type(layer->type) : nullptr;
  const LayerReport* mine = report(of);
  if (!layer || !mine || (!mine->has_weights && layer->shares.empty())) return all;
  const std::vector<AttrDef> none, &attrs = info ? info->attrs : none;
  // What a layer was told, or found out where it was told nothing.
  const auto value = [](const LayerSpec& l, const LayerReport* r, const AttrDef& d) -> const AttrValue& {
    if (r)
      for (const Attr& a : r->resolved)
        if (a.name == d.name) return a.value;
    const AttrValue* told = l.find(d.name);
    return told ? *told : d.fallback;
  };
  for (const LayerSpec& l : spec.layers) {
    if (l.type != layer->type || !l.shares.empty() || l.off || l.name == of) continue;
    const LayerReport* theirs = report(l.name);
    if (std::all_of(attrs.begin(), attrs.end(), [&](const AttrDef& d) {
          const AttrValue &a = value(*layer, mine, d), &b = value(l, theirs, d);
          return a == b || (a.index() != b.index() && attr_text(a) == attr_text(b));
        }))
      all.push_back(l.name);
  }
  return all;
}

void share_weights(ModelSpec& spec, const std::string& of, const std::string& owner, const ReportOf& report) {
  const bool instance = submodel_of(spec, of);
  std::map<std::string, std::string> root;
  for (const LayerSpec& l : spec.layers) root[l.name] = l.shares.empty() ? l.name : l.shares;
  for (LayerSpec& l : spec.layers) {
    if (instance ? !in_scope(l.name, of) || in_scope(l.shares, of) : l.name != of) continue;
    l.shares.clear();
    const LayerReport* r = report(l.name);
    if (owner.empty() || (instance && !(r && r->has_weights))) continue;
    const std::string& to = root[instance ? owner + "." + name_within(l.name, of) : owner];
    if (to != l.name) l.shares = to;
  }
  settle_shares(spec);
}

}  // namespace tenon::views::edits
