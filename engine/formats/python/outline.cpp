#include "engine/formats/python/outline.h"

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "engine/formats/python/forms.h"
#include "engine/formats/python/print.h"

namespace tenon::python {

Flow::Flow(const ModelSpec& spec) : layers(spec.topological()) {
  for (const SubModelSpec& s : spec.submodels) instances.insert(s.instances.begin(), s.instances.end());
  std::unordered_map<std::string, int> at;
  for (size_t i = 0; i < layers.size(); ++i) at[layers[i]->name] = static_cast<int>(i);
  sources.resize(layers.size());
  readers.resize(layers.size());
  for (const WireSpec& w : spec.wires) {
    const int from = at.at(w.from), to = at.at(w.to);
    auto& ports = sources[static_cast<size_t>(to)];
    if (ports.size() <= static_cast<size_t>(w.to_port)) ports.resize(static_cast<size_t>(w.to_port) + 1, -1);
    ports[static_cast<size_t>(w.to_port)] = from;
    readers[static_cast<size_t>(from)].push_back(to);
  }
}

bool Unit::holds(int l) const { return std::binary_search(inside.begin(), inside.end(), l); }

namespace {

std::vector<std::string> components(const std::string& path) {
  std::vector<std::string> out;
  size_t from = 0;
  for (size_t dot; (dot = path.find('.', from)) != std::string::npos; from = dot + 1)
    out.push_back(path.substr(from, dot - from));
  out.push_back(path.substr(from));
  for (const std::string& c : out)
    if (c.empty()) throw Error("\"" + path + "\" is no path of modules", "name the layer without a dot at its end");
  return out;
}

Unit& part_of(Unit& group, const std::string& name) {
  for (auto& p : group.parts)
    if (p->name == name) return *p;
  group.parts.push_back(std::make_unique<Unit>());
  Unit& made = *group.parts.back();
  made.name = name;
  made.path = group.path.empty() ? name : group.path + "." + name;
  made.kind = Unit::Kind::loose;
  return made;
}

class Sorter {
 public:
  explicit Sorter(const Flow& flow) : flow_(flow) {}

  void sort(Unit& u) {
    for (auto& p : u.parts) sort(*p);
    ends(u);
    if (u.kind == Unit::Kind::layer) return;
    number(u);
    if (flow_.instances.contains(u.path) && !u.in.empty() && !u.out.empty() && runs_in_one_go(u))
      u.kind = Unit::Kind::block;
    else if (is_sequence(u))
      u.kind = Unit::Kind::sequence;
    else if (is_block(u))
      u.kind = Unit::Kind::block;
  }

 private:
  void ends(Unit& u) {
    for (auto& p : u.parts) u.inside.insert(u.inside.end(), p->inside.begin(), p->inside.end());
    if (u.layer >= 0) u.inside = {u.layer};
    std::sort(u.inside.begin(), u.inside.end());
    for (int l : u.inside) {
      for (int s : flow_.sources[static_cast<size_t>(l)])
        if (s >= 0 && !u.holds(s) && std::find(u.in.begin(), u.in.end(), s) == u.in.end()) u.in.push_back(s);
      const auto& readers = flow_.readers[static_cast<size_t>(l)];
      if (std::any_of(readers.begin(), readers.end(), [&](int r) { return !u.holds(r); })) u.out.push_back(l);
    }
  }
  /// Parts called 0, 1, 2, ... stand in that order.
  static void number(Unit& u) {
    std::vector<std::unique_ptr<Unit>> sorted(u.parts.size());
    for (auto& p : u.parts) {
      size_t at = 0;
      if (p->name.size() > 6 || p->name.find_first_not_of("0123456789") != std::string::npos) return;
      at = std::stoul(p->name);
      if (std::to_string(at) != p->name || at >= sorted.size()) return;
    }
    for (auto& p : u.parts) sorted[std::stoul(p->name)] = std::move(p);
    u.parts = std::move(sorted);
  }
  bool is_sequence(const Unit& u) const {
    for (size_t i = 0; i < u.parts.size(); ++i) {
      const Unit& p = *u.parts[i];
      if (p.name != std::to_string(i) || p.in.size() != 1 || p.out.size() > 1 || p.kind == Unit::Kind::loose)
        return false;
      if (p.kind == Unit::Kind::layer && !is_link(p)) return false;
      if (i > 0 && (u.parts[i - 1]->out.size() != 1 || p.in[0] != u.parts[i - 1]->out[0])) return false;
      if (i + 1 < u.parts.size()) {  // nobody else reads what is between
        for (int l : p.inside)
          for (int r : flow_.readers[static_cast<size_t>(l)])
            if (!p.holds(r) && !u.parts[i + 1]->holds(r)) return false;
      }
    }
    return u.parts.back()->out.size() == 1;
  }
  /// A layer that nn.Sequential can call.
  bool is_link(const Unit& u) const {
    const LayerSpec& l = *flow_.layers[static_cast<size_t>(u.layer)];
    const LayerInfo* info = find_layer_type(l.type);
    return !l.off && info && form_of(*info).module && form_of(*info).calls.empty() &&
           flow_.sources[static_cast<size_t>(u.layer)].size() == 1;
  }
  bool is_block(const Unit& u) const {
    if (u.in.empty() || u.out.empty()) return false;
    if (std::none_of(u.inside.begin(), u.inside.end(), [&](int l) {
          const LayerInfo* info = find_layer_type(flow_.layers[static_cast<size_t>(l)]->type);
          return info && form_of(*info).module;
        }))
      return false;
    for (const auto& p : u.parts)
      if (!is_identifier(p->name) || is_taken(p->name) || p->name == "x" || p->name == "y") return false;
    return runs_in_one_go(u);
  }
  /// Nothing outside reads from it and feeds it.
  bool runs_in_one_go(const Unit& u) const {
    std::vector<bool> behind(flow_.layers.size());
    for (size_t i = 0; i < flow_.layers.size(); ++i) {
      const int l = static_cast<int>(i);
      if (u.holds(l)) continue;
      for (int s : flow_.sources[i])
        behind[i] = behind[i] || (s >= 0 && (u.holds(s) || behind[static_cast<size_t>(s)]));
    }
    return std::none_of(u.in.begin(), u.in.end(), [&](int s) { return behind[static_cast<size_t>(s)]; });
  }

  const Flow& flow_;
};

}  // namespace

std::unique_ptr<Unit> outline(const Flow& flow) {
  auto root = std::make_unique<Unit>();
  for (size_t i = 0; i < flow.layers.size(); ++i) {
    const LayerSpec& l = *flow.layers[i];
    if (l.type == "Input" || l.type == "Output") continue;
    Unit* at = root.get();
    for (const std::string& c : components(l.name)) {
      if (at->layer >= 0) throw Error("\"" + l.name + "\" lies within the layer \"" + at->path + "\"", "rename one");
      at = &part_of(*at, c);
    }
    if (!at->parts.empty()) throw Error("the layer \"" + l.name + "\" has the name of a group", "rename one");
    at->kind = Unit::Kind::layer;
    at->layer = static_cast<int>(i);
  }
  Sorter sorter(flow);
  for (auto& p : root->parts) sorter.sort(*p);
  root->kind = Unit::Kind::block;
  for (auto& p : root->parts) root->inside.insert(root->inside.end(), p->inside.begin(), p->inside.end());
  std::sort(root->inside.begin(), root->inside.end());
  return root;
}

namespace {
void add_classes(const Unit& u, std::set<std::string>& out) {
  if (u.kind == Unit::Kind::block && !u.path.empty()) out.insert(u.path);
  for (const auto& p : u.parts) add_classes(*p, out);
}
}  // namespace

std::set<std::string> class_scopes(const ModelSpec& spec) {
  std::set<std::string> out;
  try {
    const Flow flow(spec);
    add_classes(*outline(flow), out);
  } catch (const Error&) {
    out.clear();
  }
  return out;
}

}  // namespace tenon::python
