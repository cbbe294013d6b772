#include "engine/autograd/autograd.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/state.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/engine/leaf.h"

namespace tenon {
namespace {

double g(const Tensor& t) { return item(grad_of(t)); }

TEST(Autograd, AccumulatesOverUsesAndCalls) {
  Tensor x = leaf(3);
  backward(add(mul(x, x), x));
  EXPECT_EQ(g(x), 7);
  backward(mul(x, 2));
  EXPECT_EQ(g(x), 9);
  zero_grad(x);
  EXPECT_FALSE(grad_of(x).defined());
}

TEST(Autograd, NoGradAndDetachEndTheGraph) {
  Tensor x = leaf(2);
  {
    NoGrad off;
    EXPECT_FALSE(mul(x, x).requires_grad());
  }
  EXPECT_FALSE(detach(mul(x, x)).requires_grad());
  EXPECT_TRUE(mul(x, x).requires_grad());
  EXPECT_THROW(backward(detach(x)), Error);
}

TEST(Autograd, HigherDerivatives) {
  Tensor x = leaf(2);
  BackwardOptions create;
  create.create_graph = true;
  Tensor y = mul(mul(x, x), mul(x, x)), d = y;
  double expected[] = {32, 48, 48, 24};
  for (double e : expected) {
    d = grad({d}, {x}, {}, create)[0];
    EXPECT_DOUBLE_EQ(item(d), e);
  }
  EXPECT_FALSE(grad_of(x).defined());  // grad() leaves the leaves alone
}

TEST(Autograd, SecondBackwardNeedsRetainGraph) {
  Tensor x = leaf(2), y = mul(x, x);
  BackwardOptions retain;
  retain.retain_graph = true;
  backward(y, {}, retain);
  backward(y);
  EXPECT_EQ(g(x), 8);
  try {
    backward(y);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("retain_graph"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("mul"), std::string::npos);
  }
}

TEST(Autograd, WritingOverASavedTensorIsAnErrorWithBothVersions) {
  Tensor x = leaf(2, {3}), y = exp(x);
  Tensor z = mul(y, y);
  add_(y, 1.0);
  try {
    backward(sum(z));
    FAIL();
  } catch (const Error& e) {
    std::string text = e.what();
    EXPECT_NE(text.find("mul"), std::string::npos);
    EXPECT_NE(text.find("had version 0, now it has 1"), std::string::npos) << text;
    EXPECT_NE(text.find("changed in place by add #"), std::string::npos) << text;
  }
}

TEST(Autograd, InPlaceOnAResultKeepsItsHistory) {
  Tensor x = leaf(3), y = mul(x, 2.0);
  add_(y, x);
  mul_(y, 5.0);
  backward(y);
  EXPECT_EQ(g(x), 15);
}

TEST(Autograd, InPlaceOnALeafIsRefused) {
  Tensor x = leaf(3);
  EXPECT_THROW(add_(x, 1.0), Error);
  NoGrad off;
  EXPECT_NO_THROW(add_(x, 1.0));
  EXPECT_EQ(item(x), 4);
}

TEST(Autograd, BroadcastGradientsAreSummed) {
  Tensor row = leaf(1, {3}), column = leaf(2, {2, 1});
  backward(sum(mul(row, column)));
  EXPECT_EQ(to_string(grad_of(row).size()), "[3]");
  EXPECT_EQ(value_at(grad_of(row), {0}), 4);
  EXPECT_EQ(to_string(grad_of(column).size()), "[2, 1]");
  EXPECT_EQ(value_at(grad_of(column), {1, 0}), 3);
}

TEST(Autograd, HooksSeeAndReplaceGradients) {
  Tensor x = leaf(3), y = mul(x, x);
  double seen = 0;
  add_hook(y, [&](const Tensor& t) {
    seen = item(t);
    return mul(t, 10.0);
  });
  int second = add_hook(x, [](const Tensor& t) { return mul(t, 0.0); });
  remove_hook(x, second);
  backward(mul(y, 2.0));
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(g(x), 120);
}

TEST(Autograd, RetainedGradientOfANonLeaf) {
  Tensor x = leaf(3), y = mul(x, x);
  retain_grad(y);
  backward(mul(y, 4.0));
  EXPECT_EQ(g(y), 4);
}

TEST(Autograd, UnusedInputsAreNamed) {
  Tensor x = leaf(1), other = leaf(1);
  EXPECT_THROW(grad({mul(x, 2.0)}, {other}), Error);
  EXPECT_FALSE(grad({mul(x, 2.0)}, {other}, {}, {}, true)[0].defined());
}

TEST(Autograd, AGraph200000NodesDeepNeitherRunsNorDiesByRecursion) {
  Tensor x = leaf(1), y = x;
  for (int i = 0; i < 200000; ++i) y = add(y, 0.0);
  backward(y);
  EXPECT_EQ(g(x), 1);
  Tensor z = x;
  for (int i = 0; i < 200000; ++i) z = exp(mul(z, 0.0));
}

TEST(Autograd, InPlaceOverlappingOperandsAreRefused) {
  Tensor x = arange(10, DType::f32), a = slice(x, 0, 1, 10), b = slice(x, 0, 0, 9);
  EXPECT_THROW(add_(a, b), Error);
  add_(a, a);
  EXPECT_EQ(value_at(x, {9}), 18);
  Tensor y = arange(5, DType::f32);
  copy_(slice(y, 0, 1, 5), slice(y, 0, 0, 4));
  for (int64_t i = 1; i < 5; ++i) EXPECT_EQ(value_at(y, {i}), i - 1);
}

TEST(Autograd, PowAtZeroWithExponentZero) {
  Tensor x = leaf(0), n = full({}, 0, DType::f64);
  backward(pow(x, n));
  EXPECT_EQ(g(x), 0);
}

TEST(Autograd, TheMeanOfManyHalves) {
  Tensor x = cast(ones({70000}), DType::f16);
  EXPECT_EQ(item(mean(x)), 1);
  EXPECT_EQ(item(mean(ones({49}, DType::f64))), 1);
}

TEST(Autograd, IntegersHaveNoGradient) {
  Tensor t = zeros({2}, DType::i64);
  EXPECT_THROW(set_requires_grad(t), Error);
}

TEST(Autograd, ANumberOnTheRightKeepsTheDtype) {
  EXPECT_EQ(add(zeros({2}), 1.5).dtype(), DType::f32);
  EXPECT_EQ(add(zeros({2}, DType::i64), 1.0).dtype(), DType::i64);
  EXPECT_EQ(add(zeros({2}, DType::i64), 1.5).dtype(), DType::f32);
  EXPECT_EQ(add(zeros({2}, DType::i32), zeros({2}, DType::u8)).dtype(), DType::i32);
  EXPECT_EQ(div(ones({2}, DType::i64), ones({2}, DType::i64)).dtype(), DType::f32);
}

}  // namespace
}  // namespace tenon
