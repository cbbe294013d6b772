#include "engine/model/shared_layer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "engine/spec/layer_registry.h"

namespace tenon {

LayerMake::LayerMake(const LayerSpec& l, std::vector<Attr> r, const nn::Module& module)
    : layer(&l), resolved(std::move(r)) {
  for (const nn::Named& n : module.state_dict()) sizes.emplace_back(n.name, to_string(n.tensor.size()));
}

const LayerSpec& owner_of(const ModelSpec& spec, const LayerSpec& layer) {
  const char* hint = "give it weights of its own, or name another layer";
  const LayerSpec* owner = spec.find(layer.shares);
  if (!owner) throw Error(fmt::format("it shares the weights of \"{}\", which is no layer", layer.shares), hint);
  if (!owner->shares.empty())
    throw Error(fmt::format("it shares the weights of \"{}\", which has those of \"{}\"", owner->name, owner->shares),
                "name that one");
  if (owner->off)
    throw Error(fmt::format("it shares the weights of \"{}\", which is off", owner->name),
                "turn that on, or give this weights of its own");
  return *owner;
}

void check_sharing(const LayerMake& layer, const LayerMake& owner) {
  const LayerSpec &l = *layer.layer, &o = *owner.layer;
  const std::string it = fmt::format("it shares the weights of \"{}\", ", o.name);
  if (l.type != o.type) throw Error(fmt::format("{}which is a {}, not a {}", it, o.type, l.type));
  const LayerInfo& info = *find_layer_type(l.type);
  const auto value = [&](const LayerMake& of, const AttrDef& d) {
    for (const Attr& a : of.resolved)
      if (a.name == d.name) return attr_text(a.value);
    const AttrValue* given = of.layer->find(d.name);
    return attr_text(given ? fit_attr(d, *given, d.name) : d.fallback);
  };
  for (const AttrDef& d : info.attrs)
    if (const std::string mine = value(layer, d), theirs = value(owner, d); mine != theirs)
      throw Error(fmt::format("{}whose {} is {}, not {}", it, d.name, theirs, mine),
                  "layers that share weights have the same attributes and read values of the same size");
  for (size_t i = 0; i < layer.sizes.size() && i < owner.sizes.size(); ++i)
    if (layer.sizes[i] != owner.sizes[i])
      throw Error(fmt::format("{}whose {} is {}, not {}", it, owner.sizes[i].first, owner.sizes[i].second,
                              layer.sizes[i].second),
                  "layers that share weights read values of the same size");
}

std::string SharedLayer::describe() const {
  return owner_ ? fmt::format("{}, the weights of {}", owner_->describe(), owner_->path()) : "shared weights";
}
Tensor SharedLayer::forward(const Tensor& x) { return owner_->run_as(*this, std::span<const Tensor>(&x, 1)); }
Tensor SharedLayer::forward(std::span<const Tensor> inputs) { return owner_->run_as(*this, inputs); }

}  // namespace tenon
