// Models as PyTorch source, run by PyTorch with our weights: the same outputs and gradients. A case is {"source",
// "class", "state": by name, "off": layers that are, "input", "towards": what the output is weighed by};
// tests/peers/source.py runs them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/python/print.h"
#include "engine/formats/python/writer.h"
#include "engine/model/graph_module.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/spec/wiring.h"
#include "engine/templates/templates.h"
#include "tests/engine/formats/python/random_model.h"
#include "tests/peers/cases.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

using nlohmann::json;

struct Ours {
  std::string what;
  Tensor output, input;
  std::vector<nn::Named> gradients;
};

/// Evaluates a model with random weights, and adds the case for PyTorch.
Ours evaluate(const ModelSpec& model, const std::string& what, uint64_t stream, json& cases) {
  GraphModule module(model);
  module.initialize(stream, "");
  module.train(false);
  json state = json::object();
  for (nn::Named& p : module.parameters()) {
    const Tensor noise = random(p.tensor.size(), ++stream, 0.1);
    for (int64_t i = 0; i < noise.numel(); ++i) p.tensor.data<float>()[i] += noise.data<float>()[i];
  }
  for (nn::Named& n : module.state_dict()) state[n.name] = to_json(n.tensor);
  const Meta sample = module.input();
  json size = json::array({2});
  for (int64_t s : sample.shape) size.push_back(s);
  Tensor x = input_of(
      sample.dtype == DType::f32 ? size : json{{"shape", size}, {"dtype", name(sample.dtype)}, {"below", 4}}, ++stream);
  if (is_floating(x.dtype())) set_requires_grad(x);
  const Tensor y = module(std::vector<Tensor>{x});
  const Tensor towards = random(y.size(), ++stream);
  if (y.requires_grad()) backward(sum(mul(y, towards), {}));
  Ours ours{what, detach(y), is_floating(x.dtype()) ? grad_of(x) : Tensor(), {}};
  for (nn::Named& p : module.parameters())
    if (Tensor g = grad_of(p.tensor)) ours.gradients.push_back({p.name, g});
  json off = json::array();
  for (const LayerSpec& l : model.layers)
    if (l.off) off.push_back(l.name);
  cases.push_back({{"off", off},
                   {"source", python::write_model(model)},
                   {"class", python::class_name(model.name)},
                   {"state", state},
                   {"input", to_json(detach(x))},
                   {"towards", to_json(towards)}});
  return ours;
}

void expect_same(const std::vector<Ours>& ours, const json& cases, double allowed) {
  const auto theirs = run_torch("source.py", cases);
  size_t missing = 0;  // layers that this PyTorch lacks
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::string key = std::to_string(i) + " missing";
    if (std::any_of(theirs.begin(), theirs.end(), [&](const auto& t) { return t.first == key; })) {
      ++missing;
      continue;
    }
    auto compare = [&](const Tensor& a, const std::string& key) {
      const Tensor& b = find(theirs, std::to_string(i) + " " + key);
      ASSERT_EQ(a.size(), b.size()) << ours[i].what << ", " << key;
      EXPECT_LE(apart(a, b), allowed) << ours[i].what << ", " << key << "\n" << cases[i]["source"].get<std::string>();
    };
    compare(ours[i].output, "output");
    if (ours[i].input) compare(ours[i].input, "input");
    for (const nn::Named& g : ours[i].gradients) compare(g.tensor, "gradient " + g.name);
  }
  EXPECT_LE(missing, ours.size() / 10);
}

TEST(Source, templates_and_random_models_compute_the_same_in_pytorch) {
  TENON_NEEDS_TORCH();
  json cases = json::array();
  std::vector<Ours> ours;
  for (const Template& t : templates())
    if (!t.model.layers.empty()) ours.push_back(evaluate(t.model, t.name, ours.size() * 100, cases));
  EXPECT_GE(ours.size(), 10u);
  for (uint32_t seed = 1; seed <= 100; ++seed)
    ours.push_back(evaluate(python::random_model(seed, 3 + static_cast<int>(seed % 25)), "seed " + std::to_string(seed),
                            10'000 + seed * 100, cases));
  expect_same(ours, cases, 1e-5);
}

/// Every layer that reads one tensor and is written, with the attributes of the comparison of layers.
TEST(Source, every_layer_computes_the_same_in_pytorch) {
  TENON_NEEDS_TORCH();
  json cases = json::array();
  std::vector<Ours> ours;
  std::set<std::string> written, left_out;
  for (const json& c : read_cases("layers.json")) {
    const LayerInfo* info = find_layer_type(c.at("layer").get<std::string>());
    if (!info || c.contains("parametrize") || c.at("inputs").size() != 1 || info->inputs - info->optional > 1) continue;
    Tensor x = input_of(c.at("inputs")[0], 1);
    ModelSpec model;
    model.name = "one layer";
    std::vector<int64_t> sample(x.size().begin() + 1, x.size().end());
    if (sample.empty()) continue;
    model.layers = {{"input", "Input", {{"shape", sample}, {"dtype", std::string(name(x.dtype()))}}},
                    spec_of(c),
                    {"output", "Output", {}}};
    model.layers[1].name = "layer";
    model.wires = {{"input", 0, "layer", 0}, {"layer", 0, "output", 0}};
    try {
      ours.push_back(
          evaluate(model, info->type + " " + c.value("attrs", json::object()).dump(), ours.size() * 100, cases));
      written.insert(info->type);
    } catch (const Error& e) {
      left_out.insert(info->type + ": " + e.message());
    }
  }
  std::string without;
  for (const std::string& l : left_out)
    if (!written.count(l.substr(0, l.find(':')))) without += l + "\n";
  EXPECT_GE(written.size(), 60u) << without;
  expect_same(ours, cases, 2e-5);
}

}  // namespace
}  // namespace tenon::peers
