// What a session begins with, and what of it is frozen.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "core/tensor_bytes.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/module.h"
#include "engine/op/op.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"
#include "engine/spec/chain.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "engine/train/weight_map.h"
#include "tests/engine/files.h"
#include "tests/engine/sessions.h"

namespace tenon::session_starts {
namespace {

using namespace testing_sessions;

using testing_files::error_of;
using I = int64_t;

ModelSpec normed_model(I hidden = 16) {
  return Chain("test", {2})
      .add("fc1", "Linear", {{"out_features", hidden}})
      .add("norm", "BatchNorm2d")
      .add("act", "Tanh")
      .add("fc2", "Linear", {{"out_features", I{2}}})
      .done();
}
Recipe decayed_recipe(const Settings& set = {}) {
  return with(
      spirals(
          {{"data.batch_size", "24"}, {"epochs", "6"}, {"optimizer.type", "adamw"}, {"optimizer.weight_decay", "0.5"}}),
      set);
}
std::map<std::string, std::string> bytes(TrainingSession& s) {
  std::map<std::string, std::string> all;
  std::vector<char> copy;
  for (const auto& [name, t] : s.save().tensors) all[name] = std::string(logical_bytes(t, copy));
  return all;
}
std::vector<GivenTensor> weights_of(TrainingSession& s) {
  std::vector<GivenTensor> all;
  for (const nn::Named& n : s.model().state_dict())
    all.push_back(
        {n.name, name(n.tensor.dtype()), {n.tensor.size().begin(), n.tensor.size().end()}, detach(n.tensor), {}});
  return all;
}

/// Ops of the backward pass, by the layer they belong to.
struct BackwardOps : OpObserver {
  std::map<std::string, int> count;
  void after(const Call&, int64_t, int64_t) override {
    if (t_state.origin.phase == Phase::backward) ++count[module_path(t_state.origin.module)];
  }
};
std::map<std::string, int> backward_of(const Settings& set) {
  TrainingSession s(normed_model(), decayed_recipe(set));
  BackwardOps ops;
  ObserveScope observe(ops);
  s.step();
  return ops.count;
}

TEST(Freeze, what_is_frozen_is_neither_updated_nor_decayed_nor_remembered) {
  TrainingSession s(normed_model(), decayed_recipe({{"init.freeze", "fc1.*; norm.*"}, {"average.type", "ema"}}));
  const auto before = bytes(s);
  run(s, 8);
  const auto after = bytes(s);
  for (const char* name : {"fc1.weight", "fc1.bias", "norm.weight", "norm.running_mean", "norm.running_var"}) {
    EXPECT_EQ(before.at(std::string("model/") + name), after.at(std::string("model/") + name)) << name;
    EXPECT_EQ(before.at(std::string("average/") + name), after.at(std::string("average/") + name)) << name;
  }
  EXPECT_NE(before.at("model/fc2.weight"), after.at("model/fc2.weight"));
  for (const auto& [name, value] : after) EXPECT_FALSE(name.starts_with("optimizer/fc1")) << name;
  EXPECT_EQ(s.optimizer().parameters().size(), 2u);
  for (const nn::Named& p : s.model().parameters())
    EXPECT_EQ(grad_of(p.tensor).defined(), p.name.starts_with("fc2")) << p.name;
}

TEST(Freeze, no_gradient_is_computed_that_nobody_needs) {
  const auto all = backward_of({}), half = backward_of({{"init.freeze", "fc1.*; norm.*"}});
  EXPECT_GT(all.at("fc1"), 0);
  EXPECT_GT(all.at("norm"), 0);
  EXPECT_FALSE(half.contains("fc1"));
  EXPECT_FALSE(half.contains("norm"));
  EXPECT_FALSE(half.contains("act"));
  EXPECT_GT(half.at("fc2"), 0);
  // What lies before something trained still passes gradients on.
  const auto last = backward_of({{"init.freeze", "fc2.*"}});
  EXPECT_GT(last.at("fc1"), 0);
  EXPECT_GT(last.at("fc2"), 0);
}

TEST(Freeze, running_statistics_rest_where_their_own_names_fit) {
  const auto statistics = [](const Settings& set) {
    TrainingSession s(normed_model(), decayed_recipe(set));
    const auto before = bytes(s);
    run(s, 5);
    return before.at("model/norm.running_mean") == bytes(s).at("model/norm.running_mean");
  };
  EXPECT_TRUE(statistics({{"init.freeze", "norm.*"}}));
  EXPECT_TRUE(statistics({{"init.freeze", "norm.running_*"}}));
  EXPECT_FALSE(statistics({{"init.freeze", "norm.weight; norm.bias"}}));
  EXPECT_FALSE(statistics({}));
  // At rest it computes with them: an evaluation is then no other function than a step.
  TrainingSession s(normed_model(),
                    decayed_recipe({{"init.freeze", "norm.*"}, {"data.batch_size", "26"}, {"data.shuffle", "false"}}));
  const double probed = s.evaluate().loss;
  EXPECT_NE(probed, 0);
  s.step();
  s.evaluate();
  const auto before = bytes(s);
  s.step();
  EXPECT_EQ(before.at("model/norm.running_var"), bytes(s).at("model/norm.running_var")) << "after an evaluation too";
}

TEST(Freeze, goes_on_anywhere_to_the_same_bits) {
  const Settings set = {{"init.freeze", "fc1.*; norm.*"}, {"optimizer.groups", "fc2.bias: lr=3"}};
  TrainingSession through(normed_model(), decayed_recipe(set)), first(normed_model(), decayed_recipe(set)),
      second(normed_model(), decayed_recipe(set));
  run(through, 10);
  run(first, 4);
  second.load(first.save());
  run(second, 6);
  EXPECT_EQ(bytes(through), bytes(second));
}

TEST(Freeze, says_what_fits_nothing) {
  const auto of = [](const Settings& set) {
    return error_of([&] { TrainingSession s(normed_model(), decayed_recipe(set)); });
  };
  EXPECT_SAYS(of({{"init.freeze", "fc3.*"}}), "init.freeze: the model has no parameter called \"fc3.*\"");
  EXPECT_SAYS(of({{"init.freeze", "*"}}), "nothing is left to train");
  EXPECT_SAYS(of({{"init.freeze", "fc1.*"}, {"optimizer.groups", "fc1.*: lr=2"}}),
              "no parameter that is trained is called \"fc1.*\"");
  TrainingSession s(normed_model(), decayed_recipe());
  Recipe other = decayed_recipe({{"init.freeze", "fc1.*"}});
  EXPECT_SAYS(error_of([&] { s.change(other); }), "init.freeze cannot change in a run that has begun");
}

TEST(StartFrom, all_of_another_model_gives_its_evaluation) {
  TrainingSession trained(normed_model(), decayed_recipe());
  run(trained, 20);
  TrainingSession s(normed_model(), decayed_recipe({{"seed", "7"}, {"average.type", "ema"}}));
  const WeightMap map = s.start_from(weights_of(trained));
  EXPECT_EQ(map.taken(), map.model.size());
  EXPECT_EQ(map.model.size(), 8u);
  TrainingSession same(normed_model(), decayed_recipe());
  EXPECT_NE(same.evaluate().loss, trained.evaluate().loss);
  same.start_from(weights_of(trained));
  EXPECT_EQ(same.evaluate().correct, trained.evaluate().correct);
  const auto begun = bytes(s), was = bytes(trained);
  for (const auto& [name, value] : was)
    if (name.starts_with("model/")) {
      EXPECT_EQ(begun.at(name), value) << name;
      EXPECT_EQ(begun.at("average/" + name.substr(6)), value) << "the average begins there too";
    }
}

TEST(StartFrom, other_types_are_converted) {
  TrainingSession trained(normed_model(), decayed_recipe()), s(normed_model(), decayed_recipe({{"seed", "9"}}));
  std::vector<GivenTensor> half = weights_of(trained);
  for (GivenTensor& g : half) g.tensor = cast(g.tensor, DType::f16);
  s.start_from(half);
  for (const nn::Named& n : s.model().state_dict()) {
    EXPECT_EQ(n.tensor.dtype(), DType::f32);
    for (const GivenTensor& g : half)
      for (I i = 0; g.name == n.name && i < n.tensor.numel(); ++i)
        ASSERT_EQ(storage_value(n.tensor, i), storage_value(g.tensor, i)) << g.name;
  }
}

TEST(StartFrom, what_is_missing_fails_or_keeps_what_the_seed_gives) {
  TrainingSession trained(normed_model(24), decayed_recipe());
  const std::vector<GivenTensor> wide = weights_of(trained);  // fc1 and the norm are of another size
  TrainingSession s(normed_model(), decayed_recipe());
  const auto before = bytes(s);
  const std::string refusal = error_of([&] { s.start_from(wide); });
  EXPECT_SAYS(refusal, "fc1.weight (wrong shape)");
  EXPECT_SAYS(refusal, "init.missing=keep");
  EXPECT_EQ(bytes(s), before) << "nothing was changed";
  TrainingSession kept(normed_model(), decayed_recipe({{"init.missing", "keep"}, {"seed", "0"}}));
  const WeightMap map = kept.start_from(wide);
  EXPECT_EQ(map.count(WeightState::by_name), 1u) << map.text();  // fc2.bias
  EXPECT_EQ(map.count(WeightState::wrong_shape), 7u);
  const auto after = bytes(kept);
  EXPECT_EQ(after.at("model/fc1.weight"), before.at("model/fc1.weight"));
  EXPECT_SAYS(error_of([&] { kept.start_from({}); }), "no tensor of the file fits the model");
  run(kept, 1);
  EXPECT_SAYS(error_of([&] { kept.start_from(wide); }), "has done steps");
}

}  // namespace
}  // namespace tenon::session_starts
