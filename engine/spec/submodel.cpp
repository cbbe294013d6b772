#include "engine/spec/submodel.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "engine/spec/own_values.h"

namespace tenon {
namespace {

using InnerWire = std::tuple<std::string, int, std::string, int>;

/// What all instances have in common: layers by their name within, and the wires among them.
struct Content {
  std::map<std::string, LayerSpec> layers;
  std::set<InnerWire> wires;
  bool operator==(const Content&) const = default;
};

bool is_off(const ModelSpec& spec, const std::string& scope) {
  return std::none_of(spec.layers.begin(), spec.layers.end(),
                      [&](const LayerSpec& l) { return in_scope(l.name, scope) && !l.off; });
}

/// Without what instances of `of` have of their own.
Content content_of(const ModelSpec& spec, const std::string& scope, const SubModelSpec* of = nullptr) {
  Content c;
  const bool off = is_off(spec, scope);
  for (const LayerSpec& l : spec.layers) {
    if (!in_scope(l.name, scope)) continue;
    LayerSpec bare = l;
    bare.name = name_within(l.name, scope);
    bare.x = bare.y = 0;
    bare.off = l.off && !off;
    bare.shares = in_scope(l.shares, scope) ? name_within(l.shares, scope) : std::string();
    for (const OwnAttr& o : of ? of->own : std::vector<OwnAttr>{})
      if (o.layer == bare.name) std::erase_if(bare.attrs, [&](const Attr& a) { return a.name == o.attr; });
    std::string key = bare.name;
    c.layers.emplace(std::move(key), std::move(bare));
  }
  for (const WireSpec& w : spec.wires)
    if (in_scope(w.from, scope) && in_scope(w.to, scope))
      c.wires.emplace(name_within(w.from, scope), w.from_port, name_within(w.to, scope), w.to_port);
  return c;
}

/// A wire across the border of a scope: its end inside and the layer outside.
struct Crossing {
  ScopePort inside, outside;
};
std::vector<Crossing> crossings(const ModelSpec& spec, const std::string& scope, bool in) {
  std::vector<Crossing> all;
  for (const WireSpec& w : spec.wires) {
    const bool from = in_scope(w.from, scope), to = in_scope(w.to, scope);
    if (in && to && !from) all.push_back({{name_within(w.to, scope), w.to_port}, {w.from, w.from_port}});
    if (!in && from && !to) all.push_back({{name_within(w.from, scope), w.from_port}, {w.to, w.to_port}});
  }
  return all;
}
const ScopePort* outside_of(const std::vector<Crossing>& all, const ScopePort& inside) {
  for (const Crossing& c : all)
    if (c.inside == inside) return &c.outside;
  return nullptr;
}

using Names = std::map<std::string, std::string>;
/// Layers that have another name and are what they were.
Names renamed(const Content& was, const Content& is) {
  Names names;
  std::set<std::string> come;
  for (const auto& [name, l] : is.layers)
    if (!was.layers.contains(name)) come.insert(name);
  for (const auto& gone : was.layers) {
    if (is.layers.contains(gone.first)) continue;
    const auto to = std::find_if(come.begin(), come.end(), [&](const std::string& n) {
      LayerSpec same = is.layers.at(n);
      same.name = gone.first;
      return same == gone.second;
    });
    if (to == come.end()) continue;
    names[gone.first] = *to;
    come.erase(to);
  }
  return names;
}
void rename_within(ModelSpec& spec, const std::string& scope, const Names& names) {
  for (LayerSpec& l : spec.layers)
    for (std::string* name : {&l.name, &l.shares})
      if (const auto to = in_scope(*name, scope) ? names.find(name_within(*name, scope)) : names.end();
          to != names.end())
        *name = scope + "." + to->second;
}

/// Carries what became of one instance to another one.
class Mirror {
 public:
  Mirror(const ModelSpec& before, const ModelSpec& edited, const std::string& from, const SubModelSpec& of)
      : edited_(edited),
        from_(from),
        own_(of.own),
        is_(content_of(edited, from)),
        renamed_(renamed(content_of(before, from), is_)),
        was_fed_(crossings(before, from, true)),
        fed_(crossings(edited, from, true)),
        was_read_(crossings(before, from, false)),
        read_(crossings(edited, from, false)) {}

  void to(ModelSpec& spec, const std::string& scope) const {
    const auto in = fed_anew(crossings(spec, scope, true));
    const auto out = read_anew(crossings(spec, scope, false));
    rename_within(spec, scope, renamed_);
    put_layers(spec, scope);
    std::erase_if(spec.wires, [&](const WireSpec& w) { return in_scope(w.from, scope) || in_scope(w.to, scope); });
    const std::string s = scope + ".";
    for (const auto& [a, port, b, to_port] : is_.wires) spec.wires.push_back({s + a, port, s + b, to_port});
    for (const Crossing& c : in)
      spec.wires.push_back({c.outside.layer, c.outside.port, s + c.inside.layer, c.inside.port});
    for (const Crossing& c : out)
      spec.wires.push_back({s + c.inside.layer, c.inside.port, c.outside.layer, c.outside.port});
  }

 private:
  /// An input that came to stand elsewhere is the one that the same source feeds.
  std::vector<Crossing> fed_anew(const std::vector<Crossing>& had) const {
    std::vector<Crossing> all;
    for (const Crossing& c : fed_) {
      const ScopePort* source = outside_of(had, c.inside);
      for (const Crossing& w : was_fed_)
        if (!source && w.outside == c.outside) source = outside_of(had, w.inside);
      if (source) all.push_back({c.inside, *source});
    }
    return all;
  }
  /// An output that came to stand elsewhere is the one that the same layer reads.
  std::vector<Crossing> read_anew(const std::vector<Crossing>& had) const {
    std::vector<Crossing> all;
    for (Crossing c : had) {
      for (const Crossing& w : was_read_)
        if (w.inside == c.inside)
          for (const Crossing& now : read_)
            if (now.outside == w.outside) c.inside = now.inside;
      if (is_.layers.contains(c.inside.layer)) all.push_back(c);
    }
    return all;
  }
  void put_layers(ModelSpec& spec, const std::string& scope) const {
    const bool off = is_off(spec, scope);
    double dx = 0, dy = 0;
    for (const LayerSpec& l : spec.layers)
      if (const LayerSpec* twin =
              in_scope(l.name, scope) ? edited_.find(from_ + "." + name_within(l.name, scope)) : nullptr) {
        dx = l.x - twin->x, dy = l.y - twin->y;
        break;
      }
    std::erase_if(spec.layers, [&](const LayerSpec& l) {
      return in_scope(l.name, scope) && !is_.layers.contains(name_within(l.name, scope));
    });
    std::string behind;
    for (const LayerSpec& twin : edited_.layers) {
      if (!in_scope(twin.name, from_)) continue;
      const std::string name = scope + "." + name_within(twin.name, from_);
      const LayerSpec& like = is_.layers.at(name_within(twin.name, from_));
      LayerSpec l = like;
      l.name = name;
      l.x = twin.x == 0 && twin.y == 0 ? 0 : twin.x + dx, l.y = twin.x == 0 && twin.y == 0 ? 0 : twin.y + dy;
      l.off = off || like.off;
      if (!like.shares.empty()) l.shares = scope + "." + like.shares;
      if (LayerSpec* there = spec.find(name)) {
        l.x = there->x, l.y = there->y;
        if (l.shares.empty() && !in_scope(there->shares, scope)) l.shares = there->shares;
        for (const OwnAttr& o : own_)
          if (o.layer == like.name && l.type == there->type) copy_attr(*there, l, o.attr);
        *there = std::move(l);
      } else {
        const auto at =
            std::find_if(spec.layers.begin(), spec.layers.end(), [&](const LayerSpec& o) { return o.name == behind; });
        spec.layers.insert(at == spec.layers.end() ? at : at + 1, std::move(l));
      }
      behind = name;
    }
  }

  const ModelSpec& edited_;
  const std::string from_;
  const std::vector<OwnAttr> own_;
  const Content is_;
  const Names renamed_;
  const std::vector<Crossing> was_fed_, fed_, was_read_, read_;
};

/// Instances within an instance are instances in the others, too.
void mirror_instances(ModelSpec& spec, const std::string& from, const std::string& to) {
  for (SubModelSpec& s : spec.submodels) {
    std::set<std::string> inner;
    for (const std::string& i : s.instances)
      if (in_scope(i, from)) inner.insert(to + "." + name_within(i, from));
    std::erase_if(s.instances, [&](const std::string& i) { return in_scope(i, to) && !inner.contains(i); });
    for (const std::string& i : inner)
      if (std::find(s.instances.begin(), s.instances.end(), i) == s.instances.end()) s.instances.push_back(i);
  }
}

/// Of layers that share weights one was told something else: so are the others.
void mirror_attrs(const ModelSpec& before, ModelSpec& after) {
  for (LayerSpec& l : after.layers) {
    LayerSpec* owner = l.shares.empty() ? nullptr : after.find(l.shares);
    if (!owner || owner->type != l.type || owner->attrs == l.attrs) continue;
    const LayerSpec *was = before.find(l.name), *owner_was = before.find(owner->name);
    if (!was || was->shares != l.shares || !owner_was) continue;
    if (owner->attrs == owner_was->attrs)
      owner->attrs = l.attrs;
    else
      l.attrs = owner->attrs;
  }
  // What one of several told their owner holds for the others, too.
  for (LayerSpec& l : after.layers)
    if (const LayerSpec* owner = l.shares.empty() ? nullptr : after.find(l.shares))
      if (const LayerSpec* was = before.find(l.name);
          was && was->shares == l.shares && owner->type == l.type && was->attrs == l.attrs)
        l.attrs = owner->attrs;
}

/// Layers that came into instances share their weights where the others of the instance do.
void share_new_layers(const ModelSpec& before, ModelSpec& after, const SubModelSpec& s) {
  for (const std::string& scope : s.instances) {
    const std::string owner = shared_instance(after, scope);
    if (owner.empty()) continue;
    for (LayerSpec& l : after.layers)
      if (in_scope(l.name, scope) && l.shares.empty() && !before.find(l.name))
        l.shares = owner + "." + name_within(l.name, scope);
  }
}

}  // namespace

bool in_scope(const std::string& layer, const std::string& scope) {
  return layer.size() > scope.size() + 1 && layer.starts_with(scope) && layer[scope.size()] == '.';
}
std::string name_within(const std::string& layer, const std::string& scope) { return layer.substr(scope.size() + 1); }

const SubModelSpec* submodel_of(const ModelSpec& spec, const std::string& scope) {
  for (const SubModelSpec& s : spec.submodels)
    if (std::find(s.instances.begin(), s.instances.end(), scope) != s.instances.end()) return &s;
  return nullptr;
}

std::string instance_around(const ModelSpec& spec, const std::string& layer) {
  std::string found;
  for (const SubModelSpec& s : spec.submodels)
    for (const std::string& i : s.instances)
      if (in_scope(layer, i) && i.size() > found.size()) found = i;
  return found;
}

std::string instance_filling(const ModelSpec& spec, const std::string& scope) {
  if (scope.empty() || submodel_of(spec, scope)) return scope;
  std::string found;
  for (const SubModelSpec& s : spec.submodels)
    for (const std::string& i : s.instances)
      if (in_scope(i, scope) && (found.empty() || i.size() < found.size()) &&
          std::none_of(spec.layers.begin(), spec.layers.end(),
                       [&](const LayerSpec& l) { return in_scope(l.name, scope) && !in_scope(l.name, i); }))
        found = i;
  return found;
}

const SubModelSpec* find_submodel(const ModelSpec& spec, const std::string& name) {
  for (const SubModelSpec& s : spec.submodels)
    if (s.name == name) return &s;
  return nullptr;
}

std::vector<const SubModelSpec*> submodels_around(const ModelSpec& spec, const std::string& layer) {
  std::map<size_t, const SubModelSpec*, std::greater<>> around;  // by the length of the scope
  for (const SubModelSpec& s : spec.submodels)
    for (const std::string& i : s.instances)
      if (in_scope(layer, i)) around[i.size()] = &s;
  std::vector<const SubModelSpec*> all;
  for (const auto& [size, s] : around) all.push_back(s);
  return all;
}

ScopePorts ports_of(const ModelSpec& spec, const std::string& scope) {
  const SubModelSpec* s = submodel_of(spec, scope);
  ScopePorts most;
  size_t wires = 0;
  for (const std::string& i : s ? s->instances : std::vector<std::string>{scope}) {
    ScopePorts p;
    std::map<ScopePort, size_t> input_of;  // by source
    const auto in = crossings(spec, i, true), out = crossings(spec, i, false);
    for (const Crossing& c : in) {
      const auto [at, first] = input_of.emplace(c.outside, p.inputs.size());
      if (first) p.inputs.emplace_back();
      p.inputs[at->second].push_back(c.inside);
    }
    for (const Crossing& c : out)
      if (std::find(p.outputs.begin(), p.outputs.end(), c.inside) == p.outputs.end()) p.outputs.push_back(c.inside);
    if (in.size() + out.size() <= wires) continue;
    wires = in.size() + out.size();
    most = std::move(p);
  }
  if (!most.outputs.empty()) return most;
  std::set<std::string> read;  // what nobody reads yet is what it will give
  for (const WireSpec& w : spec.wires) read.insert(w.from);
  for (const LayerSpec& l : spec.layers)
    if (in_scope(l.name, scope) && !read.contains(l.name)) most.outputs.push_back({name_within(l.name, scope), 0});
  return most;
}

bool same_inside(const ModelSpec& spec, const std::string& a, const std::string& b, const SubModelSpec* of) {
  return content_of(spec, a, of) == content_of(spec, b, of);
}

void settle_submodels(ModelSpec& spec) {
  std::set<std::string> taken;
  own_values_inside(spec);
  for (SubModelSpec& s : spec.submodels) {
    Content first;
    std::erase_if(s.instances, [&](const std::string& i) {
      if (i.empty() || taken.contains(i)) return true;
      Content c = content_of(spec, i, &s);
      if (c.layers.empty()) return true;
      if (first.layers.empty()) first = c;
      if (!(c == first)) return true;
      taken.insert(i);
      return false;
    });
    settle_own_values(spec, s);
  }
  std::erase_if(spec.submodels, [](const SubModelSpec& s) { return s.instances.empty() || s.name.empty(); });
}

std::map<std::string, int> mirror_edits(const ModelSpec& before, ModelSpec& after) {
  std::map<std::string, int> changed;
  mirror_attrs(before, after);
  // What changes an inner sub-model changes those around it in the next round.
  for (size_t round = 0, most = after.submodels.size(); round < most; ++round) {
    bool any = false;
    for (size_t k = 0; k < after.submodels.size(); ++k) {
      SubModelSpec& of = after.submodels[k];
      const auto edited = std::find_if(of.instances.begin(), of.instances.end(), [&](const std::string& i) {
        const Content was = content_of(before, i, &of), is = content_of(after, i, &of);
        return !was.layers.empty() && !is.layers.empty() && !(was == is) && submodel_of(before, i);
      });
      if (edited == of.instances.end()) continue;
      const Names names = renamed(content_of(before, *edited), content_of(after, *edited));
      for (OwnAttr& o : of.own)
        if (const auto to = names.find(o.layer); to != names.end()) o.layer = to->second;
      const SubModelSpec s = of;
      const ModelSpec then = after;
      const Mirror mirror(before, then, *edited, s);
      const Content is = content_of(then, *edited, &s);
      for (const std::string& other : s.instances) {
        const Content theirs = content_of(after, other, &s);
        if (other == *edited || theirs.layers.empty() || theirs == is) continue;
        mirror.to(after, other);
        mirror_instances(after, *edited, other);
        if (round == 0) ++changed[s.name];
        any = true;
      }
    }
    if (!any) break;
  }
  for (const SubModelSpec& s : after.submodels) share_new_layers(before, after, s);
  settle_submodels(after);
  settle_shares(after);
  return changed;
}

std::string shared_instance(const ModelSpec& spec, const std::string& scope) {
  const SubModelSpec* s = submodel_of(spec, scope);
  if (!s) return {};
  for (const LayerSpec& l : spec.layers)
    if (in_scope(l.name, scope) && !l.shares.empty())
      for (const std::string& i : s->instances)
        if (i != scope && l.shares == i + "." + name_within(l.name, scope)) return i;
  return {};
}

void settle_shares(ModelSpec& spec) {
  std::map<std::string, std::string> heirs;  // of owners that are gone
  for (LayerSpec& l : spec.layers) {
    std::set<std::string> seen{l.name};
    while (!l.shares.empty()) {
      if (!seen.insert(l.shares).second) {
        l.shares.clear();
      } else if (const LayerSpec* owner = spec.find(l.shares); !owner) {
        const auto [heir, first] = heirs.emplace(l.shares, l.name);
        l.shares = first ? std::string() : heir->second;
        break;
      } else if (owner->shares.empty()) {
        break;
      } else {
        l.shares = owner->shares;
      }
    }
  }
}

}  // namespace tenon
