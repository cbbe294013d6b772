#include "engine/train/replica.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "core/error.h"
#include "engine/nn/module.h"
#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/engine/same_bits.h"
#include "tests/thread_replica.h"

namespace tenon {
namespace {

struct Trained {
  std::vector<StepResult> steps;
  Checkpoint end;
  Evaluation evaluation;
  size_t ready = 0, parameters = 0;
  int finished = 0;
};

Recipe recipe_of(const std::vector<std::pair<std::string, std::string>>& set) {
  Recipe recipe = find_template("spirals").recipe;
  recipe.set("data.batch_size", "96");
  for (const auto& [key, value] : set) recipe.set(key, value);
  return recipe;
}
/// Of every rank.
std::vector<Trained> train(int world, const ModelSpec& model, const Recipe& recipe, int steps) {
  testing_replicas::Group group(world);
  std::vector<Trained> all(static_cast<size_t>(world));
  std::vector<std::thread> threads;
  for (int r = 0; r < world; ++r)
    threads.emplace_back([&, r] {
      Trained& t = all[static_cast<size_t>(r)];
      testing_replicas::ThreadReplica replica(group, r);
      TrainingSession session(model, recipe, {{}, world > 1 ? &replica : nullptr});
      for (int i = 0; i < steps; ++i) t.steps.push_back(session.step());
      t.end = session.save();
      t.evaluation = session.evaluate();
      t.ready = replica.ready.size();
      t.finished = replica.finished;
      t.parameters = session.model().parameters().size();
    });
  for (auto& t : threads) t.join();
  return all;
}

/// A model whose layers see each sample alone: no running statistics, no dropout.
ModelSpec plain_model() {
  ModelSpec m;
  m.layers = {{"in", "Input", {{"shape", std::vector<int64_t>{2}}}},
              {"fc1", "Linear", {{"out_features", int64_t{48}}}},
              {"act", "Tanh", {}},
              {"fc2", "Linear", {{"out_features", int64_t{2}}}},
              {"out", "Output", {}}};
  for (size_t i = 1; i < m.layers.size(); ++i) m.wires.push_back({m.layers[i - 1].name, 0, m.layers[i].name, 0});
  return m;
}

void expect_same_tensors(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i)
    EXPECT_TRUE(same_bits(a.tensors[i].second, b.tensors[i].second)) << a.tensors[i].first;
}

TEST(Replica, TwoEqualOneOnTheWholeBatch) {
  for (const char* parts : {"1", "3"}) {
    const Recipe recipe = recipe_of({{"data.micro_batches", parts}, {"optimizer.clip_norm", "1"}});
    const auto one = train(1, plain_model(), recipe, 12), two = train(2, plain_model(), recipe, 12),
               again = train(2, plain_model(), recipe, 12);
    expect_same_tensors(two[0].end, two[1].end);
    expect_same_tensors(two[0].end, again[0].end);
    for (size_t i = 0; i < one[0].steps.size(); ++i) {
      EXPECT_NEAR(two[0].steps[i].loss, one[0].steps[i].loss, 1e-5);
      EXPECT_NEAR(two[0].steps[i].grad_norm, one[0].steps[i].grad_norm, 1e-5);
      EXPECT_EQ(two[0].steps[i].loss, two[1].steps[i].loss);
      EXPECT_NEAR(two[0].steps[i].accuracy, one[0].steps[i].accuracy, 1.5 / 96);  // a score may fall on either side
      EXPECT_EQ(two[0].steps[i].accuracy, two[1].steps[i].accuracy);
      EXPECT_EQ(two[0].steps[i].samples, one[0].steps[i].samples);
      std::vector<int64_t> rows = two[0].steps[i].rows;
      rows.insert(rows.end(), two[1].steps[i].rows.begin(), two[1].steps[i].rows.end());
      EXPECT_EQ(rows, one[0].steps[i].rows);
    }
    for (size_t i = 0; i < one[0].end.tensors.size(); ++i) {
      const Tensor &a = one[0].end.tensors[i].second, &b = two[0].end.tensors[i].second;
      for (int64_t k = 0; k < a.numel(); ++k)
        ASSERT_NEAR(storage_value(a, a.offset() + k), storage_value(b, b.offset() + k), 1e-4)
            << one[0].end.tensors[i].first;
    }
    // Once a step for each parameter, however many micro-batches it had.
    EXPECT_EQ(two[0].ready, 12 * two[0].parameters);
    EXPECT_EQ(two[0].finished, 12);
  }
}

TEST(Replica, RunningStatisticsAreThoseOfRankZero) {
  ModelSpec model = plain_model();
  model.layers[2].type = "BatchNorm1d";
  const auto two = train(2, model, recipe_of({}), 5);
  EXPECT_EQ(two[0].evaluation.loss, two[1].evaluation.loss);
  EXPECT_EQ(two[0].evaluation.decisive.value, two[1].evaluation.decisive.value);
}

TEST(Replica, OverflowAndNanAreDecidedTogether) {
  // The broken sample is in the share of one of them.
  const Recipe nan = recipe_of({{"data.nan_sample", "5"}, {"data.shuffle", "false"}});
  const auto stopped = train(2, plain_model(), nan, 1);
  for (const Trained& t : stopped) {
    EXPECT_FALSE(t.steps[0].finite);
    EXPECT_FALSE(t.steps[0].applied);
  }
  expect_same_tensors(stopped[0].end, stopped[1].end);
  const Recipe half = recipe_of({{"amp", "fp16"}, {"amp_scale", "1e30"}});
  const auto overflowed = train(2, plain_model(), half, 3);
  EXPECT_FALSE(overflowed[0].steps[0].overflow.empty());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(overflowed[0].steps[i].applied, overflowed[1].steps[i].applied);
    EXPECT_EQ(overflowed[0].steps[i].loss_scale, overflowed[1].steps[i].loss_scale);
  }
}

TEST(Replica, ABatchThatCannotBeSharedIsAnError) {
  Recipe recipe = recipe_of({{"data.batch_size", "1"}});
  testing_replicas::Group group(2);
  testing_replicas::ThreadReplica alone(group, 0);
  std::string said;
  std::thread other([&] {
    testing_replicas::ThreadReplica second(group, 1);
    try {
      TrainingSession session(plain_model(), recipe, {{}, &second});
    } catch (const Error&) {
    }
  });
  try {
    TrainingSession session(plain_model(), recipe, {{}, &alone});
  } catch (const Error& e) {
    said = e.what();
  }
  other.join();
  EXPECT_NE(said.find("2 replicas cannot share"), std::string::npos) << said;
}

}  // namespace
}  // namespace tenon
