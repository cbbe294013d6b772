#include "engine/nn/loss.h"

#include "core/error.h"

namespace tenon::nn {

static Registry<LossDef>& registry() {
  static auto& all = *new Registry<LossDef>("loss");
  return all;
}

bool register_loss(LossDef def, Place place) { return registry().add(std::move(def), place); }
const Registry<LossDef>& losses() { return registry(); }

Loss::Loss(const std::string& name, std::vector<Attr> attrs)
    : def_(&losses().at(name)), spec_{"loss", name, std::move(attrs)}, values_(layer_values(spec_, def_->info)) {}

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
  return def_->compute({spec_, info, values_, {}, {}}, all);
}

}  // namespace tenon::nn
