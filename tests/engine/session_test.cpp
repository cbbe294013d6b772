#include "engine/train/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>

#include "core/backend.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/state.h"
#include "engine/data/dataset.h"
#include "engine/data/loader.h"
#include "engine/nn/module.h"
#include "engine/op/op.h"
#include "engine/ops/view.h"
#include "engine/templates/templates.h"
#include "engine/train/metric.h"
#include "engine/train/recipe.h"
#include "tests/engine/files.h"
#include "tests/engine/sessions.h"

namespace tenon::session_tests {
namespace {

using namespace testing_sessions;

using testing_files::error_of;

/// Everything that has state: batch normalisation, dropout, an optimizer with memory, a schedule with warm-up.
ModelSpec stateful_model() {
  ModelSpec m;
  m.name = "test";
  m.layers = {{"in", "Input", {{"shape", std::vector<int64_t>{2}}}},
              {"fc1", "Linear", {{"out_features", int64_t{48}}}},
              {"norm", "BatchNorm2d", {}},
              {"act", "ReLU", {}},
              {"drop", "Dropout", {{"p", 0.2}}},
              {"fc2", "Linear", {{"out_features", int64_t{2}}}},
              {"out", "Output", {}}};
  for (size_t i = 1; i < m.layers.size(); ++i) m.wires.push_back({m.layers[i - 1].name, 0, m.layers[i].name, 0});
  return m;
}
Recipe cosine_recipe(const Settings& set = {}) {
  return with(spirals({{"data.batch_size", "16"},  // 9 batches an epoch, the last one of 2
                       {"epochs", "4"},
                       {"schedule.type", "cosine"},
                       {"schedule.warmup_steps", "5"}}),
              set);
}

TEST(Session, SavedAndLoadedGoesOnBitForBit) {
  for (const char* optimizer : {"adamw", "sgd"}) {
    Recipe r = cosine_recipe({{"optimizer.type", optimizer}, {"optimizer.weight_decay", "0.01"}});
    TrainingSession through(stateful_model(), r);
    run(through, 20);
    Checkpoint want = through.save();
    EXPECT_EQ(want.step, 20);
    for (int64_t cut : {0, 7, 9, 18, 19}) {  // within an epoch and at its end
      TrainingSession first(stateful_model(), r);
      run(first, cut);
      Checkpoint saved = first.save();
      TrainingSession second(stateful_model(), r);
      run(second, 3);  // whatever it did before is forgotten
      second.load(saved);
      EXPECT_EQ(second.steps_done(), cut);
      expect_same(second.save(), saved);
      run(second, 20 - cut);
      expect_same(second.save(), want);
    }
  }
}

TEST(Session, ThreadsAndWorkersDoNotChangeABit) {
  Checkpoint want;
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    // Wide enough that products, sums and updates are cut into pieces for several threads.
    ModelSpec wide = stateful_model();
    wide.layers[1].attrs = {{"out_features", int64_t{1024}}};
    TrainingSession s(wide, cosine_recipe({{"data.workers", std::to_string(threads - 1)},
                                           {"data.samples", "600"},
                                           {"data.batch_size", "128"}}));
    run(s, 15);
    Checkpoint got = s.save();
    if (threads == 1)
      want = got;
    else
      expect_same(got, want);
  }
  set_num_threads(0);
}

/// Four IDX files of generated images in a temporary folder.
class Images {
 public:
  Images() : dir_(std::filesystem::temp_directory_path() / ("tenon-session-test-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(dir_);
    for (const char* prefix : {"train", "t10k"}) {
      const int n = 100;
      std::string images = header({n, 28, 28}), labels = header({n});
      for (int i = 0; i < n; ++i) {
        labels += static_cast<char>(i % 10);
        for (int p = 0; p < 784; ++p) images += static_cast<char>((p * (i % 10 + 1) + i) % 256);
      }
      std::ofstream(dir_ / (std::string(prefix) + "-images-idx3-ubyte"), std::ios::binary) << images;
      std::ofstream(dir_ / (std::string(prefix) + "-labels-idx1-ubyte"), std::ios::binary) << labels;
    }
  }
  ~Images() { std::filesystem::remove_all(dir_); }
  std::string dir() const { return dir_.string(); }

 private:
  static std::string header(std::initializer_list<int> sizes) {
    std::string s = {0, 0, 8, static_cast<char>(sizes.size())};
    for (int n : sizes)
      for (int shift : {24, 16, 8, 0}) s += static_cast<char>(n >> shift);
    return s;
  }
  std::filesystem::path dir_;
};

TEST(Session, AConvolutionalNetworkHasTheSameBitsAtAnyThreadCountAndAfterALoad) {
  Images images;
  const Template& t = find_template("fashion-cnn");
  Recipe r = t.recipe;
  r.set("data.dir", images.dir());
  r.set("data.batch_size", "23");  // no multiple of any piece
  Checkpoint want;
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    TrainingSession s(t.model, r);
    run(s, threads);
    TrainingSession other(t.model, r);
    other.load(s.save());
    run(other, 6 - threads);
    Checkpoint got = other.save();
    if (threads == 1)
      want = got;
    else
      expect_same(got, want);
  }
  set_num_threads(0);
}

TEST(Session, SeedsDecideEverything) {
  auto losses = [](const char* seed) {
    TrainingSession s(stateful_model(), cosine_recipe({{"seed", seed}}));
    std::vector<double> out;
    for (int i = 0; i < 5; ++i) out.push_back(s.step().loss);
    return out;
  };
  EXPECT_EQ(losses("1"), losses("1"));
  EXPECT_NE(losses("1"), losses("2"));
}

TEST(Session, CountsStepsAndEpochs) {
  TrainingSession s(stateful_model(), cosine_recipe());
  EXPECT_EQ(s.steps_per_epoch(), 9);
  EXPECT_EQ(s.total_steps(), 36);
  EXPECT_EQ(s.epochs(), 4);
  std::vector<bool> seen(130);
  for (int i = 1; i <= 9; ++i) {
    double lr = s.learning_rate();
    StepResult r = s.step();
    EXPECT_EQ(r.step, i);
    EXPECT_EQ(r.epoch, 0);
    EXPECT_EQ(r.index, i - 1);
    EXPECT_EQ(r.epoch_end, i == 9);
    EXPECT_EQ(r.samples, i == 9 ? 2 : 16);
    EXPECT_EQ(r.lr, lr);
    EXPECT_TRUE(r.finite && r.applied);
    EXPECT_GT(r.grad_norm, 0);
    for (int64_t row : r.rows) seen[static_cast<size_t>(row)] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 130);
  EXPECT_EQ(s.epoch(), 1);
  EXPECT_FALSE(s.finished());
  run(s, 27);
  EXPECT_TRUE(s.finished());
  TrainingSession shorter(stateful_model(), cosine_recipe({{"max_steps", "5"}}));
  EXPECT_EQ(shorter.total_steps(), 5);
}

/// What a meter says of the same output and targets.
class Judge : public TrainingObserver {
 public:
  void on_batch(const data::Batch& batch) override { answers_ = batch.y; }
  void on_forward(const Tensor& output, const Tensor&) override {
    NoGrad no_grad;
    const std::unique_ptr<Meter> meter = metrics().find("accuracy")->make({"classification", 2});
    meter->add(to_host(cast(contiguous(output), DType::f32)), to_host(answers_));
    accuracy = meter->value();
  }
  double accuracy = -1;

 private:
  Tensor answers_;
};

TEST(Session, AStepSaysHowManyOfItsTargetsWereRight) {
  for (const char* amp : {"none", "bf16", "fp16"}) {
    TrainingSession s(stateful_model(), cosine_recipe({{"amp", amp}}));
    Judge judge;
    s.add_observer(&judge);
    for (int i = 0; i < 12; ++i) {
      const StepResult r = s.step();
      EXPECT_EQ(r.accuracy, judge.accuracy) << amp << " step " << r.step;
      EXPECT_TRUE(r.accuracy >= 0 && r.accuracy <= 1);
    }
  }
}

TEST(Session, LearnsTheSpirals) {
  const Template& t = find_template("spirals");
  TrainingSession s(t.model, t.recipe);
  Evaluation before = s.evaluate();
  EXPECT_EQ(before.samples, 1000);
  EXPECT_LT(before.accuracy, 0.8);
  while (!s.finished()) s.step();
  Evaluation after = s.evaluate();
  EXPECT_GT(after.accuracy, 0.98);
  EXPECT_LT(after.loss, before.loss);
  EXPECT_DOUBLE_EQ(after.accuracy, static_cast<double>(after.correct) / 1000);
}

TEST(Session, EvaluationChangesNothing) {
  TrainingSession a(stateful_model(), cosine_recipe()), b(stateful_model(), cosine_recipe());
  run(a, 5);
  run(b, 5);
  Evaluation first = a.evaluate();
  expect_same(a.save(), b.save());
  EXPECT_EQ(a.evaluate().loss, first.loss);
  run(a, 5);
  run(b, 5);
  expect_same(a.save(), b.save());
  int calls = 0;
  EXPECT_SAYS(error_of([&] {
                a.evaluate([&](int64_t, int64_t total) {
                  EXPECT_EQ(total, 4);
                  return ++calls < 2;
                });
              }),
              "cancelled");
  EXPECT_EQ(calls, 2);
  run(a, 1);
  run(b, 1);
  expect_same(a.save(), b.save());
}

TEST(Session, ANanStopsBeforeAParameterIsWritten) {
  Recipe r = cosine_recipe({{"data.nan_sample", "77"}, {"data.nan_value_index", "1"}});
  TrainingSession s(stateful_model(), r);
  Checkpoint before;
  StepResult result;
  do {
    before = s.save();
    result = s.step();
  } while (result.finite && !s.finished());
  ASSERT_FALSE(result.finite);
  EXPECT_FALSE(result.applied);
  EXPECT_TRUE(std::isnan(result.loss));
  EXPECT_NE(std::find(result.rows.begin(), result.rows.end(), 77), result.rows.end());
  Checkpoint after = s.save();
  EXPECT_EQ(after.step, before.step + 1);
  for (size_t i = 0; i < after.tensors.size(); ++i) {
    const auto& [name, t] = after.tensors[i];
    if (name.find("running_") != std::string::npos) continue;
    EXPECT_EQ(0, std::memcmp(t.raw(), before.tensors[i].second.raw(), t.nbytes())) << name;
  }
  r.set("on_nan", "continue");
  TrainingSession on(stateful_model(), r);
  do result = on.step();
  while (result.finite && !on.finished());
  EXPECT_FALSE(result.finite);
  EXPECT_TRUE(result.applied);
  EXPECT_FALSE(on.step().finite);  // the weights are NaN now
}

TEST(Session, AHugeLearningRateIsNoticed) {
  Recipe r = find_template("spirals").recipe;
  r.set("optimizer.lr", "1e6");
  TrainingSession s(find_template("spirals").model, r);
  StepResult result;
  for (int i = 0; i < 20 && (i == 0 || result.finite); ++i) result = s.step();
  EXPECT_FALSE(result.finite);
  EXPECT_FALSE(result.applied);
}

struct Recorder : TrainingObserver, OpObserver {
  std::string order;
  std::vector<std::string> ops;
  std::vector<uint32_t> seqs;
  void on_step_begin(int64_t step) override { order += "begin" + std::to_string(step) + " "; }
  void on_batch(const data::Batch& b) override { order += "batch" + std::to_string(b.rows.size()) + " "; }
  void on_forward(const Tensor& y, const Tensor& loss) override {
    order += "forward" + to_string(y.size()) + std::to_string(loss.numel()) + " ";
  }
  void on_backward() override { order += "backward "; }
  void on_step_end(const StepResult& r) override { order += "end" + std::to_string(r.step) + " "; }
  void after(const Call& c, int64_t, int64_t) override {
    ops.push_back(std::string(c.op->info.name) + " " + name(t_state.origin.phase) + " " +
                  module_path(t_state.origin.module));
    seqs.push_back(t_state.origin.seq);
  }
};

TEST(Session, ObserversSeeAStepInOrderAndReplaysRepeatItsNumbers) {
  Recorder a, b;
  TrainingSession s(stateful_model(), cosine_recipe());
  run(s, 2);
  Checkpoint c = s.save();
  s.add_observer(&a);
  {
    ObserveScope scope(a);
    s.step();
  }
  s.remove_observer(&a);
  run(s, 1);
  EXPECT_EQ(a.order, "begin3 batch16 forward[16, 2]1 backward end3 ");
  s.load(c);
  {
    ObserveScope scope(b);
    s.step();
  }
  EXPECT_EQ(a.ops, b.ops);
  EXPECT_EQ(a.seqs, b.seqs);
  EXPECT_EQ(a.seqs.front(), 1u);
  EXPECT_EQ(a.ops.front(), "linear forward fc1");
  EXPECT_NE(std::find(a.ops.begin(), a.ops.end(), "adam_step optimizer fc2"), a.ops.end());
  EXPECT_NE(std::find(a.ops.begin(), a.ops.end(), "dropout backward drop"), a.ops.end());
}

TEST(Session, AForeignCheckpointIsRefusedAndChangesNothing) {
  TrainingSession s(stateful_model(), cosine_recipe());
  run(s, 4);
  Checkpoint own = s.save();
  auto refused = [&](const std::function<void(Checkpoint&)>& spoil) {
    Checkpoint c = s.save();
    spoil(c);
    std::string e = error_of([&] { s.load(c); });
    expect_same(s.save(), own);
    return e;
  };
  EXPECT_SAYS(refused([](Checkpoint& c) { c.tensors.pop_back(); }), "has no tensor");
  EXPECT_SAYS(refused([](Checkpoint& c) { c.tensors.emplace_back("model/extra", empty({1})); }), "\"model/extra\"");
  EXPECT_SAYS(refused([](Checkpoint& c) { c.tensors[0].second = empty({3}); }), "[3]");
  EXPECT_SAYS(refused([](Checkpoint& c) { c.state.erase("base_lr"); }), "base_lr");
  EXPECT_SAYS(refused([](Checkpoint& c) { c.state["seed"] = 9; }), "seed 9");
  EXPECT_SAYS(refused([](Checkpoint& c) { c.state["cursor"] = 8; }), "batch 8");
  EXPECT_SAYS(refused([](Checkpoint& c) { c.state["version"] = 2; }), "version 2");
  // A checkpoint is a copy: going on does not change it.
  Checkpoint kept = s.save();
  run(s, 1);
  expect_same(kept, own);
}

TEST(Session, WhatDoesNotFitIsSaidBeforeAnythingRuns) {
  auto made = [](const ModelSpec& m, std::vector<std::pair<std::string, std::string>> set) {
    return error_of([&] { TrainingSession s(m, cosine_recipe(std::move(set))); });
  };
  EXPECT_SAYS(made(stateful_model(), {{"data.batch_size", "131"}}), "larger than the data set, which has 130 samples");
  EXPECT_SAYS(made(stateful_model(), {{"data.dataset", "fashion-mnist"}, {"data.dir", "/nowhere/at/all"}}),
              "/nowhere/at/all");
  EXPECT_SAYS(
      made(stateful_model(), {{"optimizer.type", "sgd"}, {"optimizer.momentum", "0"}, {"optimizer.nesterov", "true"}}),
      "nesterov");
  ModelSpec m = stateful_model();
  m.find("fc2")->attrs = {{"out_features", int64_t{3}}};
  EXPECT_SAYS(made(m, {}), "has 2 classes");
  m = stateful_model();
  m.find("in")->attrs = {{"shape", std::vector<int64_t>{5}}};
  EXPECT_SAYS(made(m, {}), "[5]");
  m = stateful_model();
  m.find("fc1")->attrs = {{"in_features", int64_t{7}}};
  EXPECT_SAYS(made(m, {}), "layer fc1");
  m.wires.pop_back();
  EXPECT_SAYS(made(m, {}), "layer");
  m = stateful_model();
  m.find("fc1")->attrs = {{"out_features", int64_t{1000000000}}};
  EXPECT_SAYS(made(m, {{"data.batch_size", "130"}}), "of memory");
  EXPECT_EQ(made(stateful_model(), {{"loss.type", "mse"}}), "no error");
}

TEST(Session, MeanSquaredErrorTrainsTowardsTheClasses) {
  TrainingSession s(
      stateful_model(),
      cosine_recipe(
          {{"loss.type", "mse"}, {"optimizer.lr", "0.02"}, {"epochs", "60"}, {"schedule.warmup_steps", "0"}}));
  double first = s.evaluate().loss;
  while (!s.finished()) s.step();
  EXPECT_LT(s.evaluate().loss, 0.7 * first);
}

}  // namespace
}  // namespace tenon::session_tests
