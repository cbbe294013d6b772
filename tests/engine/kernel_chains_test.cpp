// Pointwise kernels of a plan that run tile by tile: which ones do, what keeps others from it, that random programs
// have the bits of their ops, and that a value which nobody else reads takes no memory.
#include "engine/graph/kernel_chains.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "core/parallel.h"
#include "core/profile.h"
#include "engine/graph/step_plan.h"
#include "engine/ops/join.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/random.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/engine/same_bits.h"
#include "tests/messages.h"

namespace tenon {
namespace {

using Program = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// A program as a plan beside its ops.
struct Traced {
  std::unique_ptr<StepPlan> plan;
  explicit Traced(const Program& program, const std::vector<Tensor>& given) {
    const NoGrad off;
    t_state.origin.seq = 0;
    StepTracer tracer(given, {});
    std::vector<Tensor> results;
    {
      const ObserveScope observe(tracer);
      results = program(given);
    }
    plan = std::make_unique<StepPlan>(tracer.finish(results, {}), std::vector<Tensor>{});
  }
  std::vector<Tensor> run(const std::vector<Tensor>& given) {
    t_state.origin.seq = 0;
    return plan->run(given);
  }
  /// "add 0, relu 0, sum -1: why": the op and chain of each kernel.
  std::string told() const {
    std::string all;
    for (const StepPlanRow& r : plan->rows())
      all += fmt::format("{}{} {}{}", all.empty() ? "" : ", ", r.op, r.chain, r.why.empty() ? "" : ": " + r.why);
    return all;
  }
};

void expect_same_as_ops(const Program& program, const std::vector<Tensor>& given, Traced& traced) {
  const NoGrad off;
  const std::vector<Tensor> ops = program(given), planned = traced.run(given);
  ASSERT_EQ(ops.size(), planned.size());
  for (size_t i = 0; i < ops.size(); ++i) EXPECT_TRUE(same_bits(ops[i], planned[i])) << "result " << i;
}

std::vector<Tensor> chain_inputs(const Shape& size, size_t count) {
  std::vector<Tensor> all;
  for (size_t i = 0; i < count; ++i) all.push_back(randn(size));
  return all;
}

TEST(KernelChains, WhatFollowsOverTheSameElementsIsOneChain) {
  const Program program = [](const std::vector<Tensor>& x) {
    const Tensor sum = relu(add(x[0], x[1]));
    return std::vector<Tensor>{mul(sum, sigmoid(sum))};
  };
  for (const Shape& size : {Shape{3}, Shape{1025}, Shape{17, 5000}, Shape{4, 50000}}) {
    SCOPED_TRACE(to_string(size));
    const std::vector<Tensor> given = chain_inputs(size, 2);
    Traced t(program, given);
    EXPECT_EQ(t.told(), "add 0, relu 0, sigmoid 0, mul 0");
    EXPECT_EQ(t.plan->figures().chains, 1);
    EXPECT_EQ(t.plan->figures().chained, 4);
    EXPECT_EQ(t.plan->figures().arena_bytes, 0) << "what nobody else reads lies in tiles";
    for (const int threads : {1, 3}) {
      const int before = num_threads();
      set_num_threads(threads);
      expect_same_as_ops(program, given, t);
      expect_same_as_ops(program, chain_inputs(size, 2), t);
      set_num_threads(before);
    }
  }
}

TEST(KernelChains, WhatKeepsAKernelFromTheOneBeforeIsSaid) {
  const std::vector<Tensor> given = chain_inputs({6, 4}, 2);
  const auto told = [&](const Program& program) {
    Traced t(program, given);
    expect_same_as_ops(program, given, t);
    return t.told();
  };
  EXPECT_EQ(told([](const auto& x) { return std::vector<Tensor>{exp(transpose(relu(x[0]), 0, 1))}; }), "relu 0, exp 0")
      << "a view of all elements goes over the same ones";
  EXPECT_SAYS(told([](const auto& x) { return std::vector<Tensor>{exp(narrow(relu(x[0]), 0, 0, 3))}; }),
              "exp -1: it goes over another number of elements");
  EXPECT_SAYS(told([](const auto& x) {
                return std::vector<Tensor>{add(transpose(relu(x[0]), 0, 1), reshape(x[1], {4, 6}))};
              }),
              "add -1: an operand is laid out in another way than its result");
  EXPECT_SAYS(told([](const auto& x) {
                const Tensor big = cat({relu(x[0]), x[1]}, 0);  // its halves are other elements
                const Tensor half = narrow(big, 0, 0, 6);
                Tensor shifted = narrow(big, 0, 1, 6);
                mul_(shifted, x[1]);
                return std::vector<Tensor>{exp(half), big};
              }),
              "exp -1: it needs other elements than its own of what was just written");
  EXPECT_EQ(told([](const auto& x) { return std::vector<Tensor>{exp(sum(relu(x[0])))}; }), "relu -1, sum -1, exp -1");
}

TEST(KernelChains, NumbersThatRepeatAreReadInTheChain) {
  const auto over = [](const Tensor& x, const Tensor& numbers) {
    const Program program = [](const std::vector<Tensor>& given) {
      return std::vector<Tensor>{relu(add(mul(given[0], given[1]), given[1]))};
    };
    Traced t(program, {x, numbers});
    for (const int threads : {1, 3}) {
      const int before = num_threads();
      set_num_threads(threads);
      expect_same_as_ops(program, {x, numbers}, t);
      set_num_threads(before);
    }
    return t.told();
  };
  const std::string one = "mul 0, add 0, relu 0";
  EXPECT_EQ(over(randn({700, 10}), randn({10})), one) << "a row";
  EXPECT_EQ(over(randn({30, 5000}), randn({5000})), one) << "a row of more than a tile";
  EXPECT_EQ(over(randn({700, 10}), randn({700, 1})), one) << "a column";
  EXPECT_EQ(over(randn({20, 3000}), randn({20, 1})), one) << "a column along rows of more than a tile";
  EXPECT_EQ(over(randn({8, 6, 13, 17}), randn({6, 1, 1})), one) << "channels";
  EXPECT_EQ(over(permute(randn({8, 13, 17, 6}), {0, 3, 1, 2}), randn({6, 1, 1})), one) << "innermost channels";
  EXPECT_EQ(over(randn({8, 6, 13, 17}), expand(randn({6, 13, 1}), {6, 13, 17})), one) << "an expanded view";
  EXPECT_EQ(over(randn({9, 1, 40}), randn({9, 1, 1})), one) << "an axis of one";
  EXPECT_EQ(over(randn({70, 30}), randn({1, 1})), one) << "one number";
  EXPECT_EQ(over(randn({70, 30}), expand(randn({1, 1}), {70, 30})), one) << "one number, expanded";
  EXPECT_EQ(over(randn({1, 1}), randn({1, 1})), one) << "a number by a number";
  EXPECT_SAYS(over(randn({4, 5, 6}), randn({4, 1, 6})),
              "add -1: an operand is laid out in another way than its result");
  EXPECT_SAYS(over(randn({4, 5, 6}), transpose(randn({6, 5}), 0, 1)),
              "add -1: an operand is laid out in another way than its result");
}

TEST(KernelChains, NumbersThatRepeatAreNotWhatTheChainHasJustWritten) {
  // The first row of what is written, for every row.
  const Program program = [](const std::vector<Tensor>& x) {
    const Tensor y = add(x[0], x[1]);
    return std::vector<Tensor>{relu(mul(y, narrow(y, 0, 0, 1))), mul(x[0], expand(narrow(y, 0, 2, 1), x[0].size()))};
  };
  for (const Shape& size : {Shape{3, 5}, Shape{40, 3000}}) {
    const std::vector<Tensor> given = chain_inputs(size, 2);
    Traced t(program, given);
    SCOPED_TRACE(to_string(size) + " " + t.told());
    expect_same_as_ops(program, given, t);
  }
}

TEST(KernelChains, OneNumberForAllElementsOutlivesTheTiles) {
  // The number is an element of what the chain itself writes.
  const Program program = [](const std::vector<Tensor>& x) {
    const Tensor y = add(x[0], x[1]);
    const Tensor first = narrow(reshape(y, {-1}), 0, 0, 1);
    const Tensor scaled = mul(x[0], first);
    return std::vector<Tensor>{relu(add(y, scaled))};
  };
  for (const Shape& size : {Shape{1}, Shape{5}, Shape{90, 1000}}) {
    const std::vector<Tensor> given = chain_inputs(size, 2);
    Traced t(program, given);
    SCOPED_TRACE(to_string(size) + " " + t.told());
    expect_same_as_ops(program, given, t);
  }
}

TEST(KernelChains, MemoryOfANumberForAllElementsIsNotTaken) {
  // The sum would take the memory of y, whose first element every tile reads.
  const Program program = [](const std::vector<Tensor>& x) {
    const Tensor y = matmul(x[0], x[1]);
    const Tensor scaled = mul(x[1], narrow(reshape(y, {-1}), 0, 0, 1));
    return std::vector<Tensor>{sum(add(y, scaled))};
  };
  const std::vector<Tensor> given = chain_inputs({200, 200}, 2);
  Traced t(program, given);
  EXPECT_EQ(t.told(), "matmul -1, mul 0, add 0, sum -1");
  expect_same_as_ops(program, given, t);
}

/// The next of the numbers that a seed stands for.
struct Dice {
  uint64_t state;
  size_t below(size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % n;
  }
};

Tensor twice_in_place(Tensor x) {
  Tensor flat = reshape(x, {-1});
  add_(flat, flat);
  return mul_(x, x);
}

TEST(KernelChains, RandomProgramsHaveTheBitsOfTheirOps) {
  int64_t chains = 0, chained = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Dice dice{seed};
    const Shape size = dice.below(2) ? Shape{7, 11} : Shape{3, 2000};
    const size_t steps = 4 + dice.below(14);
    std::vector<size_t> draws;
    for (size_t i = 0; i < 6 * steps; ++i) draws.push_back(dice.below(1000));
    const Program program = [&](const std::vector<Tensor>& x) {
      std::vector<Tensor> made = x, results;
      size_t at = 0;
      const auto draw = [&](size_t n) { return draws[at++] % n; };
      for (size_t i = 0; i < steps; ++i) {
        const Tensor a = made[draw(made.size())], b = made[draw(made.size())];
        const size_t what = draw(11);
        Tensor y = what == 0   ? add(a, b)
                   : what == 1 ? mul(a, b)
                   : what == 2 ? sub(a, relu(b))
                   : what == 3 ? tanh(a)
                   : what == 4 ? relu(a)
                   : what == 5 ? sigmoid(neg(a))
                   : what == 6 ? mul(a, sum(b, {0, 1}, true))
                   : what == 7 ? twice_in_place(clone(a))
                   : what == 8 ? mul(a, sum(b, {0}, true))
                   : what == 9 ? sub(sum(b, {1}, true), a)
                               : add(a, narrow(reshape(b, {-1}), 0, static_cast<int64_t>(draw(5)), 1));
        if (draw(3) == 0) results.push_back(y);
        made.push_back(std::move(y));
      }
      results.push_back(made.back());
      return results;
    };
    const std::vector<Tensor> given = chain_inputs(size, 2);
    Traced t(program, given);
    expect_same_as_ops(program, given, t);
    expect_same_as_ops(program, chain_inputs(size, 2), t);
    chains += t.plan->figures().chains;
    chained += t.plan->figures().chained;
    if (HasFailure()) return;
  }
  EXPECT_GT(chains, 100);
  EXPECT_GT(chained, 2 * chains);
}

}  // namespace
}  // namespace tenon
