#include "engine/nn/loss.h"

#include <map>

#include "core/error.h"

namespace tenon::nn {
namespace {

std::map<std::string, LossDef>& registry() {
  static auto* losses = new std::map<std::string, LossDef>;  // leaked: filled by static initialisers in any order
  return *losses;
}

}  // namespace

bool register_loss(LossDef def) {
  std::string name = def.info.type;
  return registry().emplace(std::move(name), std::move(def)).second;
}

const LossDef* find_loss(const std::string& name) {
  auto found = registry().find(name);
  return found == registry().end() ? nullptr : &found->second;
}

const std::vector<const LossDef*>& loss_types() {
  static const std::vector<const LossDef*> all = [] {
    std::vector<const LossDef*> list;
    for (const auto& [name, def] : registry()) list.push_back(&def);
    return list;
  }();
  return all;
}

Loss::Loss(const std::string& name, std::vector<Attr> attrs)
    : def_(find_loss(name)), spec_{"loss", name, std::move(attrs)} {
  if (!def_) {
    std::vector<std::string> names;
    for (const LossDef* d : loss_types()) names.push_back(d->info.type);
    std::string near = near_names(name, names.data(), names.size());
    throw Error("there is no loss \"" + name + "\"" + (near.empty() ? "" : " (" + near + ")"));
  }
  check_attrs(spec_, def_->info);
}

Tensor Loss::operator()(const Tensor& output, const Tensor& target) const {
  const Tensor in[] = {output, target};
  return (*this)(in);
}

Tensor Loss::operator()(std::span<const Tensor> in) const {
  const LayerInfo& info = def_->info;
  int given = static_cast<int>(in.size());
  if (given > info.inputs || given < info.inputs - info.optional)
    throw Error("the loss " + info.type + " takes " + std::to_string(info.inputs) + " tensors, not " +
                std::to_string(given));
  std::vector<Tensor> all(in.begin(), in.end());
  all.resize(static_cast<size_t>(info.inputs));
  return def_->compute({spec_, info, {}, {}}, all);
}

}  // namespace tenon::nn
