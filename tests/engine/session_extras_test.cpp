// Sessions beyond plain classification: parts of a batch, averages, clipping, mixed precision, line searches, watching
// schedules, tasks.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/parallel.h"
#include "engine/data/dataset.h"
#include "engine/nn/module.h"
#include "engine/op/op.h"
#include "engine/ops/create.h"
#include "engine/optim/grad_scaler.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/weight_average.h"
#include "engine/spec/chain.h"
#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/engine/files.h"
#include "tests/engine/sessions.h"

namespace tenon::session_extras {
namespace {

using namespace testing_sessions;

using testing_files::error_of;
using I = int64_t;

ModelSpec wide_model(bool norm = false) {
  Chain c("test", {2});
  c.add("fc1", "Linear", {{"out_features", I{32}}});
  if (norm) c.add("norm", "BatchNorm2d");
  return c.add("act", "Tanh").add("fc2", "Linear", {{"out_features", I{2}}}).done();
}
Recipe short_recipe(const Settings& set = {}) {
  return with(spirals({{"data.batch_size", "24"}, {"epochs", "6"}, {"optimizer.lr", "0.01"}}), set);
}
double largest_difference(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.tensors.size(), b.tensors.size());
  double worst = 0;
  for (size_t i = 0; i < a.tensors.size(); ++i)
    for (I k = 0; k < a.tensors[i].second.numel(); ++k)
      worst = std::max(worst, std::abs(storage_value(a.tensors[i].second, k) - storage_value(b.tensors[i].second, k)));
  return worst;
}

TEST(MicroBatches, AddUpToTheLargeBatch) {
  TrainingSession whole(wide_model(), short_recipe({{"optimizer.type", "sgd"}, {"optimizer.momentum", "0.9"}}));
  run(whole, 15);
  for (const char* parts :
       {"2", "3", "5", "24", "100"}) {  // even and uneven ones; the last batch of an epoch has 10 samples
    TrainingSession s(
        wide_model(),
        short_recipe({{"optimizer.type", "sgd"}, {"optimizer.momentum", "0.9"}, {"data.micro_batches", parts}}));
    run(s, 15);
    EXPECT_LT(largest_difference(whole.save(), s.save()), 2e-6) << parts;
    // The same where the loss is a sum.
    TrainingSession sum(
        wide_model(), short_recipe({{"optimizer.type", "sgd"}, {"optimizer.lr", "0.001"}, {"loss.reduction", "sum"}}));
    TrainingSession in_parts(wide_model(), short_recipe({{"optimizer.type", "sgd"},
                                                         {"optimizer.lr", "0.001"},
                                                         {"loss.reduction", "sum"},
                                                         {"data.micro_batches", parts}}));
    run(sum, 8), run(in_parts, 8);
    EXPECT_LT(largest_difference(sum.save(), in_parts.save()), 2e-6) << parts;
  }
}

TEST(SessionState, EverythingThatIsRememberedIsInTheCheckpoint) {
  std::vector<Settings> all;
  for (const auto& o : optim::optimizers()) all.push_back({{"optimizer.type", o.name}, {"optimizer.lr", "0.01"}});
  all.push_back({{"average.type", "ema"}, {"average.decay", "0.9"}});
  all.push_back({{"average.type", "swa"}, {"average.start_epochs", "1"}});
  all.push_back({{"amp", "fp16"}});
  all.push_back({{"amp", "bf16"}});
  all.push_back({{"schedule.type", "plateau"}, {"schedule.patience", "0"}, {"schedule.threshold", "10"}});
  all.push_back({{"data.micro_batches", "3"},
                 {"optimizer.clip_norm", "0.1"},
                 {"optimizer.clip_value", "0.01"},
                 {"optimizer.decay_all", "false"}});
  for (const Settings& set : all) {
    SCOPED_TRACE(set[0].first + " " + set[0].second);
    Recipe r = short_recipe(set);
    TrainingSession through(wide_model(true), r);
    run(through, 14);
    Checkpoint want = through.save();
    for (I cut : {5, 12}) {
      TrainingSession first(wide_model(true), r), second(wide_model(true), r);
      run(first, cut);
      second.load(first.save());
      run(second, 14 - cut);
      Checkpoint got = second.save();
      EXPECT_EQ(got.state, want.state);
      EXPECT_EQ(largest_difference(got, want), 0);
      EXPECT_EQ(second.learning_rate(), through.learning_rate());
    }
  }
}

TEST(SessionState, ThreadsDoNotChangeABitOfAnyOptimizer) {
  for (const auto& o : optim::optimizers()) {
    SCOPED_TRACE(o.name);
    Checkpoint want;
    for (int threads : {1, 3}) {
      set_num_threads(threads);
      ModelSpec wide = wide_model();
      wide.find("fc1")->attrs = {{"out_features", I{2000}}};
      ModelSpec deep = wide;
      TrainingSession s(deep,
                        short_recipe({{"optimizer.type", o.name}, {"optimizer.lr", "0.01"}, {"average.type", "ema"}}));
      run(s, 3);
      if (threads == 1)
        want = s.save();
      else
        EXPECT_EQ(largest_difference(want, s.save()), 0);
    }
    set_num_threads(0);
  }
}

TEST(EveryOptimizer, LowersTheLoss) {
  for (const auto& o : optim::optimizers()) {
    Settings set = {{"optimizer.type", o.name}, {"epochs", "30"}};
    // Newton's steps want the same function at every step.
    if (o.name == "lbfgs")
      set.insert(set.end(), {{"optimizer.line_search", "strong_wolfe"}, {"data.batch_size", "130"}});
    if (o.name == "lion") set.push_back({"optimizer.lr", "0.003"});
    if (o.name == "adadelta" || o.name == "lbfgs") set.push_back({"optimizer.lr", "1"});
    TrainingSession s(wide_model(), short_recipe(set));
    double first = s.step().loss, last = first;
    while (!s.finished()) last = s.step().loss;
    EXPECT_LT(last, first - 0.02) << o.name;
  }
}

TEST(Averages, AreWhatTheirFormulasSay) {
  Tensor w = full({3}, 1), count = full({1}, 5, DType::i64);
  optim::WeightAverage ema({{"w", w}, {"n", count}}, 0.75), swa({{"w", w}}, -1);
  double mean = 0, moving = 0;
  for (int i = 1; i <= 5; ++i) {
    fill(w, i * i);
    fill(count, i);
    ema.update();
    swa.update();
    mean += (i * i - mean) / i;
    moving = i == 1 ? i * i : 0.75 * moving + 0.25 * i * i;
  }
  EXPECT_NEAR(ema.averages()[0].tensor.data<float>()[2], moving, 1e-5);
  EXPECT_NEAR(swa.averages()[0].tensor.data<float>()[0], mean, 1e-5);
  EXPECT_EQ(ema.averages()[1].tensor.data<I>()[0], 5);
  ema.swap();
  EXPECT_NEAR(w.data<float>()[0], moving, 1e-5);
  EXPECT_EQ(ema.averages()[0].tensor.data<float>()[0], 25);
  ema.swap();
  EXPECT_EQ(w.data<float>()[0], 25);
}

TEST(Averages, AreEvaluatedWhereWanted) {
  Settings set = {{"average.type", "ema"}, {"average.decay", "0.95"}, {"optimizer.lr", "0.05"}};
  TrainingSession a(wide_model(true), short_recipe(set));
  set.push_back({"average.evaluate", "false"});
  TrainingSession b(wide_model(true), short_recipe(set)),
      plain(wide_model(true), short_recipe({{"optimizer.lr", "0.05"}}));
  run(a, 20), run(b, 20), run(plain, 20);
  EXPECT_EQ(b.evaluate().loss, plain.evaluate().loss) << "the average does not touch what is trained";
  EXPECT_NE(a.evaluate().loss, b.evaluate().loss);
  EXPECT_EQ(largest_difference(a.save(), b.save()), 0) << "an evaluation puts everything back";
}

TEST(GradScaler, GrowsBacksOffAndRemembers) {
  optim::GradScaler s({.start = 8, .growth = 2, .backoff = 0.5, .growth_interval = 3});
  s.update(true);
  EXPECT_EQ(s.scale(), 4);
  s.update(false), s.update(false);
  optim::GradScaler t({.start = 1, .growth_interval = 3});
  t.load(nlohmann::json::parse(s.state().dump()));
  for (auto* g : {&s, &t}) {
    g->update(false);
    EXPECT_EQ(g->scale(), 8);
    for (int i = 0; i < 4; ++i) g->update(true);
    EXPECT_TRUE(g->hopeless());
  }
  EXPECT_THROW(t.load({{"scale", -1}, {"good", 0}}), Error);
  EXPECT_THROW(t.load(nullptr), Error);
}

TEST(MixedPrecision, AnOverflowIsSkippedAndNamesTheParameter) {
  // Half precision ends at 65,504: gradients of a loss scaled by so much pass that until the scale is low enough.
  TrainingSession s(wide_model(), short_recipe({{"amp", "fp16"}, {"loss.type", "mse"}, {"amp_scale", "1e8"}}));
  I skipped = 0, applied = 0;
  for (int i = 0; i < 30; ++i) {
    Checkpoint before = s.save();
    StepResult r = s.step();
    EXPECT_TRUE(r.finite);
    if (r.overflow.empty()) {
      ++applied;
      EXPECT_TRUE(std::isfinite(r.grad_norm));
      continue;
    }
    ++skipped;
    EXPECT_FALSE(r.applied);
    EXPECT_TRUE(r.overflow.starts_with("fc1.") || r.overflow.starts_with("fc2.")) << r.overflow;
    Checkpoint after = s.save();
    for (size_t k = 0; k < after.tensors.size(); ++k)
      EXPECT_EQ(0, std::memcmp(after.tensors[k].second.raw(), before.tensors[k].second.raw(),
                               after.tensors[k].second.nbytes()));
    EXPECT_LT(after.state["scaler"]["scale"], before.state["scaler"]["scale"]);
  }
  EXPECT_GT(skipped, 0);
  EXPECT_GT(applied, 10);
  // What is trained stays f32, and comes near to what f32 alone gives.
  TrainingSession plain(wide_model(), short_recipe());
  TrainingSession low(wide_model(), short_recipe({{"amp", "bf16"}}));
  run(plain, 30), run(low, 30);
  EXPECT_NE(plain.evaluate().loss, low.evaluate().loss);
  EXPECT_NEAR(plain.evaluate().loss, low.evaluate().loss, 0.05);
}

TEST(MixedPrecision, ANanThatIsNoOverflowStopsTheRun) {
  TrainingSession s(wide_model(), short_recipe({{"amp", "fp16"}, {"data.nan_sample", "3"}}));
  StepResult r;
  for (int i = 0; i < 30 && (i == 0 || r.finite); ++i) r = s.step();
  EXPECT_FALSE(r.finite);
  EXPECT_FALSE(r.applied);
  EXPECT_EQ(r.overflow, "");
}

TEST(Clipping, BoundsTheUpdateAndReportsTheNormBefore) {
  TrainingSession s(wide_model(), short_recipe({{"optimizer.type", "sgd"},
                                                {"optimizer.momentum", "0"},
                                                {"optimizer.lr", "1"},
                                                {"optimizer.clip_norm", "0.001"}}));
  Checkpoint before = s.save();
  StepResult r = s.step();
  EXPECT_GT(r.grad_norm, 0.01);
  Checkpoint after = s.save();
  double moved = 0;
  for (size_t i = 0; i < after.tensors.size(); ++i)
    for (I k = 0; k < after.tensors[i].second.numel(); ++k)
      moved += std::pow(storage_value(after.tensors[i].second, k) - storage_value(before.tensors[i].second, k), 2);
  EXPECT_NEAR(std::sqrt(moved), 0.001, 1e-5);
}

TEST(Plateau, LowersTheRateByWhatItIsToldAndItsStateIsRefusedElsewhere) {
  Recipe r = short_recipe({{"schedule.type", "plateau"},
                           {"schedule.patience", "0"},
                           {"schedule.factor", "0.5"},
                           {"schedule.threshold", "10"}});
  TrainingSession s(wide_model(), r);
  Evaluation e;
  e.loss = 1;
  s.report(e);
  s.report(e);
  s.report(e);
  EXPECT_DOUBLE_EQ(s.learning_rate(), 0.01 / 4);
  Checkpoint c = s.save();
  TrainingSession other(wide_model(), short_recipe());
  EXPECT_SAYS(error_of([&] { other.load(c); }), "schedule");
  EXPECT_EQ(other.learning_rate(), 0.01);
}

TEST(Tasks, EndsThatDoNotFitAreRefused) {
  auto made = [](const ModelSpec& m, const Settings& set) {
    return error_of([&] { TrainingSession s(m, short_recipe(set)); });
  };
  EXPECT_SAYS(made(wide_model(), {{"data.dataset", "series"}}), "takes samples of shape [2]");
  ModelSpec series = Chain("s", {64, 1}).add("f", "Flatten").add("o", "Linear", {{"out_features", I{2}}}).done();
  EXPECT_SAYS(made(wide_model(), {{"loss.reduction", "none"}}), "loss.reduction = none");
  EXPECT_SAYS(made(series, {{"data.dataset", "series"}}), "the targets of data set series are values");
  EXPECT_SAYS(made(series, {{"data.dataset", "series"}, {"loss.type", "mse"}}),
              "the targets of data set series have shape [1]");
  ModelSpec masks = Chain("m", {1, 32, 32})
                        .add("c", "Conv2d", {{"out_channels", I{3}}, {"kernel_size", std::vector<I>{1, 1}}})
                        .done();
  EXPECT_SAYS(made(masks, {{"data.dataset", "shape-masks"}}), "has 4 classes, which need [4, 32, 32]");
  ModelSpec clicks = Chain("c", {12}).add("o", "Linear", {{"out_features", I{1}}}).done();
  EXPECT_SAYS(made(clicks, {{"data.dataset", "clicks"}, {"loss.type", "mse"}}), "dtype");
}

TEST(Tasks, AreJudgedByTheirMetrics) {
  auto judged = [](const ModelSpec& m, const Settings& set) {
    TrainingSession s(m, short_recipe(set));
    std::string names;
    Evaluation e = s.evaluate();
    for (const Judgement& j : e.judgements) names += j.name + " ";
    // A step knows what is right where an evaluation does.
    const bool right = s.step().accuracy >= 0;
    EXPECT_EQ(right, names.find("accuracy") != std::string::npos) << names;
    return names + "by " + e.decisive.name;
  };
  EXPECT_EQ(judged(wide_model(), {}), "accuracy by accuracy");
  ModelSpec masks = Chain("m", {1, 32, 32})
                        .add("c", "Conv2d", {{"out_channels", I{4}}, {"kernel_size", std::vector<I>{1, 1}}})
                        .done();
  EXPECT_EQ(judged(masks, {{"data.dataset", "shape-masks"}}), "accuracy mean_iou by mean_iou");
  ModelSpec series = Chain("s", {64, 1}).add("f", "Flatten").add("o", "Linear", {{"out_features", I{1}}}).done();
  EXPECT_EQ(judged(series, {{"data.dataset", "series"}, {"loss.type", "mse"}}), "mean_absolute_error by loss");
  ModelSpec itself = Chain("a", {2}).add("o", "Linear", {{"out_features", I{2}}}).done();
  EXPECT_EQ(judged(itself, {{"data.target", "input"}, {"loss.type", "mse"}}), "mean_absolute_error by loss");
}

}  // namespace
}  // namespace tenon::session_extras
