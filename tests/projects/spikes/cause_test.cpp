// Planted spikes: what made them is found, what it took is counted, and it is found the same twice.
#include "projects/spikes/cause.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/random.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/npy.h"
#include "engine/formats/safetensors.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/spec/chain.h"
#include "projects/run_driver.h"
#include "tests/messages.h"
#include "tests/projects/project_files.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

using testing_files::KeyValues;
using testing_words::has;

constexpr int64_t kClasses = 4, kFeatures = 6, kSamples = 192, kBatch = 8;

ModelSpec planted_model() {
  return Chain("net", {kFeatures})
      .add("first", "Linear", {{"out_features", int64_t{16}}})
      .add("act1", "ReLU")
      .add("second", "Linear", {{"out_features", int64_t{16}}})
      .add("act2", "ReLU")
      .add("third", "Linear", {{"out_features", kClasses}})
      .done();
}

/// A run of points around a centre a class, with one thing that is wrong.
struct Planted {
  testing_files::TempDir dir;
  std::shared_ptr<Project> project;
  Tensor x = empty({kSamples, kFeatures}), y = empty({kSamples}, DType::i64);

  explicit Planted(uint64_t seed, bool sorted = false) {
    const Philox random{seed, 17};
    for (int64_t i = 0; i < kSamples; ++i) {
      const int64_t label = sorted ? i * kClasses / kSamples : i % kClasses;
      y.data<int64_t>()[i] = label;
      for (int64_t k = 0; k < kFeatures; ++k)
        x.data<float>()[i * kFeatures + k] = static_cast<float>(
            (k == label ? 2.0 : 0.0) + 0.4 * random.normal(static_cast<uint64_t>(i * kFeatures + k)));
    }
  }
  void poison(int64_t row, float factor) {
    y.data<int64_t>()[row] = (y.data<int64_t>()[row] + 1) % kClasses;
    for (int64_t k = 0; k < kFeatures; ++k) x.data<float>()[row * kFeatures + k] *= factor;
  }
  void create(uint64_t seed, const KeyValues& set = {}) {
    for (const char* part : {"train", "test"}) {
      formats::save_npy(dir / (std::string("x_") + part + ".npy"), x);
      formats::save_npy(dir / (std::string("y_") + part + ".npy"), y);
    }
    Recipe recipe;
    for (const auto& [key, value] : KeyValues{{"data.dataset", "npy"},
                                              {"data.dir", dir.path()},
                                              {"data.batch_size", std::to_string(kBatch)},
                                              {"data.workers", "0"},
                                              {"epochs", "4"},
                                              {"eval_every", "0"},
                                              {"checkpoint_every", "10"},
                                              {"optimizer.type", "sgd"},
                                              {"optimizer.lr", "0.1"},
                                              {"seed", std::to_string(seed)}})
      recipe.set(key, value);
    for (const auto& [key, value] : set) recipe.set(key, value);
    project = Project::create(dir / "p.tenon", planted_model(), recipe.to_json());
  }
  void train(const TrainOptions& options) const {
    const auto d = RunDriver::start(project, options);
    d->wait();
  }
  void train(int64_t steps = -1) {
    TrainOptions o;
    o.run_name = "r";
    o.max_steps = steps;
    train(o);
  }
};

struct Found {
  std::string cause, what, sentence;
  std::vector<int64_t> rows;
  std::string layer;
  int64_t replays = 0, steps = 0;
  ReplayCost most;
  bool operator==(const Found&) const = default;
};
Found answer(const Planted& p) {
  Inquiry q(p.project, "r");
  const CausePlan plan = plan_causes(q);
  const SpikeReport r = find_cause(q, plan);
  Found a{r.cause, {}, r.sentence(), {}, {}, r.replays, r.steps, plan.most};
  if (r.culprit) a.what = r.culprit->what, a.rows = r.culprit->rows, a.layer = r.culprit->layer;
  return a;
}

/// The same twice, and at no greater cost than was told.
Found answered_twice(const Planted& p) {
  Found a = answer(p);
  EXPECT_EQ(a, answer(p));
  EXPECT_LE(a.replays, a.most.replays);
  EXPECT_LE(a.steps, a.most.steps);
  EXPECT_GT(a.replays, 0);
  return a;
}

/// A spike with its cause, and whether an answer is that one.
struct PlantedSpike {
  std::string wanted;
  std::unique_ptr<Planted> of;
  std::function<bool(const Found&)> right;
};

PlantedSpike poisoned_sample(uint64_t seed) {
  auto p = std::make_unique<Planted>(seed);
  const auto row = static_cast<int64_t>(seed * 13 + 5);
  p->poison(row, seed % 2 ? 60.f : 200.f);
  p->create(seed, {{"optimizer.lr", "0.2"}});
  p->train();
  return {fmt::format("sample {}", row), std::move(p), [row](const Found& a) {
            return a.cause == "sample" && a.rows == std::vector<int64_t>{row} &&
                   has(a.sentence, fmt::format("x_train.npy, row {}", row));
          }};
}

PlantedSpike bad_order(uint64_t seed) {
  auto p = std::make_unique<Planted>(seed, true);
  p->create(seed, {{"data.shuffle", "false"}, {"data.batch_size", "4"}, {"optimizer.lr", seed % 2 ? "0.3" : "0.2"}});
  p->train();
  return {"order", std::move(p), [](const Found& a) { return a.cause == "order"; }};
}

PlantedSpike rate_jump(uint64_t seed) {
  auto p = std::make_unique<Planted>(seed);
  p->create(seed);
  const auto steps = static_cast<int64_t>(30 + seed * 3);
  p->train(steps);
  TrainOptions more;
  more.resume = "r";
  more.set = {{"max_steps", "90"}, {"optimizer.lr", seed % 2 ? "20" : "8"}};
  p->train(more);
  const std::string at = fmt::format("with step {}", steps + 1);
  return {"rate " + at, std::move(p), [at](const Found& a) { return a.cause == "rate" && has(a.what, at); }};
}

PlantedSpike bad_start(uint64_t seed) {
  const std::string layer = std::vector<std::string>{"first", "second", "third"}[seed % 3];
  auto p = std::make_unique<Planted>(seed);
  p->create(seed, {{"optimizer.type", "adam"}, {"optimizer.lr", "0.03"}, {"data.batch_size", "32"}, {"epochs", "6"}});
  TrainingSession fresh(planted_model(), Recipe::from_json(p->project->recipe()));
  formats::NamedTensors weights;
  for (const nn::Named& n : fresh.model().state_dict())
    weights.emplace_back(n.name, n.name == layer + ".weight" ? mul(detach(n.tensor), 120) : detach(n.tensor));
  formats::save_safetensors(p->dir / "start.safetensors", weights);
  Recipe recipe = Recipe::from_json(p->project->recipe());
  recipe.set("init.from", p->dir / "start.safetensors");
  p->project->set_recipe(recipe.to_json());
  p->train();
  return {"start of " + layer, std::move(p),
          [layer](const Found& a) { return a.cause == "start" && a.layer == layer; }};
}

TEST(FindCause, names_what_made_fifty_planted_spikes) {
  struct Kind {
    PlantedSpike (*plant)(uint64_t seed);
    uint64_t spikes;
  };
  int planted = 0, found = 0;
  int64_t replays = 0, steps = 0;
  for (const Kind& kind : {Kind{poisoned_sample, 14}, Kind{bad_order, 12}, Kind{rate_jump, 12}, Kind{bad_start, 12}})
    for (uint64_t seed = 0; seed < kind.spikes; ++seed) {
      const PlantedSpike spike = kind.plant(seed);
      ++planted;
      try {
        const Found a = answered_twice(*spike.of);
        found += spike.right(a);
        replays += a.replays;
        steps += a.steps;
        if (!spike.right(a)) GTEST_LOG_(INFO) << spike.wanted << " (" << seed << "): " << a.cause << ": " << a.sentence;
      } catch (const Error& e) {
        GTEST_LOG_(INFO) << spike.wanted << " (" << seed << "): " << e.what();
      }
    }
  EXPECT_EQ(planted, 50);
  EXPECT_GE(found * 100, planted * 95) << found << " of " << planted;
  RecordProperty("found", found);
  RecordProperty("replays", static_cast<int>(replays));
  GTEST_LOG_(INFO) << found << " of " << planted << " found, with " << replays << " replays of " << steps << " steps";
}

}  // namespace
}  // namespace tenon::projects
