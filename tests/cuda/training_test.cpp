// Training on a GPU, or on the emulated one: near the CPU's, the same twice, across a save, and in any order of
// threads.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/backend.h"
#include "core/error.h"
#include "core/profile.h"
#include "engine/autograd/autograd.h"
#include "engine/op/cuda_device.h"
#include "engine/ops/create.h"
#include "engine/ops/linalg.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"
#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/cuda/emulated.h"

namespace tenon {
namespace {

std::string bytes_of(const Checkpoint& c) {
  std::string all = c.state.dump();
  for (const auto& [name, tensor] : c.tensors) {
    const Tensor t = contiguous(detach(to_host(tensor)));
    all += name;
    if (t.nbytes()) all.append(static_cast<const char*>(t.raw()), t.nbytes());
  }
  return all;
}

Recipe recipe_of(const std::string& name, const std::vector<std::pair<std::string, std::string>>& set) {
  Recipe recipe = find_template(name).recipe;
  for (const auto& [key, value] : set) recipe.set(key, value);
  return recipe;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

TEST(CudaTraining, StepsAreNearTheCpusAndTheSameInEveryOrderOfThreads) {
  const Device gpu = emulated::device();
  const Settings runs[] = {
      {{"optimizer.clip_norm", "0.5"}, {"data.micro_batches", "2"}},
      {{"optimizer.type", "sgd"}, {"average.type", "ema"}},
      {{"optimizer.type", "lamb"}},
  };
  for (const Settings& settings : runs) {
    SCOPED_TRACE(settings.front().second);
    const ModelSpec& model = find_template("spirals").model;
    const Recipe recipe = recipe_of("spirals", settings);
    TrainingSession here(model, recipe);
    std::vector<double> losses;
    for (int i = 0; i < 5; ++i) losses.push_back(here.step().loss);
    std::string bits;
    for (int order = 0; order < 3; ++order) {
      if (!emulated::set_order(order, 11) && order > 0) break;
      TrainingSession there(model, recipe, {gpu, nullptr});
      for (int i = 0; i < 5; ++i) EXPECT_NEAR(there.step().loss, losses[static_cast<size_t>(i)], 1e-4) << "step " << i;
      const std::string now = bytes_of(there.save());
      if (order == 0) bits = now;
      EXPECT_TRUE(now == bits) << "the bits depend on the order of threads";
    }
    emulated::set_order(0, 1);
  }
}

TEST(CudaTraining, ASavedRunGoesOnWithTheSameBits) {
  const ModelSpec& model = find_template("spirals").model;
  const Recipe recipe = recipe_of("spirals", {});
  const SessionOptions there{emulated::device(), nullptr};
  TrainingSession through(model, recipe, there);
  for (int i = 0; i < 3; ++i) through.step();
  const Checkpoint kept = through.save();
  for (int i = 0; i < 3; ++i) through.step();
  TrainingSession again(model, recipe, there);
  again.load(kept);
  for (int i = 0; i < 3; ++i) again.step();
  EXPECT_TRUE(bytes_of(again.save()) == bytes_of(through.save()));
  EXPECT_NEAR(again.evaluate().loss, through.evaluate().loss, 0);
}

TEST(CudaTraining, TheRecipeNamesTheDevice) {
  emulated::device();
  TrainingSession session(find_template("spirals").model, recipe_of("spirals", {{"device", "cuda"}}));
  const Checkpoint c = session.save();
  ASSERT_FALSE(c.tensors.empty());
  EXPECT_TRUE(std::isfinite(session.step().loss));
  EXPECT_GT(cuda_memory(emulated::device()).peak_bytes, 0);
  EXPECT_THROW(TrainingSession(find_template("spirals").model, recipe_of("spirals", {{"device", "tpu"}})), Error);
  EXPECT_THROW(TrainingSession(find_template("spirals").model, recipe_of("spirals", {{"device", "cuda:7"}})), Error);
}

TEST(CudaDevice, AProfileShowsWhatCrossesForWantOfAKernel) {
  const Tensor x = to_device(eye(3), emulated::device());
  ASSERT_FALSE(has_cuda_kernel("cholesky"));
  const auto crossings = [](const std::function<void()>& work) {
    profile_start();
    work();
    int n = 0;
    for (const Tick& t : profile_stop()) n += interned_name(t.name).ends_with("no kernel there");
    return n;
  };
  EXPECT_EQ(crossings([&] { neg(x); }), 0);
  EXPECT_EQ(crossings([&] { cholesky(x); }), 2);
}

// Gradients as small as what keeps a divisor from 0, so that every number of a rule counts.
TEST(CudaTraining, OptimizersTakeTheCpusSteps) {
  const Device gpu = emulated::device();
  int tried = 0;
  for (const optim::OptimizerDef& def : optim::optimizers()) {
    if (def.name == "lbfgs" || def.name == "muon")
      continue;  // of many products: their rounding grows from step to step
    SCOPED_TRACE(def.name);
    std::vector<Tensor> ends;
    for (const Device d : {Device{}, gpu}) {
      Tensor w = empty({3, 41}), g = empty({3, 41});
      for (int64_t i = 0; i < w.numel(); ++i) {
        w.data<float>()[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i)));
        g.data<float>()[i] = static_cast<float>(std::cos(2.1 * static_cast<double>(i)) * std::pow(10.0, -(i % 10)));
      }
      w = to_device(w, d);
      set_requires_grad(w);
      const auto optimizer = optim::make_optimizer(def.name, {{"w", w}});
      for (int step = 0; step < 3; ++step) {
        set_grad(w, to_device(g, d));
        NoGrad off;
        optimizer->step(0.01);
      }
      ends.push_back(contiguous(detach(to_host(w))));
    }
    for (int64_t i = 0; i < ends[0].numel(); ++i)
      ASSERT_NEAR(ends[1].data<float>()[i], ends[0].data<float>()[i], 1e-6) << "element " << i;
    ++tried;
  }
  EXPECT_GE(tried, 9);
}

TEST(CudaDevice, NamesOfDevices) {
  const Device gpu = emulated::device();
  EXPECT_TRUE(parse_device("cuda") == gpu);
  EXPECT_TRUE(parse_device("cuda:0") == gpu);
  EXPECT_TRUE(parse_device("cpu") == Device{});
  for (const char* wrong : {"cuda:", "cuda:x", "cuda:-1", "cuda:0x", "gpu", "CUDA:0", ""}) {
    try {
      parse_device(wrong);
      ADD_FAILURE() << wrong << " names no device";
    } catch (const Error& e) {
      EXPECT_TRUE(e.kind() == Error::Kind::usage) << wrong << ": " << e.message();
    }
  }
}

TEST(CudaDevice, OutOfMemoryIsAnErrorAndTheDeviceGoesOn) {
  const Device gpu = emulated::device();
  if (!emulated::set_order(0, 1)) GTEST_SKIP() << "a real GPU has more";
  const Tensor kept = full({1000}, 3, DType::f32, gpu);
  try {
    empty({int64_t{1} << 40}, DType::f32, gpu);
    FAIL() << "4 TiB were taken";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("cuda:0 has no room for"), std::string::npos) << e.message();
  }
  EXPECT_EQ(item(to_host(narrow(add(kept, 1), 0, 999, 1))), 4);
}

}  // namespace
}  // namespace tenon
