// Sessions that go on from a step of another one: see Note [A branch].
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/tensor_values.h"
#include "engine/data/dataset.h"
#include "engine/optim/optimizer.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/engine/sessions.h"
#include "tests/messages.h"

namespace tenon::session_branches {
namespace {

using namespace testing_sessions;
using testing_words::has;
using testing_words::message_of;

const Settings kBase = {{"data.batch_size", "10"}, {"epochs", "6"}};

Recipe base(const Settings& set = {}) { return with(spirals(kBase), set); }

/// The state after so many steps of a recipe.
Checkpoint state_after(const Recipe& recipe, int64_t steps) {
  TrainingSession s(tanh_model(), recipe);
  run(s, steps);
  return s.save();
}
/// A session under another recipe that goes on from there.
std::unique_ptr<TrainingSession> branch(const Recipe& from, int64_t step, const Settings& set) {
  auto s = std::make_unique<TrainingSession>(tanh_model(), with(from, set));
  s->branch(state_after(from, step), from);
  return s;
}
std::map<std::string, std::string> bytes_of(const Checkpoint& c) {
  std::map<std::string, std::string> all;
  std::vector<char> copy;
  for (const auto& [name, t] : c.tensors) all[name] = std::string(logical_bytes(t, copy));
  return all;
}

TEST(SessionBranch, WithoutAChangeIsItsParentAtEveryStep) {
  const Settings kinds[] = {
      {},
      {{"optimizer.type", "sgd"}, {"optimizer.momentum", "0.9"}, {"schedule.type", "one_cycle"}},
      {{"schedule.type", "plateau"}, {"schedule.patience", "0"}, {"eval_every", "1"}, {"average.type", "ema"}},
      {{"callbacks", "gradient_noise std=0.1"}, {"amp", "fp16"}, {"average.type", "swa"}},
      {{"data.without", "3, 17-20"}, {"init.freeze", "fc1.*"}, {"data.order_seed", "4"}},
  };
  for (const Settings& set : kinds) {
    const Recipe recipe = base(set);
    for (int64_t at : {0, 5, 13, 20}) {
      TrainingSession parent(tanh_model(), recipe);
      run(parent, at);
      const auto child = branch(recipe, at, {});
      for (int64_t step = at; step < 30; ++step) {
        expect_same(child->save(), parent.save());
        run(parent, 1);
        run(*child, 1);
      }
      EXPECT_EQ(child->total_steps(), parent.total_steps());
    }
  }
}

TEST(SessionBranch, TakesTheRateOfItsOwnRecipe) {
  const auto child = branch(base(), 7, {{"optimizer.lr", "0.5"}});
  EXPECT_EQ(child->steps_done(), 7);
  const StepResult r = child->step();
  EXPECT_EQ(r.step, 8);
  EXPECT_EQ(r.lr, 0.5);
}

TEST(SessionBranch, GoesOnWithTheParentsNextSampleInOtherBatches) {
  // 130 samples: 13 batches of 10. After step 17 the second epoch has 40 of its samples behind it.
  TrainingSession parent(tanh_model(), base());
  std::vector<int64_t> order;  // of the second epoch
  for (int i = 0; i < 26; ++i) {
    const StepResult r = parent.step();
    if (r.epoch == 1) order.insert(order.end(), r.rows.begin(), r.rows.end());
  }
  const auto child = branch(base(), 17, {{"data.batch_size", "20"}});
  EXPECT_EQ(child->steps_per_epoch(), 7);
  EXPECT_EQ(child->epoch(), 1);
  EXPECT_EQ(child->shift(), 7 + 2 - 17);
  EXPECT_EQ(child->total_steps(), 6 * 7 + 17 - 9);
  const StepResult r = child->step();
  EXPECT_EQ(r.step, 18);
  EXPECT_EQ(r.rows, std::vector<int64_t>(order.begin() + 40, order.begin() + 60));
  run(*child, 4);
  EXPECT_EQ(child->epoch(), 2);
  EXPECT_TRUE(child->evaluation_due());

  // It is saved, loaded and gone on with like any session.
  const Checkpoint half = child->save();
  TrainingSession again(tanh_model(), base({{"data.batch_size", "20"}}));
  again.load(half);
  EXPECT_EQ(again.shift(), child->shift());
  EXPECT_EQ(again.total_steps(), child->total_steps());
  run(again, 9);
  run(*child, 9);
  expect_same(again.save(), child->save());
  while (!child->finished()) child->step();
  EXPECT_EQ(child->epoch(), 6);

  // Batches that do not fit the samples so far begin with the one that has the next of them.
  const auto odd = branch(base(), 17, {{"data.batch_size", "16"}});
  const StepResult first = odd->step();
  EXPECT_EQ(first.rows, std::vector<int64_t>(order.begin() + 32, order.begin() + 48));
}

TEST(SessionBranch, OfABranchKeepsItsPlace) {
  const Recipe wide = base({{"data.batch_size", "20"}});
  const auto child = branch(base(), 17, {{"data.batch_size", "20"}});
  run(*child, 3);
  TrainingSession grandchild(tanh_model(), wide);
  grandchild.branch(child->save(), wide);
  EXPECT_EQ(grandchild.shift(), child->shift());
  run(grandchild, 5);
  run(*child, 5);
  expect_same(grandchild.save(), child->save());
}

TEST(SessionBranch, AnotherSeedIsAnotherOrderOfTheSameSamples) {
  const auto child = branch(base(), 4, {{"seed", "9"}, {"data.seed", "0"}});
  TrainingSession parent(tanh_model(), base());
  run(parent, 4);
  const data::Batch mine = data::fetch(child->train_data(), {5}), theirs = data::fetch(parent.train_data(), {5});
  EXPECT_EQ(value_at(mine.x, {0, 0}), value_at(theirs.x, {0, 0}));
  EXPECT_NE(child->step().rows, parent.step().rows);
  // Only the order.
  const auto other = branch(base(), 4, {{"data.order_seed", "9"}});
  EXPECT_EQ(value_at(data::fetch(other->train_data(), {5}).x, {0, 0}), value_at(theirs.x, {0, 0}));
  const auto again = branch(base(), 4, {{"data.order_seed", "9"}});
  EXPECT_EQ(other->step().rows, again->step().rows);
}

TEST(SessionBranch, AnotherOptimizerBeginsAndTheWeightsGoOn) {
  const auto child = branch(base(), 6, {{"optimizer.type", "sgd"}, {"optimizer.momentum", "0.9"}});
  const auto before = bytes_of(state_after(base(), 6)), after = bytes_of(child->save());
  for (const char* name : {"model/fc1.weight", "model/fc2.bias"}) EXPECT_EQ(after.at(name), before.at(name));
  EXPECT_EQ(child->optimizer().steps(), 0);
  child->step();
  EXPECT_EQ(child->optimizer().steps(), 1);
  // One of the same kind goes on with what it remembers, also of what is left to train.
  const auto frozen = branch(base(), 6, {{"init.freeze", "fc1.*"}});
  EXPECT_EQ(frozen->optimizer().steps(), 6);
  const auto kept = bytes_of(frozen->save());
  for (const auto& [name, bytes] : kept) EXPECT_EQ(bytes, before.at(name)) << name;
  EXPECT_LT(kept.size(), before.size());
}

TEST(SessionBranch, BeginsALayerAnew) {
  const auto before = bytes_of(state_after(base(), 6));
  const auto child = branch(base(), 6, {{"init.anew", "fc1.*"}});
  const auto after = bytes_of(child->save());
  EXPECT_NE(after.at("model/fc1.weight"), before.at("model/fc1.weight"));
  EXPECT_EQ(after.at("model/fc2.weight"), before.at("model/fc2.weight"));
  // Not what the run began with.
  EXPECT_NE(after.at("model/fc1.weight"), bytes_of(state_after(base(), 0)).at("model/fc1.weight"));
  EXPECT_TRUE(has(message_of([] { branch(base(), 1, {{"init.anew", "fc9.*"}}); }), "init.anew"));
}

TEST(SessionBranch, MayHaveAnotherPrecisionOrAnAverage) {
  for (const Settings& set :
       {Settings{{"amp", "bf16"}}, Settings{{"amp", "fp16"}}, Settings{{"average.type", "ema"}}}) {
    const auto child = branch(base(), 6, set);
    run(*child, 10);
    TrainingSession again(tanh_model(), with(base(), set));
    again.load(child->save());
    run(again, 5);
    run(*child, 5);
    expect_same(again.save(), child->save());
  }
}

TEST(SessionBranch, RefusesTheStateOfAnotherModel) {
  const ModelSpec wider = Chain("test", {2})
                              .add("fc1", "Linear", {{"out_features", int64_t{17}}})
                              .add("act", "Tanh")
                              .add("fc2", "Linear", {{"out_features", int64_t{2}}})
                              .done();
  TrainingSession s(wider, base());
  const Checkpoint before = s.save();
  EXPECT_TRUE(has(message_of([&] { s.branch(state_after(base(), 2), base()); }), "fc1"));
  expect_same(s.save(), before);
  TrainingSession begun(tanh_model(), base());
  begun.step();
  EXPECT_TRUE(has(message_of([&] { begun.branch(state_after(base(), 2), base()); }), "has done steps"));
}

}  // namespace
}  // namespace tenon::session_branches
