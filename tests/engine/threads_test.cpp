// What several threads may do at once, and what they are told not to. Run under the thread sanitizer too.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "core/parallel.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/layers.h"
#include "engine/nn/norm.h"
#include "engine/nn/parametrize.h"
#include "engine/ops/create.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/random.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/engine/same_bits.h"
#include "tests/messages.h"

namespace tenon {
namespace {

using testing_words::error_of;

/// A door that one thread waits at until another opens it.
class Door {
 public:
  void open() {
    {
      std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST(Threads, ASecondPassOverOneGraphIsAnError) {
  Tensor x = full({3}, 2, DType::f64);
  set_requires_grad(x);
  Tensor middle = mul(x, x), y = sum(mul(middle, 3));
  Door inside, tried;
  add_hook(middle, [&](const Tensor&) {
    inside.open();
    tried.pass();
    return Tensor();
  });
  std::thread first([&] { backward(y); });
  inside.pass();
  const std::string same_graph = error_of([&] { backward(sum(middle)); });
  const std::string same_leaf = error_of([&] { grad({sum(neg(x))}, {x}); });
  tried.open();
  first.join();
  EXPECT_NE(same_graph.find("part of a backward that has not ended"), std::string::npos) << same_graph;
  EXPECT_NE(same_graph.find("mul #"), std::string::npos) << same_graph;
  EXPECT_NE(same_leaf.find("the gradient of a leaf of size [3]"), std::string::npos) << same_leaf;
  EXPECT_TRUE(same_bits(grad_of(x), full({3}, 12, DType::f64)));
  // Given back: another pass may follow, also after one that failed.
  EXPECT_TRUE(same_bits(grad({sum(neg(x))}, {x})[0], full({3}, -1, DType::f64)));
}

TEST(Threads, GraphsOfTheirOwnAreWalkedAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        Tensor x = full({8, 8}, t + 1, DType::f64);
        set_requires_grad(x);
        backward(sum(mul(matmul(x, x), 2)));
        right += item(narrow(reshape(grad_of(x), {64}), 0, 5, 1)) == 32.0 * (t + 1);
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(right, 200);
}

TEST(Threads, OneModuleIsEvaluatedBySeveral) {
  auto first = std::make_shared<nn::Linear>(64, 96), second = std::make_shared<nn::Linear>(96, 64);
  nn::Sequential model({first, std::make_shared<nn::BatchNorm>(1, 96, nn::BatchNorm::Options{}), second});
  model.initialize(3);
  nn::weight_norm(*first);
  nn::spectral_norm(*second);
  { model(randn({32, 64})); }  // running statistics and power iterations that are not the first ones
  model.eval();
  constexpr int kThreads = 4, kCalls = 12;
  std::vector<Tensor> inputs, alone;
  {
    InferenceMode off;
    for (int i = 0; i < kThreads; ++i) {
      Generator g{static_cast<uint64_t>(i + 1), 0, 0};
      inputs.push_back(randn({700, 64}, DType::f32, &g));
      alone.push_back(model(inputs.back()));
    }
    // Frozen values are made anew when what they are made of is written to: here, by all threads at once.
    Tensor length = first->own("weight_g");
    mul_(length, 1.0);
  }
  set_num_threads(3);
  std::atomic<int> equal{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      NoGrad off;
      for (int i = 0; i < kCalls; ++i)
        equal += same_bits(model(inputs[static_cast<size_t>(t)]), alone[static_cast<size_t>(t)]);
    });
  for (auto& t : threads) t.join();
  set_num_threads(0);
  EXPECT_EQ(equal, kThreads * kCalls);
}

TEST(Threads, DerivedParametersAreFrozenInEvaluationOnly) {
  nn::Linear layer(3, 2);
  layer.initialize(1);
  int computed = 0;
  Tensor part = full({2, 3}, 1);
  layer.reparametrize("weight", {{"part", part}}, {}, [&](bool) {
    ++computed;
    return mul(part, 2);
  });
  const Tensor x = ones({1, 3});
  computed = 0;
  layer(x);
  layer(x);
  EXPECT_EQ(computed, 2);  // training
  layer.eval();
  {
    NoGrad off;
    layer(x);
    const Tensor before = layer(x);
    EXPECT_EQ(computed, 3);
    add_(part, 1);
    EXPECT_FALSE(same_bits(layer(x), before));
    EXPECT_EQ(computed, 4);
  }
  for (int i = 0; i < 2; ++i) backward(sum(layer(x)));  // each with a history of its own
  EXPECT_EQ(computed, 6);
  EXPECT_TRUE(same_bits(grad_of(part), full({2, 3}, 4)));
}

TEST(Threads, SeveralCallersShareTheWorkers) {
  set_num_threads(4);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 12; ++c)  // more than there are places for
    callers.emplace_back([&] {
      for (int i = 0; i < 60; ++i) {
        std::vector<int64_t> parts(64);
        parallel_for(6400, 100, [&](int64_t b, int64_t e) {
          for (int64_t k = b; k < e; ++k) parts[static_cast<size_t>(b / 100)] += k;
        });
        for (int64_t p : parts) sum += p;
      }
    });
  for (int i = 0; i < 8; ++i) set_num_threads(2 + i % 3);  // while they work
  for (auto& t : callers) t.join();
  EXPECT_EQ(sum, int64_t{12} * 60 * (6400 * 6399 / 2));
  callers.clear();
  std::atomic<int> thrown{0};
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      try {
        parallel_for(100, 1, [&](int64_t b, int64_t) {
          if (b == 70) throw Error("piece 70");
        });
      } catch (const Error&) {
        ++thrown;
      }
    });
  for (auto& t : callers) t.join();
  EXPECT_EQ(thrown, 4);
  set_num_threads(0);
}

}  // namespace
}  // namespace tenon
