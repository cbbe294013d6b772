// Every registered loss against PyTorch: ten SGD steps on its first input from the same values. The cases are
// tests/peers/losses.json:
//   loss, attrs: as in a recipe; inputs: the output first, as in layers.json; ready: what makes the output of the value
//   that is trained
//   ("sigmoid", "log_softmax", "exp"); torch: the loss there, a function of the inputs.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/loss.h"
#include "engine/ops/loss.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/peers/cases.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

using nlohmann::json;

Tensor ready(const std::string& how, const Tensor& x) {
  if (how == "sigmoid") return sigmoid(x);
  if (how == "log_softmax") return log_softmax(x, x.ndim() == 2 ? 1 : -1);
  if (how == "exp") return exp(x);
  return x;
}

struct Outcome {
  std::vector<Tensor> inputs;  ///< trained ones, after ten steps
  Tensor first, gradient;
};

Outcome evaluate_case(json& c, size_t index) {
  std::vector<Tensor> inputs;
  for (const json& j : c.at("inputs")) {
    Tensor t = input_of(j, 100 * index + inputs.size());
    if (j.is_object() && j.value("signs", false)) t = cast(sub(mul(cast(t, DType::f32), 2), 1), DType::f32);
    if (j.is_object() && j.value("float", false)) t = cast(t, DType::f32);
    if (j.is_object() && j.value("shares", false)) t = softmax(t, 1);
    inputs.push_back(t);
  }
  int trained = c.value("trained", 1);
  c["inputs"] = json::array();
  for (const Tensor& t : inputs) c["inputs"].push_back(to_json(t));
  for (int i = 0; i < trained; ++i) set_requires_grad(inputs[static_cast<size_t>(i)]);
  std::string how = c.value("ready", "");
  LayerSpec spec = spec_of(c);
  nn::Loss loss(spec.type, spec.attrs);
  Outcome r;
  for (int step = 0; step < 10; ++step) {
    for (Tensor& t : inputs) zero_grad(t);
    std::vector<Tensor> args = inputs;
    for (int i = 0; i < trained; ++i) args[static_cast<size_t>(i)] = ready(how, args[static_cast<size_t>(i)]);
    Tensor y = loss(args);
    if (step == 0) r.first = clone(detach(y));
    backward(sum(y));
    if (step == 0) r.gradient = clone(grad_of(inputs[0]));
    NoGrad no_grad;
    for (int i = 0; i < trained; ++i) {
      Tensor& t = inputs[static_cast<size_t>(i)];
      copy_(t, sub(detach(t), mul(grad_of(t), 0.2)));
    }
  }
  r.inputs.assign(inputs.begin(), inputs.begin() + trained);
  return r;
}

TEST(Losses, EveryLossHasACase) {
  std::set<std::string> have;
  for (const json& c : read_cases("losses.json")) {
    have.insert(c.at("loss").get<std::string>());
    EXPECT_TRUE(nn::losses().find(c.at("loss").get<std::string>())) << c.at("loss");
  }
  for (const nn::LossDef& def : nn::losses())
    EXPECT_TRUE(have.count(def.info.type)) << def.info.type << " has no case in tests/peers/losses.json";
}

TEST(Losses, TenStepsAreThoseOfPyTorch) {
  TENON_NEEDS_TORCH();
  json cases = read_cases("losses.json");
  std::vector<Outcome> ours;
  for (size_t i = 0; i < cases.size(); ++i) {
    try {
      ours.push_back(evaluate_case(cases[i], i));
    } catch (const Error& e) {
      FAIL() << cases[i].at("loss") << " " << cases[i].value("attrs", json::object()) << ": " << e.what();
    }
  }
  auto theirs = run_torch("losses.py", cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    std::string what = cases[i].at("loss").get<std::string>() + " " + cases[i].value("attrs", json::object()).dump();
    auto compare = [&](const Tensor& a, const std::string& key) {
      EXPECT_LE(apart(a, find(theirs, std::to_string(i) + " " + key)), 2e-5) << what << ", " << key;
    };
    compare(ours[i].first, "loss");
    compare(ours[i].gradient, "gradient");
    for (size_t k = 0; k < ours[i].inputs.size(); ++k) compare(ours[i].inputs[k], "input " + std::to_string(k));
  }
}

}  // namespace
}  // namespace tenon::peers
