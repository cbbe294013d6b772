// Nothing but kernels may follow the address of a tensor on another device than the CPU: shown on a device whose
// addresses lead nowhere (tests/poisoned_device.h).
#include <gtest/gtest.h>

#include <cstring>

#include "core/backend.h"
#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/data/dataset.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/index.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/random.h"
#include "engine/ops/reduce.h"
#include "engine/ops/sort.h"
#include "engine/ops/view.h"
#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/engine/op_samples.h"
#include "tests/engine/sample_run.h"
#include "tests/messages.h"
#include "tests/poisoned_device.h"

namespace tenon {
namespace {

std::string host_bytes(const Tensor& t) {
  const Tensor host = contiguous(detach(to_host(t)));
  return host.nbytes() ? std::string(static_cast<const char*>(host.raw()), host.nbytes()) : std::string();
}
void expect_same_bits(const Tensor& there, const Tensor& here, const std::string& what) {
  ASSERT_EQ(there.defined(), here.defined()) << what;
  if (!here.defined()) return;
  EXPECT_EQ(there.dtype(), here.dtype()) << what;
  ASSERT_EQ(to_string(there.size()), to_string(here.size())) << what;
  if (here.storage()) {
    EXPECT_EQ(to_string(there.stride()), to_string(here.stride())) << what;
  }
  EXPECT_TRUE(host_bytes(there) == host_bytes(here)) << what << " differs";
}

using testing_words::error_of;

TEST(Device, ADeliberateReadOfTheHostIsCaught) {
  const Tensor t = full({4}, 2, DType::f32, poisoned::device());
  EXPECT_EQ(item(narrow(t, 0, 3, 1)), 2);
  EXPECT_DEATH({ std::exit(t.data<float>()[0] == 2 ? 0 : 1); }, "");
  EXPECT_DEATH({ t.data<float>()[0] = 1; }, "");
}

TEST(Device, TensorsCrossWithTheirStrides) {
  const Tensor host = slice(transpose(arange(24, DType::f32), 0, 0), 0, 20, 2, -3);
  const Tensor there = to_device(host, poisoned::device());
  EXPECT_EQ(to_string(there.device()), "poisoned:0");
  expect_same_bits(there, host, "a slice with a negative step");
  expect_same_bits(to_device(expand(scalar(3), {2, 2}), poisoned::device()), expand(scalar(3), {2, 2}),
                   "an expanded number");
  expect_same_bits(to_device(empty({0, 3}), poisoned::device()), empty({0, 3}), "nothing");
  EXPECT_TRUE(to_host(host).same(host));
  Tensor x = clone(host);
  set_requires_grad(x);
  backward(to(mul(to(x, poisoned::device()), 3), {}), ones_like(x));
  expect_same_bits(grad_of(x), full_like(x, 3), "the gradient of a crossing");
  EXPECT_NE(error_of([] { to_host(empty({2}, DType::f32, {DeviceType::meta})); }).find("has no values"),
            std::string::npos);
}

TEST(Device, OperandsOnTwoDevicesAreAnErrorThatNamesBoth) {
  const Tensor here = ones({2, 3}), there = ones({2, 3}, DType::f32, poisoned::device());
  for (const std::string& e : {error_of([&] { add(here, there); }), error_of([&] {
                                 Tensor x = clone(there);
                                 add_(x, here);
                               })}) {
    EXPECT_NE(e.find("lies on cpu"), std::string::npos) << e;
    EXPECT_NE(e.find("lies on poisoned:0"), std::string::npos) << e;
    EXPECT_NE(e.find("input 0 (f32, size [2, 3])"), std::string::npos) << e;
  }
}

TEST(Device, AnOpWithoutAKernelThereIsAnError) {
  Backend b;
  b.name = "bare";
  b.take = [](Device, size_t bytes) { return std::malloc(bytes ? bytes : 1); };
  b.give = [](Device, void* p, size_t) { std::free(p); };
  const DeviceType bare = register_backend(b);
  const Tensor t = empty({2}, DType::f32, {bare, 0});
  EXPECT_NE(error_of([&] { neg(t); }).find("no kernel for device bare:0"), std::string::npos);
  EXPECT_NE(error_of([&] { register_backend(b); }).find("'bare'"), std::string::npos);
}

TEST(Device, CreationTakesADevice) {
  const Device d = poisoned::device();
  expect_same_bits(arange(5, DType::f32, d), arange(5, DType::f32), "arange");
  expect_same_bits(linspace(0, 1, 7, DType::f64, d), linspace(0, 1, 7, DType::f64), "linspace");
  expect_same_bits(eye(3, 4, DType::f32, d), eye(3, 4), "eye");
  expect_same_bits(scalar(2.5, DType::f16, d), scalar(2.5, DType::f16), "scalar");
  Generator a, b;
  expect_same_bits(randn({5}, DType::f32, &a, d), randn({5}, DType::f32, &b), "randn");
  expect_same_bits(randperm(9, &a, d), randperm(9, &b), "randperm");
  Tensor t = zeros({4, 4}, DType::f32, d), h = zeros({4, 4});
  for (const Tensor& x : {t, h}) {
    fill(diagonal(x), 3);
    copy_(select(x, 0, 2), narrow(arange(8, DType::f32), 0, 4, 4));
  }
  expect_same_bits(t, h, "filled and copied into views");
}

TEST(Device, WhatIsComputedOnTheHostCrosses) {
  const Device d = poisoned::device();
  const Tensor x = to_device(cast(randint(0, 5, {12}), DType::i64), d), h = to_host(x);
  expect_same_bits(unique(x).values, unique(h).values, "unique");
  expect_same_bits(bincount(x, {}, 0), bincount(h, {}, 0), "bincount");
  expect_same_bits(nonzero(x), nonzero(h), "nonzero");
}

TEST(Device, EveryOpAndItsGradientHaveTheBitsOfTheCpu) {
  int compared = 0;
  each_sample([&](const OpDef& op, const Sample& s) {
    for (const bool composite : {false, true}) {
      const SampleRun here = run_sample(op, s, {}, composite), there = run_sample(op, s, poisoned::device(), composite);
      for (size_t o = 0; o < here.out.size(); ++o) {
        if (!s.inputs.empty()) {
          EXPECT_EQ(to_string(there.out[o].device()), std::string(op.info.any_device ? "cpu" : "poisoned:0"));
        }
        expect_same_bits(there.out[o], here.out[o], "output");
      }
      ASSERT_EQ(there.gradients.size(), here.gradients.size());
      for (size_t i = 0; i < here.gradients.size(); ++i)
        expect_same_bits(there.gradients[i], here.gradients[i], "gradient");
      ++compared;
    }
  });
  EXPECT_GT(compared, 500);
}

void expect_same_checkpoint(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  EXPECT_EQ(a.state, b.state);
  for (size_t i = 0; i < a.tensors.size(); ++i)
    EXPECT_TRUE(host_bytes(a.tensors[i].second) == host_bytes(b.tensors[i].second)) << a.tensors[i].first;
}

void train_on_both(const ModelSpec& model, const Recipe& recipe, int steps) {
  TrainingSession here(model, recipe), there(model, recipe, {poisoned::device(), nullptr});
  for (int i = 0; i < steps; ++i) {
    const StepResult a = here.step(), b = there.step();
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.grad_norm, b.grad_norm);
  }
  expect_same_checkpoint(there.save(), here.save());
  const Evaluation a = here.evaluate(), b = there.evaluate();
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.decisive.value, b.decisive.value);
  const Checkpoint kept = there.save();
  there.step();
  there.load(kept);
  there.step();
  here.step();
  expect_same_checkpoint(there.save(), here.save());
}

TEST(Device, TrainingEvaluationAndCheckpointsHaveTheBitsOfTheCpu) {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  const Settings runs[] = {
      {{"average.type", "ema"}, {"optimizer.clip_norm", "0.5"}, {"data.micro_batches", "3"}},
      {{"optimizer.type", "lbfgs"}},
      {{"optimizer.type", "muon"}, {"amp", "fp16"}},
      {{"optimizer.type", "adafactor"}, {"amp", "bf16"}, {"optimizer.clip_value", "0.1"}},
      {{"optimizer.type", "lamb"}},
  };
  for (const Settings& settings : runs) {
    SCOPED_TRACE(settings.front().second);
    Recipe recipe = find_template("spirals").recipe;
    for (const auto& [key, value] : settings) recipe.set(key, value);
    train_on_both(find_template("spirals").model, recipe, 3);
  }
}

TEST(Device, EveryTemplateThatNeedsNoFilesTrainsThere) {
  int trained = 0;
  for (const Template& t : templates()) {
    Recipe recipe = t.recipe;
    recipe.set("data.batch_size", "4");
    try {
      data::Options options;
      options.dir = recipe.text("data.dir");
      options.attrs = recipe.attrs("data");
      data::open_dataset(recipe.text("data.dataset"), options);
    } catch (const Error&) {
      continue;
    }
    SCOPED_TRACE(t.name);
    TrainingSession here(t.model, recipe), there(t.model, recipe, {poisoned::device(), nullptr});
    EXPECT_EQ(here.step().loss, there.step().loss);
    expect_same_checkpoint(there.save(), here.save());
    ++trained;
  }
  EXPECT_GE(trained, 2);
}

}  // namespace
}  // namespace tenon
