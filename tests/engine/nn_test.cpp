// The machinery of modules: hooks, walks, state, starting values, parametrisations, pruning.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/model/examine.h"
#include "engine/model/graph_module.h"
#include "engine/nn/attention.h"
#include "engine/nn/containers.h"
#include "engine/nn/init.h"
#include "engine/nn/layers.h"
#include "engine/nn/loss.h"
#include "engine/nn/parametrize.h"
#include "engine/nn/random_state.h"
#include "engine/nn/rnn.h"
#include "engine/nn/state_dict.h"
#include "engine/ops/attention.h"
#include "engine/ops/create.h"
#include "engine/ops/dropout.h"
#include "engine/ops/loss.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/core/comma_locale.h"
#include "tests/messages.h"

namespace tenon {
namespace {

Tensor normal_numbers(const Shape& size, uint64_t stream = 1) {
  Tensor t = empty(size);
  Philox random{5, stream};
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<float>()[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)));
  return t;
}
double worst(const Tensor& a, const Tensor& b) { return item(amax(abs(sub(detach(a), detach(b))))); }
using testing_words::error_of;

TEST(ModuleHooks, SeeAndReplaceWhatPasses) {
  nn::Linear fc(3, 2);
  fc.initialize(1, "fc");
  Tensor x = normal_numbers({4, 3});
  set_requires_grad(x);
  Tensor plain = fc(x);
  std::string order;
  int pre = fc.add_forward_pre_hook([&](nn::Module&, std::vector<Tensor>& in) {
    order += "pre ";
    in[0] = mul(in[0], 2);
  });
  int post = fc.add_forward_hook([&](nn::Module& m, std::span<const Tensor> in, Tensor& out) {
    order += "post ";
    EXPECT_EQ(&m, &fc);
    EXPECT_EQ(in.size(), 1u);
    out = add(out, 1);
  });
  Tensor y = fc(x), expected = add(fc.own("bias"), add(mul(sub(plain, fc.own("bias")), 2), 1));
  EXPECT_LT(worst(y, expected), 1e-5);
  EXPECT_EQ(order, "pre post ");
  fc.remove_hook(pre);
  fc.remove_hook(post);
  EXPECT_EQ(worst(fc(x), plain), 0);
  EXPECT_EQ(order, "pre post ");
}

TEST(ModuleHooks, BackwardHookHasBothGradientsAndMayReplaceTheInputs) {
  nn::Linear fc(3, 2);
  fc.initialize(1, "fc");
  Tensor x = normal_numbers({4, 3}), g = normal_numbers({4, 2}, 2);
  set_requires_grad(x);
  int calls = 0;
  int id = fc.add_full_backward_hook([&](nn::Module&, std::vector<Tensor>& in, const Tensor& out) {
    ++calls;
    EXPECT_EQ(worst(out, g), 0);
    EXPECT_LT(worst(in.at(0), matmul(g, detach(fc.own("weight")))), 1e-6);
    in[0] = mul(in[0], 3);
  });
  backward(fc(x), g);
  EXPECT_EQ(calls, 1);
  EXPECT_LT(worst(grad_of(x), mul(matmul(g, detach(fc.own("weight"))), 3)), 1e-5);
  fc.remove_hook(id);
  zero_grad(x);
  backward(fc(x), g);
  EXPECT_EQ(calls, 1);
  EXPECT_LT(worst(grad_of(x), matmul(g, detach(fc.own("weight")))), 1e-6);
}

TEST(ModuleHooks, ABackwardHookOfAModuleThatIsGoneIsAnError) {
  Tensor x = normal_numbers({4, 3}), y;
  set_requires_grad(x);
  {
    nn::Linear fc(3, 2);
    fc.initialize(1, "fc");
    fc.add_full_backward_hook([](nn::Module&, std::vector<Tensor>&, const Tensor&) {});
    y = fc(x);
  }
  try {
    backward(y, normal_numbers({4, 2}));
    FAIL() << "backward called a hook with a module that is gone";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("a hook of Linear(3 -> 2), which is gone"), std::string::npos) << e.what();
  }
}

TEST(ModuleWalks, NameEverything) {
  nn::Sequential net({std::make_shared<nn::Linear>(3, 4), std::make_shared<nn::BatchNorm2d>(4), nn::relu()});
  net.initialize(1, "net");
  std::vector<std::string> names;
  for (auto& [path, m] : net.named_modules()) names.push_back(path + "=" + m->describe());
  EXPECT_EQ(names, (std::vector<std::string>{"=Sequential", "0=Linear(3 -> 4)", "1=BatchNorm2d(4)", "2=ReLU"}));
  names.clear();
  for (auto& n : net.state_dict()) names.push_back(n.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var"}));
  int visited = 0;
  net.apply([&](nn::Module& m) {
    ++visited;
    EXPECT_TRUE(visited < 4 || &m == &net);  // children first
  });
  EXPECT_EQ(visited, 4);
  net.requires_grad_(false);
  for (auto& p : net.parameters()) EXPECT_FALSE(p.tensor.requires_grad());
  net.eval();
  EXPECT_FALSE(net.children()[1].second->training());
}

TEST(ModuleContainers, HoldByNumberAndName) {
  nn::ModuleList list({nn::relu(), nn::tanh()});
  list.push_back(std::make_shared<nn::Linear>(2, 2));
  EXPECT_EQ(list.size(), 3u);
  EXPECT_EQ(list[2].describe(), "Linear(2 -> 2)");
  EXPECT_EQ(list.parameters()[0].name, "2.weight");
  nn::ModuleDict dict;
  dict.insert("encoder", std::make_shared<nn::Linear>(2, 3));
  EXPECT_EQ(dict.parameters()[1].name, "encoder.bias");
  EXPECT_EQ(dict["encoder"].describe(), "Linear(2 -> 3)");
  EXPECT_NE(error_of([&] { dict["encode"]; }).find("did you mean encoder"), std::string::npos);
  EXPECT_NE(error_of([&] { dict.insert("a.b", nn::relu()); }).find("dots"), std::string::npos);
  EXPECT_NE(error_of([&] { dict.insert("encoder", nn::relu()); }).find("already"), std::string::npos);
}

TEST(StateDict, LoadsStrictlyOrReportsAndMapsNames) {
  nn::Sequential a({std::make_shared<nn::Linear>(3, 4), std::make_shared<nn::Linear>(4, 2)});
  nn::Sequential b({std::make_shared<nn::Linear>(3, 4), std::make_shared<nn::Linear>(4, 2)});
  a.initialize(1, "a");
  b.initialize(2, "b");
  formats::NamedTensors given;
  for (auto& n : a.state_dict()) given.emplace_back("model." + n.name, cast(detach(n.tensor), DType::f64));
  EXPECT_NE(error_of([&] { nn::load_state_dict(b, given); }).find("missing: 0.weight"), std::string::npos);
  nn::LoadOptions rename;
  rename.rename = {{"model.", ""}};
  EXPECT_TRUE(nn::load_state_dict(b, given, rename).complete());
  Tensor x = normal_numbers({5, 3});
  EXPECT_EQ(worst(a(x), b(x)), 0);

  given[0].second = normal_numbers({4, 5});
  given.emplace_back("model.2.weight", normal_numbers({1}));
  given.erase(given.begin() + 1);
  uint32_t version = b.state_dict()[0].tensor.version();
  EXPECT_THROW(nn::load_state_dict(b, given, rename), Error);
  EXPECT_EQ(b.state_dict()[2].tensor.version(), b.state_dict()[2].tensor.version());
  rename.strict = false;
  nn::LoadReport r = nn::load_state_dict(b, given, rename);
  EXPECT_EQ(r.missing, std::vector<std::string>{"0.bias"});
  EXPECT_EQ(r.unexpected, std::vector<std::string>{"model.2.weight"});
  ASSERT_EQ(r.mismatched.size(), 1u);
  EXPECT_EQ(r.mismatched[0], "0.weight: [4, 3] here, [4, 5] given");
  EXPECT_EQ(r.loaded, (std::vector<std::string>{"1.weight", "1.bias"}));
  EXPECT_EQ(b.state_dict()[0].tensor.version(), version);
}

TEST(InitSchemes, HaveTheirRangesAndMoments) {
  Tensor t = empty({200, 300});
  auto moments = [&](double& mean_of, double& std_of, double& most) {
    mean_of = item(mean(t));
    std_of = std::sqrt(item(mean(square(sub(t, mean_of)))));
    most = item(amax(abs(t)));
  };
  double m, s, most;
  nn::init_xavier_uniform(t, 2, 1, "w");
  moments(m, s, most);
  EXPECT_NEAR(most, 2 * std::sqrt(6.0 / 500), 1e-4);
  nn::init_kaiming_normal(t, 0, nn::Fan::in, "relu", 1, "w");
  moments(m, s, most);
  EXPECT_NEAR(m, 0, 1e-3);
  EXPECT_NEAR(s, std::sqrt(2.0 / 300), 1e-3);
  nn::init_kaiming_uniform(t, std::sqrt(5.0), nn::Fan::out, "leaky_relu", 1, "w");
  moments(m, s, most);
  EXPECT_NEAR(most, 1 / std::sqrt(200.0), 1e-4);
  nn::init_trunc_normal(t, 0, 1, -0.5, 1, 1, "w");
  EXPECT_GE(item(amin(t)), -0.5);
  EXPECT_LE(item(amax(t)), 1);
  // The mean of a normal distribution cut off at -0.5 and 1.
  EXPECT_NEAR(item(mean(t)), (0.35206533 - 0.24197072) / (0.84134475 - 0.30853754), 5e-3);
  nn::init_orthogonal(t, 1, 1, "w");
  Tensor gram = matmul(t, t, false, true);
  EXPECT_LT(worst(gram, eye(200)), 1e-5);
  nn::init_sparse(t, 0.1, 0.01, 1, "w");
  Tensor zeros_a_column = sum(cast(eq(t, 0), DType::f32), {0});
  EXPECT_EQ(item(amin(zeros_a_column)), 20);
  EXPECT_EQ(item(amax(zeros_a_column)), 20);
  Tensor w = empty({4, 4, 3, 3}), x = normal_numbers({2, 4, 5, 5});
  nn::init_dirac(w);
  EXPECT_EQ(worst(conv_nd(x, w, {}, {.padding = {1}}), x), 0);
  EXPECT_NE(error_of([&] { nn::calculate_gain("swish"); }).find("swish"), std::string::npos);
}

TEST(WeightNorm, IsLengthTimesDirection) {
  nn::Linear fc(5, 3);
  fc.initialize(1, "fc");
  Tensor x = normal_numbers({4, 5}), before = fc(x);
  nn::weight_norm(fc);
  EXPECT_LT(worst(fc(x), before), 1e-6);
  std::vector<std::string> names;
  for (auto& p : fc.parameters()) names.push_back(p.name + to_string(p.tensor.size()));
  EXPECT_EQ(names, (std::vector<std::string>{"bias[3]", "weight_g[3, 1]", "weight_v[3, 5]"}));
  // A gradient along the direction itself changes nothing.
  backward(sum(fc(x)));
  Tensor v = fc.own("weight_v"), gv = grad_of(v);
  ASSERT_TRUE(gv.defined());
  EXPECT_LT(item(amax(abs(sum(mul(gv, detach(v)), {1})))), 1e-5);
  EXPECT_TRUE(grad_of(fc.own("weight_g")).defined());
  fc.bake("weight");
  EXPECT_LT(worst(fc(x), before), 1e-6);
  EXPECT_EQ(fc.parameters().size(), 2u);
  EXPECT_FALSE(fc.reparametrized("weight"));
}

TEST(SpectralNorm, BringsTheLargestSingularValueToOne) {
  nn::Linear fc(6, 4, false);
  fc.initialize(1, "fc");
  nn::spectral_norm(fc);
  Tensor eye6 = eye(6);
  Tensor w = transpose(fc(eye6), 0, 1);
  // The largest eigenvalue of w w^T by many power iterations.
  Tensor gram = detach(matmul(w, w, false, true)), v = normal_numbers({4, 1});
  for (int i = 0; i < 200; ++i) v = div(matmul(gram, v), std::sqrt(item(sum(square(v)))));
  EXPECT_NEAR(std::sqrt(item(sum(square(v)))), 1, 1e-3);
  EXPECT_EQ(fc.state_dict().size(), 3u);
  backward(sum(fc(eye6)));
  EXPECT_TRUE(grad_of(fc.own("weight_orig")).defined());
  fc.eval();
  EXPECT_EQ(worst(fc(eye6), fc(eye6)), 0);
}

TEST(WeightNorm, HoldsInAnyWayToRunAModule) {
  nn::MultiheadAttention a(8, 2, {.batch_first = true});
  a.initialize(1, "a");
  nn::weight_norm(a, "in_proj_weight");
  Tensor x = normal_numbers({3, 5, 8}), before = a.attend(x, x, x, {}).output;
  Tensor g = a.own("in_proj_weight_g");
  {
    NoGrad no_grad;
    copy_(g, mul(detach(g), 2));
  }
  EXPECT_GT(worst(a.attend(x, x, x, {}).output, before), 1e-3);
  EXPECT_EQ(worst(a.attend(x, x, x, {}).output, a(x)), 0);
}

TEST(Pruning, TakesTheLeastAndKeepsItOut) {
  nn::Linear fc(4, 2, false);
  fc.initialize(1, "fc");
  Tensor w = fc.own("weight");
  for (int i = 0; i < 8; ++i) w.data<float>()[i] = static_cast<float>(i % 2 ? -i - 1 : i + 1);  // 1 -2 3 -4 5 -6 7 -8
  nn::prune_l1(fc, "weight", {0.25});
  EXPECT_EQ(item(sum(fc.own("weight_mask"))), 6);
  Tensor eye4 = eye(4), y = fc(eye4);
  EXPECT_EQ(value_at(y, {0, 0}), 0);
  EXPECT_EQ(value_at(y, {1, 0}), 0);
  EXPECT_EQ(value_at(y, {2, 0}), 3);
  backward(sum(y));
  EXPECT_EQ(value_at(grad_of(fc.own("weight_orig")), {0, 0}), 0);
  EXPECT_EQ(value_at(grad_of(fc.own("weight_orig")), {0, 2}), 1);
  nn::prune_l1(fc, "weight", {2});  // of the six that are left
  EXPECT_EQ(item(sum(fc.own("weight_mask"))), 4);
  EXPECT_EQ(value_at(fc(eye4), {3, 0}), 0);
  EXPECT_EQ(value_at(fc(eye4), {0, 1}), 5);
  fc.bake("weight");
  EXPECT_EQ(item(sum(cast(eq(fc.own("weight"), 0), DType::f32))), 4);

  nn::Linear rows(4, 4, false);
  rows.initialize(1, "rows");
  nn::prune_ln_structured(rows, "weight", {1}, 2, 0);  // every slice
  EXPECT_EQ(item(sum(rows.own("weight_mask"))), 0);
  nn::Linear two(4, 4, false);
  two.initialize(1, "two");
  nn::prune_random_structured(two, "weight", {0.5}, 1, 7);
  Tensor by_column = sum(two.own("weight_mask"), {0});
  int gone = 0;
  for (int i = 0; i < 4; ++i) {
    double v = value_at(by_column, {i});
    EXPECT_TRUE(v == 0 || v == 4);
    gone += v == 0;
  }
  EXPECT_EQ(gone, 2);
  EXPECT_THROW(nn::prune_random(two, "weight", {100}, 1), Error);
}

TEST(DropoutKinds, DropWhatTheySayAndKeepTheMoments) {
  nn::RandomScope random({3, 1, 0});
  nn::Dropout features(0.3, {2, true, false});
  features.initialize(1, "d");
  Tensor y = features(full({200, 50, 3, 3}, 1));
  Tensor lo = amin(y, {2, 3}), hi = amax(y, {2, 3});
  EXPECT_EQ(worst(lo, hi), 0);  // a channel is one
  EXPECT_NEAR(item(mean(y)), 1, 0.02);
  EXPECT_NEAR(item(mean(cast(eq(lo, 0), DType::f32))), 0.3, 0.02);
  nn::Dropout alpha(0.2, {0, false, true});
  alpha.initialize(1, "a");
  Tensor x = normal_numbers({300, 300}), z = alpha(x);
  EXPECT_NEAR(item(mean(z)), item(mean(x)), 0.02);
  EXPECT_NEAR(item(mean(square(sub(z, mean(z))))), 1, 0.03);
  nn::Dropout groups(0.4, {0, true, true});
  groups.initialize(1, "g");
  Tensor same = groups(full({20, 30, 4}, 0.5));
  EXPECT_EQ(worst(amin(same, {2}), amax(same, {2})), 0);
}

TEST(Attention, DropsSharesAsTheCompositeDoes) {
  Tensor q = normal_numbers({2, 70, 8}, 1), k = normal_numbers({2, 300, 8}, 2), v = normal_numbers({2, 300, 8}, 3);
  AttentionOptions o;
  o.dropout = 0.3;
  o.draws = {random_key(4, 0)};
  Tensor fused = scaled_dot_product_attention(q, k, v, {}, o);
  Tensor shares = dropout(softmax(mul(matmul(q, k, false, true), 1 / std::sqrt(8.0))), 0.3, {random_key(4, 0)});
  EXPECT_LT(worst(fused, matmul(shares, v)), 1e-5);
  // A query that sees nothing gives 0, not NaN.
  Tensor keep = full({70, 300}, 1, DType::boolean);
  for (int j = 0; j < 300; ++j) keep.data<bool>()[3 * 300 + j] = false;
  Tensor masked = scaled_dot_product_attention(q, k, v, keep);
  EXPECT_EQ(item(amax(abs(select(masked, 1, 3)))), 0);
  EXPECT_TRUE(std::isfinite(item(sum(masked))));
}

TEST(MultiheadAttention, GivesItsWeights) {
  nn::MultiheadAttention a(8, 2, {.batch_first = true});
  a.initialize(1, "a");
  Tensor x = normal_numbers({3, 5, 8});
  auto plain = a.attend(x, x, x, {}), shown = a.attend(x, x, x, {}, true), each = a.attend(x, x, x, {}, true, false);
  EXPECT_FALSE(plain.weights.defined());
  EXPECT_LT(worst(plain.output, shown.output), 1e-6);
  EXPECT_EQ(to_string(shown.weights.size()), "[3, 5, 5]");
  EXPECT_EQ(to_string(each.weights.size()), "[3, 2, 5, 5]");
  EXPECT_LT(worst(sum(shown.weights, {2}), ones({3, 5})), 1e-6);
}

TEST(Rnn, GivesItsLastStatesAndStateCarriesOn) {
  nn::Rnn lstm(kernels::Cell::lstm, 4, 6, {.num_layers = 2});
  lstm.initialize(1, "lstm");
  Tensor x = normal_numbers({7, 3, 4});
  auto whole = lstm.run(x);
  auto first = lstm.run(narrow(x, 0, 0, 3)), second = lstm.run(narrow(x, 0, 3, 4), first.last);
  EXPECT_LT(worst(narrow(whole.output, 0, 3, 4), second.output), 1e-6);
  EXPECT_LT(worst(whole.last.h, second.last.h), 1e-6);
  EXPECT_LT(worst(whole.last.c, second.last.c), 1e-6);
  EXPECT_EQ(worst(select(whole.last.h, 0, 1), select(whole.output, 0, 6)), 0);
  nn::Rnn gru(kernels::Cell::gru, 4, 6, {.num_layers = 3, .dropout = 0.5});
  gru.initialize(1, "gru");
  nn::RandomScope random({3, 1, 0});
  EXPECT_GT(worst(gru.run(x).output, gru.run(x).output), 1e-3);
  gru.eval();
  EXPECT_EQ(worst(gru.run(x).output, gru.run(x).output), 0);
  EXPECT_NE(error_of([&] { gru.run(normal_numbers({7, 3, 5})); }).find("[steps, batch, 4]"), std::string::npos);
}

TEST(GraphModule, LeavesOptionalInputsOutAndTakesTokens) {
  ModelSpec m;
  m.name = "tiny";
  m.layers = {{"in", "Input", {{"shape", std::vector<int64_t>{5}}, {"dtype", std::string("i64")}}},
              {"rows", "Embedding", {{"num_embeddings", int64_t{7}}, {"embedding_dim", int64_t{8}}}},
              {"attend", "MultiheadAttention", {{"num_heads", int64_t{2}}}},
              {"out", "Output", {}}};
  m.wires = {{"in", 0, "rows", 0}, {"rows", 0, "attend", 0}, {"attend", 0, "out", 0}};
  for (const LayerReport& r : examine(m, 3)) EXPECT_EQ(r.error, "") << r.layer;
  GraphModule g(m);
  g.initialize(1);
  EXPECT_EQ(g.input().dtype, DType::i64);
  Tensor tokens = full({3, 5}, 2, DType::i64);
  EXPECT_EQ(to_string(g(tokens).size()), "[3, 5, 8]");
}

TEST(Losses, AreFoundByNameAndCheckTheirAttributes) {
  nn::Loss loss("cross_entropy", {{"label_smoothing", 0.1}});
  EXPECT_GT(item(loss(normal_numbers({4, 3}), full({4}, 1, DType::i64))), 0);
  EXPECT_NE(error_of([] { nn::Loss("cros_entropy"); }).find("did you mean cross_entropy"), std::string::npos);
  EXPECT_NE(error_of([] { nn::Loss("mse", {{"beta", 1.0}}); }).find("beta"), std::string::npos);
  EXPECT_NE(error_of([&] {
              nn::Loss("mse", {{"reduction", std::string("most")}})(normal_numbers({2}), normal_numbers({2}));
            }).find("most"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] {
        nn::Loss("cross_entropy", {{"weight", std::string("1,x")}})(normal_numbers({2, 2}), full({2}, 0, DType::i64));
      }).find("\"x\""),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              loss(normal_numbers({4, 3}), full({4}, 3, DType::i64));
            }).find("target 3"),
            std::string::npos);
  EXPECT_NE(error_of([&] { loss(std::vector<Tensor>(3)); }).find("takes 2"), std::string::npos);
  for (const nn::LossDef& def : nn::losses()) {
    EXPECT_FALSE(def.info.help.empty());
    EXPECT_FALSE(def.info.group.empty());
    for (const AttrDef& a : def.info.attrs) EXPECT_FALSE(a.help.empty()) << def.info.type << "." << a.name;
  }
}

TEST(Losses, WeightsAreTheSameUnderEveryDesktop) {
  const nn::Loss loss("cross_entropy", {{"weight", std::string("1, 0.5, 2")}});
  auto weighted = [&] { return item(loss(normal_numbers({4, 3}), full({4}, 1, DType::i64))); };
  const double expected = weighted();
  const testing_locale::CommaLocale comma;
  if (!comma) GTEST_SKIP() << testing_locale::CommaLocale::kMissing;
  EXPECT_EQ(weighted(), expected);
}

}  // namespace
}  // namespace tenon
