// How often a training step makes the program wait for the GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "core/backend.h"
#include "engine/op/cuda_device.h"
#include "engine/ops/create.h"
#include "engine/ops/readings.h"
#include "engine/ops/view.h"
#include "engine/spec/chain.h"
#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/cuda/emulated.h"

namespace tenon {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

ModelSpec small_model() {
  return Chain("small", {2})
      .add("first", "Linear", {{"out_features", int64_t{24}}})
      .add("act", "GELU")
      .add("drop", "Dropout", {{"p", 0.2}})
      .add("norm", "LayerNorm")
      .add("last", "Linear", {{"out_features", int64_t{2}}})
      .done();
}

int64_t waits_of(const std::function<void()>& work) {
  const int64_t before = cuda_waits(emulated::device());
  work();
  return cuda_waits(emulated::device()) - before;
}

TEST(CudaWaits, ReadingsAreReadTogether) {
  const Device gpu = emulated::device();
  Readings readings(gpu);
  const Tensor whole = to_device(arange(200), gpu);
  std::vector<size_t> numbers;
  for (int64_t i = 0; i < 200; ++i) numbers.push_back(readings.add(narrow(whole, 0, i, 1)));
  numbers.push_back(readings.add(0.1));
  numbers.push_back(readings.add([](Tensor& out) { fill(out, 0.7); }));
  fill(whole, -1);
  EXPECT_EQ(waits_of([&] {
              for (size_t i = 0; i < 200; ++i) EXPECT_EQ(readings.at(numbers[i]), i);
              EXPECT_EQ(readings.at(numbers[200]), 0.1);
              EXPECT_EQ(readings.at(numbers[201]), 0.7);
            }),
            1);
  const size_t later = readings.add(narrow(whole, 0, 3, 1));
  EXPECT_EQ(waits_of([&] { EXPECT_EQ(readings.at(later), -1); }), 1);
  EXPECT_EQ(readings.at(numbers[7]), 7);
}

TEST(CudaWaits, WhatTheHostKnowsIsNotReadUntilItIsWritten) {
  const Tensor here = reshape(cast(arange(24), DType::i64), {4, 6});
  Tensor there = to_device(here, emulated::device());
  const KnownOnHost known(there, here);
  EXPECT_EQ(waits_of([&] {
              const Tensor part = to_host(reshape(narrow(there, 0, 1, 2), {-1}));
              ASSERT_EQ(part.numel(), 12);
              EXPECT_EQ(part.data<int64_t>()[0], 6);
              EXPECT_EQ(part.data<int64_t>()[11], 17);
              EXPECT_EQ(value_at(to_host(transpose(there, 0, 1)), {5, 3}), 23);
            }),
            0);
  fill(narrow(there, 0, 0, 1), 77);
  EXPECT_EQ(waits_of([&] { EXPECT_EQ(value_at(to_host(there), {0, 0}), 77); }), 1);
}

/// Once the model's plan, where it has one, is made and proven, which takes some steps that are compared on the host.
double waits_a_step(const Settings& settings, bool compile) {
  const Device gpu = emulated::device();
  Recipe recipe = find_template("spirals").recipe;
  for (const auto& [key, value] : settings) recipe.set(key, value);
  recipe.set("compile", compile ? "true" : "false");
  TrainingSession session(small_model(), recipe, {gpu, nullptr});
  for (int i = 0; i < (compile ? 6 : 1); ++i) session.step();
  backend_of(gpu).sync(current_stream(gpu));
  constexpr int kSteps = 4;
  const int64_t before = cuda_waits(gpu);
  for (int i = 0; i < kSteps; ++i) {
    const StepResult r = session.step();
    EXPECT_TRUE(std::isfinite(r.loss) && std::isfinite(r.grad_norm) && r.accuracy >= 0);
  }
  return static_cast<double>(cuda_waits(gpu) - before) / kSteps;
}

/// Loss, accuracy and norm are read together; all else is queued behind the program.
TEST(CudaWaits, AStepWaitsOnceForWhatIsReadOfIt) {
  if (std::getenv("TENON_SIMT_PINNED")) GTEST_SKIP() << "little or no memory may be pinned here";
  for (const bool compile : {false, true}) {
    SCOPED_TRACE(compile ? "from a plan" : "op by op");
    EXPECT_EQ(waits_a_step({{"optimizer.type", "adam"}, {"optimizer.clip_norm", "0.5"}}, compile), 1);
    EXPECT_EQ(waits_a_step({{"optimizer.type", "adam"}, {"data.micro_batches", "3"}}, compile), 1);
    EXPECT_EQ(waits_a_step({{"optimizer.type", "sgd"}, {"average.type", "ema"}}, compile), 1);
    EXPECT_EQ(waits_a_step({{"optimizer.type", "adamw"}, {"amp", "fp16"}, {"amp_scale", "8"}}, compile), 1);
    // One more for every parameter, whose length the step is in proportion to.
    EXPECT_EQ(waits_a_step({{"optimizer.type", "lamb"}}, compile), 1 + 6);
  }
}

}  // namespace
}  // namespace tenon
