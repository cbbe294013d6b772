#include "engine/formats/python/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/error.h"
#include "engine/formats/python/constructor.h"
#include "engine/formats/python/interpreter.h"
#include "engine/formats/python/outline.h"
#include "engine/model/examine.h"
#include "engine/spec/submodel.h"

namespace tenon::python {
namespace {

/// Sizes that the layers would take from what arrives are left to them; one that does not fit stays, so that the layer
/// says so.
void leave_sizes(ModelSpec& model) {
  ModelSpec bare = model;
  for (LayerSpec& l : bare.layers) {
    const LayerInfo* info = find_layer_type(l.type);
    std::erase_if(l.attrs, [&](const Attr& a) {
      for (const AttrDef& d : info->attrs)
        if (d.name == a.name)
          return d.fallback == AttrValue(int64_t{0}) || d.fallback == AttrValue(std::vector<int64_t>{0});
      return false;
    });
  }
  const std::vector<LayerReport> reports = examine(bare, 2);
  for (size_t i = 0; i < model.layers.size() && i < reports.size(); ++i)
    std::erase_if(model.layers[i].attrs, [&](const Attr& a) {
      return std::any_of(reports[i].resolved.begin(), reports[i].resolved.end(), [&](const Attr& r) {
        return r.name == a.name && (r.value == a.value || attr_text(r.value) == attr_text(a.value));
      });
    });
}

bool same_attrs(const LayerSpec& a, const LayerSpec& b) {
  if (a.type != b.type) return false;
  const LayerInfo* info = find_layer_type(a.type);
  return info && std::all_of(info->attrs.begin(), info->attrs.end(),
                             [&](const AttrDef& d) { return value_of(a, d) == value_of(b, d); });
}

/// Layers that are one module share weights where they have any.
void share_weights(ModelSpec& model) {
  if (std::all_of(model.layers.begin(), model.layers.end(), [](const LayerSpec& l) { return l.shares.empty(); }))
    return;
  settle_shares(model);
  const std::vector<LayerReport> reports = examine(model, 2);
  for (size_t i = 0; i < model.layers.size() && i < reports.size(); ++i)
    if (!reports[i].has_weights && !reports[i].outputs.empty()) model.layers[i].shares.clear();
}

/// What an edit as text leaves alone: places, and attributes that mean the same.
void keep(ModelSpec& model, const ModelSpec& as_written, const ModelSpec& before) {
  std::map<std::string, size_t> was;
  for (size_t i = 0; i < before.layers.size(); ++i) was[before.layers[i].name] = i;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    LayerSpec& l = model.layers[i];
    auto found = was.find(l.name);
    if (found == was.end()) continue;
    const LayerSpec& old = before.layers[found->second];
    l.x = old.x, l.y = old.y;
    if (same_attrs(l, old) || same_attrs(as_written.layers[i], old)) l.attrs = old.attrs;
  }
  // Sub-models and instances in their order; those that no class can be stay as long as they are alike.
  const std::vector<SubModelSpec> read = std::exchange(model.submodels, {});
  const auto is_read = [&](const std::string& scope) {
    return std::any_of(read.begin(), read.end(), [&](const SubModelSpec& s) {
      return std::find(s.instances.begin(), s.instances.end(), scope) != s.instances.end();
    });
  };
  const auto put = [&](const std::string& name, const std::string& scope) {
    auto s = std::find_if(model.submodels.begin(), model.submodels.end(), [&](auto& m) { return m.name == name; });
    if (s == model.submodels.end()) s = model.submodels.insert(s, SubModelSpec{name, {}});
    if (std::find(s->instances.begin(), s->instances.end(), scope) == s->instances.end()) s->instances.push_back(scope);
  };
  const std::set<std::string> classes = before.submodels.empty() ? std::set<std::string>() : class_scopes(before);
  for (const SubModelSpec& s : before.submodels)
    for (const std::string& scope : s.instances)
      if (is_read(scope) || !classes.contains(scope)) put(s.name, scope);
  for (const SubModelSpec& s : read)
    for (const std::string& scope : s.instances)
      if (!submodel_of(model, scope)) put(s.name, scope);
  // Old layers in their order, each new one behind the one it follows.
  std::vector<LayerSpec> sorted;
  std::map<std::string, size_t> is;
  for (size_t i = 0; i < model.layers.size(); ++i) is[model.layers[i].name] = i;
  std::vector<std::pair<double, size_t>> order;
  double at = -1;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    auto old = was.find(model.layers[i].name);
    at = old != was.end() ? static_cast<double>(old->second) : at + 1e-6;
    order.emplace_back(at, i);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [place, i] : order) sorted.push_back(std::move(model.layers[i]));
  model.layers = std::move(sorted);
  // And the wires.
  using Wire = std::tuple<std::string, int, std::string, int>;
  auto key = [](const WireSpec& w) { return Wire(w.from, w.from_port, w.to, w.to_port); };
  std::map<Wire, size_t> places;
  for (size_t i = 0; i < before.wires.size(); ++i) places.emplace(key(before.wires[i]), i);
  std::vector<std::pair<size_t, WireSpec>> wires;
  for (WireSpec& w : model.wires) {
    const auto at = places.find(key(w));
    wires.emplace_back(at == places.end() ? before.wires.size() : at->second, std::move(w));
  }
  std::stable_sort(wires.begin(), wires.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  model.wires.clear();
  for (auto& [place, w] : wires) model.wires.push_back(std::move(w));
}

/// What the constructor of a sub-model's class is given differs between instances: each has a value of its own. Values
/// that are each instance's own stay so where they happen to be the same.
void find_own_values(ModelSpec& model, const ModelSpec* before) {
  for (SubModelSpec& s : model.submodels) {
    if (const SubModelSpec* was = before ? find_submodel(*before, s.name) : nullptr) s.own = was->own;
    const std::string first = s.instances.front();
    for (const LayerSpec& l : model.layers) {
      if (!in_scope(l.name, first)) continue;
      const std::string within = name_within(l.name, first);
      const LayerInfo* info = find_layer_type(l.type);
      for (const AttrDef& d : info ? info->attrs : std::vector<AttrDef>{})
        if (std::any_of(s.instances.begin(), s.instances.end(), [&](const std::string& i) {
              const LayerSpec* other = model.find(i + "." + within);
              return other && other->type == l.type && value_of(*other, d) != value_of(l, d);
            }))
          s.own.push_back({within, d.name});
    }
  }
}

}  // namespace

ReadModel read_model(const std::string& source, const ModelSpec* before) {
  const Source parsed = parse(source);
  Interpreter reading(parsed, before);
  ReadModel out{reading.run(), {}, {}};
  out.remarks = reading.remarks();
  out.lines = reading.lines();
  share_weights(out.model);
  const ModelSpec as_written = before ? out.model : ModelSpec();
  leave_sizes(out.model);
  if (before) keep(out.model, as_written, *before);
  find_own_values(out.model, before);
  settle_submodels(out.model);
  return out;
}

std::string difference(const ModelSpec& a, const ModelSpec& b) {
  ModelSpec x = a, y = b;
  leave_sizes(x);
  leave_sizes(y);
  if (x.name != y.name) return fmt::format("the model is called \"{}\" and \"{}\"", x.name, y.name);
  std::map<std::string, const LayerSpec*> of_second;
  for (const LayerSpec& l : y.layers) of_second.emplace(l.name, &l);
  for (const LayerSpec& l : x.layers) {
    auto found = of_second.find(l.name);
    const LayerSpec* other = found == of_second.end() ? nullptr : found->second;
    if (!other) return fmt::format("\"{}\" is only in the first", l.name);
    if (other->type != l.type) return fmt::format("\"{}\" is a {} and a {}", l.name, l.type, other->type);
    if (other->off != l.off)
      return fmt::format("\"{}\" is {} and {}", l.name, l.off ? "off" : "on", other->off ? "off" : "on");
    if (other->shares != l.shares)
      return fmt::format("\"{}\" shares the weights of \"{}\" and of \"{}\"", l.name, l.shares, other->shares);
    if (other->comment != l.comment)
      return fmt::format("the comment of \"{}\" is \"{}\" and \"{}\"", l.name, l.comment, other->comment);
    for (const AttrDef& d : find_layer_type(l.type)->attrs)
      if (value_of(l, d) != value_of(*other, d))
        return fmt::format("{} of \"{}\" is {} and {}", d.name, l.name, attr_text(value_of(l, d)),
                           attr_text(value_of(*other, d)));
  }
  std::set<std::string> of_first;
  for (const LayerSpec& l : x.layers) of_first.insert(l.name);
  for (const LayerSpec& l : y.layers)
    if (!of_first.count(l.name)) return fmt::format("\"{}\" is only in the second", l.name);
  auto wires = [](const ModelSpec& m) {
    std::set<std::tuple<std::string, int, std::string, int>> out;
    for (const WireSpec& w : m.wires) out.emplace(w.to, w.to_port, w.from, w.from_port);
    return out;
  };
  const auto first = wires(x), second = wires(y);
  for (const auto& w : first)
    if (!second.count(w))
      return fmt::format("\"{}\" reads \"{}\" at {} only in the first", std::get<0>(w), std::get<2>(w), std::get<1>(w));
  if (first.size() != second.size()) return "the second has wires that the first has not";
  auto instances = [](const ModelSpec& m) {
    std::set<std::pair<std::string, std::string>> out;
    for (const SubModelSpec& s : m.submodels)
      for (const std::string& scope : s.instances) out.emplace(s.name, scope);
    return out;
  };
  if (instances(x) != instances(y)) return "the instances of sub-models are others";
  return {};
}
bool same_model(const ModelSpec& a, const ModelSpec& b) { return difference(a, b).empty(); }

}  // namespace tenon::python
