// Every registered layer against PyTorch: the same weights, the same data, ten SGD steps. The cases are
// tests/peers/layers.json:
//   layer, attrs: as in a model; inputs: sizes, or {"shape", "dtype", "below"}, or null; torch: the module there;
//   parametrize: weight_norm, spectral_norm or prune_l1 of its weight; call: how it is called where that is not m(x,
//   ...); train: false compares evaluation (random layers, with `why`); tolerance: relative to 1 + the largest value,
//   where 2e-5 is too strict, with `why`.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/module.h"
#include "engine/nn/parametrize.h"
#include "engine/ops/create.h"
#include "engine/ops/loss.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"
#include "tests/peers/cases.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

using nlohmann::json;

struct Trained {
  Tensor output;
  std::vector<Tensor> input_gradients;
  std::vector<nn::Named> state;
};

/// Ten steps of the case; fills in what PyTorch needs to do the same.
Trained train_layer(json& c, size_t index) {
  std::vector<Tensor> inputs;
  std::vector<Meta> metas;
  for (const json& j : c.at("inputs")) {
    inputs.push_back(input_of(j, 100 * index + inputs.size()));
    metas.push_back(inputs.back() ? inputs.back().meta() : Meta{});
  }
  const LayerInfo* info = find_layer_type(c.at("layer").get<std::string>());
  while (info && static_cast<int>(inputs.size()) < info->inputs) {
    inputs.emplace_back();
    metas.emplace_back();
  }
  auto module = make_layer(spec_of(c), metas, {});
  module->initialize(1, "layer");
  module->train(c.value("train", true));
  const std::string how = c.value("parametrize", "");
  if (how == "weight_norm") nn::weight_norm(*module);
  if (how == "spectral_norm") nn::spectral_norm(*module);
  if (how == "prune_l1") nn::prune_l1(*module, "weight", {0.3});
  uint64_t stream = 100 * index + 50;
  for (nn::Named& p : module->parameters()) {  // away from ones and zeros, which hide mistakes
    Tensor noise = random(p.tensor.size(), stream++, 0.1);
    for (int64_t i = 0; i < noise.numel(); ++i) p.tensor.data<float>()[i] += noise.data<float>()[i];
  }
  json state = json::object();
  for (nn::Named& n : module->state_dict()) state[n.name] = to_json(n.tensor);
  c["inputs"] = json::array();
  for (Tensor& t : inputs) {
    c["inputs"].push_back(to_json(t));
    if (t && is_floating(t.dtype())) set_requires_grad(t);
  }
  c["state"] = state;
  c["train"] = c.value("train", true);
  c["lr"] = c.value("lr", 0.1);
  Trained result;
  Tensor target;
  for (int step = 0; step < 10; ++step) {
    module->zero_grad();
    for (Tensor& t : inputs)
      if (t) zero_grad(t);
    Tensor y = (*module)(inputs);
    if (step == 0) {
      result.output = clone(detach(y));
      target = random(y.size(), stream);
      c["target"] = to_json(target);
    }
    Tensor loss = mean(square(sub(y, target)));
    if (loss.requires_grad()) backward(loss);
    if (step == 0)
      for (Tensor& t : inputs) result.input_gradients.push_back(t && grad_of(t) ? clone(grad_of(t)) : Tensor());
    NoGrad no_grad;
    for (nn::Named& p : module->parameters()) {
      Tensor g = grad_of(p.tensor);
      if (g) copy_(p.tensor, sub(detach(p.tensor), mul(g, c["lr"].get<double>())));
    }
  }
  for (nn::Named& n : module->state_dict()) result.state.push_back({n.name, clone(detach(n.tensor))});
  return result;
}

TEST(Layers, EveryLayerHasACase) {
  std::set<std::string> have;
  for (const json& c : read_cases("layers.json")) {
    have.insert(c.at("layer").get<std::string>());
    EXPECT_TRUE(find_layer_type(c.at("layer").get<std::string>())) << c.at("layer");
    if (c.contains("tolerance") || !c.value("train", true)) {
      EXPECT_TRUE(c.contains("why")) << c.at("layer") << ": a weaker comparison says why";
    }
  }
  for (const LayerDef& def : layers()) {
    const LayerInfo& info = def.info;
    if (info.inputs == 0 || info.outputs == 0) continue;
    EXPECT_TRUE(have.count(info.type)) << info.type << " has no case in tests/peers/layers.json";
  }
}

TEST(Layers, TenStepsAreThoseOfPyTorch) {
  TENON_NEEDS_TORCH();
  json cases = read_cases("layers.json");
  std::vector<Trained> ours;
  for (size_t i = 0; i < cases.size(); ++i) {
    try {
      ours.push_back(train_layer(cases[i], i));
    } catch (const Error& e) {
      FAIL() << cases[i].at("layer") << " " << cases[i].value("attrs", json::object()) << ": " << e.what();
    }
  }
  auto theirs = run_torch("layers.py", cases);
  double worst = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    std::string what = cases[i].at("layer").get<std::string>() + " " + cases[i].value("attrs", json::object()).dump();
    double allowed = cases[i].value("tolerance", 2e-5);
    auto compare = [&](const Tensor& a, const std::string& key) {
      double d = apart(a, find(theirs, std::to_string(i) + " " + key));
      EXPECT_LE(d, allowed) << what << ", " << key;
      worst = std::max(worst, d);
    };
    compare(ours[i].output, "output");
    for (size_t k = 0; k < ours[i].input_gradients.size(); ++k)
      if (ours[i].input_gradients[k]) compare(ours[i].input_gradients[k], "input " + std::to_string(k));
    for (const nn::Named& n : ours[i].state) compare(n.tensor, "state " + n.name);
  }
  RecordProperty("worst", std::to_string(worst));
}

}  // namespace
}  // namespace tenon::peers
