#include "engine/spec/layer_edits.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

namespace tenon {

std::pair<std::string, int64_t> numbered(const std::string& name) {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  int64_t n = 1;
  if (digits == name.size() || name.size() - digits > 9) return {name, 1};
  std::from_chars(name.data() + digits, name.data() + name.size(), n);
  return {name.substr(0, digits), n};
}

std::string next_free(const std::string& wanted, const std::function<bool(const std::string&)>& is_taken) {
  if (!is_taken(wanted)) return wanted;
  const auto [base, number] = numbered(wanted);
  for (int64_t n = number + 1;; ++n)
    if (std::string name = base + std::to_string(n); !is_taken(name)) return name;
}

std::string free_name(const ModelSpec& spec, const std::string& wanted) {
  return next_free(wanted, [&](const std::string& name) { return spec.find(name) != nullptr; });
}

LayerSpec new_layer(const ModelSpec& spec, const LayerInfo& info) {
  LayerSpec l;
  std::string word = info.type;
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  l.name = free_name(spec, word);
  l.type = info.type;
  for (const AttrDef& a : info.attrs) l.attrs.push_back({a.name, a.fallback});
  return l;
}

void wire_behind(ModelSpec& spec, const std::string& name, const std::string& behind) {
  const LayerSpec* layer = spec.find(name);
  const LayerInfo* info = layer ? find_layer_type(layer->type) : nullptr;
  if (!info || info->inputs == 0) return;
  if (info->outputs > 0)
    for (WireSpec& w : spec.wires)
      if (w.from == behind && w.from_port == 0) w.from = name;
  spec.wires.push_back({behind, 0, name, 0});
}

void wire_into(ModelSpec& spec, const std::string& name, const WireSpec& wire) {
  const LayerSpec* layer = spec.find(name);
  const LayerInfo* info = layer ? find_layer_type(layer->type) : nullptr;
  const auto at = std::find(spec.wires.begin(), spec.wires.end(), wire);
  if (!info || at == spec.wires.end()) return;
  if (info->outputs > 0) *at = {name, 0, wire.to, wire.to_port};
  if (info->inputs > 0) spec.wires.push_back({wire.from, wire.from_port, name, 0});
}

ModelSpec without_layers(ModelSpec spec, const std::set<std::string>& gone) {
  // Taken out in the order of the model, so that of a block what is left has one source in the end.
  std::vector<std::string> order;
  for (const LayerSpec& l : spec.layers)
    if (gone.contains(l.name)) order.push_back(l.name);
  for (const std::string& name : order) {
    std::vector<WireSpec> in, out;
    for (const WireSpec& w : spec.wires) {
      if (w.to == name) in.push_back(w);
      if (w.from == name) out.push_back(w);
    }
    std::erase_if(spec.wires, [&](const WireSpec& w) { return w.to == name || w.from == name; });
    const bool one = !in.empty() && std::all_of(in.begin(), in.end(), [&](const WireSpec& w) {
      return w.from == in[0].from && w.from_port == in[0].from_port;
    });
    if (one)
      for (const WireSpec& o : out) spec.wires.push_back({in[0].from, in[0].from_port, o.to, o.to_port});
  }
  std::erase_if(spec.layers, [&](const LayerSpec& l) { return gone.contains(l.name); });
  return spec;
}

}  // namespace tenon
