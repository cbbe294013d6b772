// Every registered layer against PyTorch: the same weights, the same data, ten SGD steps. The cases are tests/peers/layers.json:
//   layer, attrs: as in a model; inputs: sizes, or {"shape", "dtype", "below"}, or null; torch: the module there;
//   call: how it is called where that is not m(x, ...); train: false compares evaluation (random layers, with `why`);
//   tolerance: relative to 1 + the largest value, where 2e-5 is too strict, with `why`.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "core/error.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/model/layer_registry.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/ops/loss.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

using nlohmann::json;

json read_cases(const char* file) {
  std::ifstream in(std::string(TENON_SOURCE_DIR) + "/tests/peers/" + file);
  return json::parse(in);
}

AttrValue attr_value(const json& j) {
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number()) return j.get<double>();
  if (j.is_string()) return j.get<std::string>();
  return j.get<std::vector<int64_t>>();
}
LayerSpec spec_of(const json& c) {
  LayerSpec spec{"layer", c.at("layer"), {}};
  const json attrs = c.value("attrs", json::object());
  for (const auto& [name, v] : attrs.items()) spec.attrs.push_back({name, attr_value(v)});
  return spec;
}

Tensor random(const Shape& size, uint64_t stream, double scale = 1) {
  Tensor t = empty(size);
  Philox philox{17, stream};
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(scale * philox.normal(static_cast<uint64_t>(i)));
  return t;
}
Tensor input_of(const json& j, uint64_t stream) {
  if (j.is_null()) return {};
  Shape size((j.is_array() ? j : j.at("shape")).get<std::vector<int64_t>>());
  std::string dtype = j.is_array() ? "f32" : j.value("dtype", "f32");
  if (dtype == "f32") return random(size, stream);
  int64_t below = j.value("below", int64_t{2});
  Tensor t = empty(size, dtype == "bool" ? DType::boolean : DType::i64);
  Philox philox{17, stream};
  for (int64_t i = 0; i < t.numel(); ++i) {
    auto v = j.contains("values") ? j.at("values").at(static_cast<size_t>(i)).get<int64_t>()
                                  : static_cast<int64_t>(philox.below(static_cast<uint64_t>(i), static_cast<uint64_t>(below)));
    if (dtype == "bool")
      t.data<bool>()[i] = v != 0;
    else
      t.data<int64_t>()[i] = v;
  }
  return t;
}

json to_json(const Tensor& t) {
  if (!t) return nullptr;
  Tensor c = contiguous(detach(t));
  json values = json::array();
  for (int64_t i = 0; i < c.numel(); ++i) {
    double v = storage_value(c, c.offset() + i);
    if (is_floating(c.dtype()))
      values.push_back(v);
    else
      values.push_back(static_cast<int64_t>(v));
  }
  return {{"shape", std::vector<int64_t>(c.size().begin(), c.size().end())}, {"dtype", name(c.dtype())}, {"values", values}};
}

/// Largest difference, relative to 1 + the largest value.
double apart(const Tensor& a, const Tensor& b) {
  if (!(a.size() == b.size())) return INFINITY;
  Tensor x = contiguous(detach(a)), y = contiguous(detach(b));
  double worst = 0, most = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    double p = storage_value(x, x.offset() + i), q = storage_value(y, y.offset() + i);
    if (std::isnan(p) != std::isnan(q)) return INFINITY;
    if (p != q && !std::isnan(p)) worst = std::max(worst, std::abs(p - q));
    if (std::isfinite(q)) most = std::max(most, std::abs(q));
  }
  return worst / (1 + most);
}

struct Trained {
  Tensor output;
  std::vector<Tensor> input_gradients;
  std::vector<nn::Named> state;
};

/// Ten steps of the case; fills in what PyTorch needs to do the same.
Trained train(json& c, size_t index) {
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
  for (const LayerInfo& info : layer_types()) {
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
      ours.push_back(train(cases[i], i));
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
