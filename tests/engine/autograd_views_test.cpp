#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/op/op.h"
#include "engine/ops/as_strided.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/engine/leaf.h"

namespace tenon {
namespace {

std::string grads(const Tensor& t) {
  std::string text;
  Tensor g = contiguous(grad_of(t));
  for (int64_t i = 0; i < g.numel(); ++i)
    text += (i ? " " : "") + std::to_string(static_cast<int>(storage_value(g, g.offset() + i)));
  return text;
}

TEST(AutogradViews, AViewFollowsAWriteIntoItsBase) {
  Tensor x = leaf(2, {3}), y = mul(x, 1.0), v = select(y, 0, 0);
  mul_(y, 3.0);
  EXPECT_EQ(item(v), 6);
  backward(v);
  EXPECT_EQ(grads(x), "3 0 0");
}

TEST(AutogradViews, TheBaseFollowsAWriteIntoAView) {
  Tensor x = leaf(2, {3}), y = mul(x, 1.0), v = select(y, 0, 1);
  mul_(v, 5.0);
  backward(sum(y));
  EXPECT_EQ(grads(x), "1 5 1");
}

TEST(AutogradViews, ViewsOfViewsAndWritesInTurn) {
  Tensor x = leaf(1, {2, 3}), y = mul(x, 2.0), row = select(y, 0, 0), one = select(row, 0, 2), column = select(y, 1, 2);
  mul_(one, 3.0);      // y[0, 2] = 6 x
  mul_(column, 10.0);  // y[:, 2] *= 10
  add_(row, row);      // y[0] *= 2
  backward(add(sum(y), one));
  EXPECT_EQ(grads(x), "4 4 240 2 2 20");
}

TEST(AutogradViews, APlainTensorTakesOnAHistoryThroughItsViews) {
  Tensor x = leaf(3, {2}), out = zeros({2, 2}, DType::f64), early = select(out, 0, 1);
  for (int64_t i = 0; i < 2; ++i) {
    Tensor row = select(out, 0, i);
    overwrite_(row, mul(x, static_cast<double>(i + 1)));
  }
  EXPECT_TRUE(out.requires_grad());
  EXPECT_FALSE(is_leaf(out));
  EXPECT_TRUE(early.requires_grad()) << "a view taken before the write shows what was written";
  backward(add(sum(out), sum(early)));
  EXPECT_EQ(grads(x), "5 5");
}

TEST(AutogradViews, AGradientOfChosenInputsPassesThroughAHistoryTakenLate) {
  // The view's new history is recorded while the product that reads it is: it comes before that product all the same.
  Tensor x = leaf(2, {3}), y = mul(x, 1.0), v = select(y, 0, 0);
  mul_(y, 3.0);
  Tensor z = mul(v, 2.0);
  const std::vector<Tensor> g = grad({z}, {x});
  EXPECT_EQ(item(select(g[0], 0, 0)), 6);
  EXPECT_EQ(item(select(g[0], 0, 1)), 0);
}

TEST(AutogradViews, LeavesAndTheirViewsAreNotWrittenToWhileRecording) {
  Tensor x = leaf(1, {2}), v = select(x, 0, 0);
  EXPECT_THROW(mul_(x, 2.0), Error);
  EXPECT_THROW(mul_(v, 2.0), Error);
  {
    NoGrad no_grad;
    mul_(v, 2.0);
  }
  EXPECT_EQ(item(select(x, 0, 0)), 2);
  backward(v);
  EXPECT_EQ(grads(x), "1 0");
}

TEST(AutogradViews, SecondDerivativesPassThroughWrites) {
  Tensor x = leaf(3, {2}), y = mul(x, x), v = select(y, 0, 0);
  Tensor x0 = select(x, 0, 0);
  overwrite_(v, mul(x0, mul(x0, x0)));
  BackwardOptions create;
  create.create_graph = true;
  Tensor first = grad({sum(y)}, {x}, {}, create)[0];
  EXPECT_EQ(value_at(first, {0}), 27);
  backward(sum(first));
  EXPECT_EQ(grads(x), "18 2");
}

TEST(AutogradViews, OverlappingWindowsAddTheirGradients) {
  Tensor x = leaf(1, {5});
  backward(sum(unfold(x, 0, 3, 1)));
  EXPECT_EQ(grads(x), "1 2 3 2 1");
  zero_grad(x);
  backward(sum(as_strided(x, {2, 2}, {0, 3}, 1)));
  EXPECT_EQ(grads(x), "0 2 0 0 2");
  EXPECT_THROW(as_strided(x, {6}, {1}, 0), Error);
}

// add_(x, mul(x, w)): the product saves x as it was, which must not be what the sum becomes.
/// The sum over all parts is there once: the first part's is laid out with zeros, and each further one is added to its
/// place.
TEST(AutogradViews, GradientsOfPartsAreAddedToTheirPlaces) {
  struct Counter : OpObserver {
    std::map<std::string, int> ops;
    void after(const Call& call, int64_t, int64_t) override { ++ops[call.op->info.name]; }
  };
  Tensor x = add(arange(24, DType::f32), 0.5);
  set_requires_grad(x);
  const Tensor all = reshape(mul(x, 2), {2, 12});
  Counter counter;
  {
    const Tensor a = slice(all, 1, 0, 4), b = slice(all, 1, 4, 8), c = slice(all, 1, 3, 12, 3), d = select(all, 0, 1);
    const Tensor root = add(add(sum(mul(a, b)), sum(mul(c, c))), sum(mul(d, 3)));
    const ObserveScope observe(counter);
    backward(root);
  }
  EXPECT_EQ(counter.ops["strided_scatter"], 1);
  const Tensor g = contiguous(grad_of(x));
  for (int64_t i = 0; i < 24; ++i) {
    const int64_t row = i / 12, column = i % 12;
    const auto value = [&](int64_t of) { return 2 * (static_cast<double>(row * 12 + of) + 0.5); };
    double expected = row == 1 ? 3 : 0;
    if (column < 8) expected += value(column < 4 ? column + 4 : column - 4);
    if (column >= 3 && column % 3 == 0) expected += 2 * value(column);
    EXPECT_EQ(g.data<float>()[i], 2 * expected) << i;
  }
}

TEST(AutogradViews, AnInPlaceSumOfItsOwnProductHoldsNoCycle) {
  Tensor w = leaf(2), x = mul(leaf(3), 1.0);
  Tensor kept = mul(x, w);
  std::weak_ptr<int> alive;
  {
    auto token = std::make_shared<int>(1);
    alive = token;
    add_hook(kept, [token](const Tensor&) { return Tensor(); });
  }
  add_(x, kept);
  kept.reset();
  x.reset();
  EXPECT_TRUE(alive.expired()) << "the graph is still held after its last tensor has gone";
}

}  // namespace
}  // namespace tenon
