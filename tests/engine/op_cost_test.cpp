// What ops say that they compute: every op that computes has operations, and those of known formulas are counted
// exactly.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "engine/autograd/autograd.h"
#include "engine/op/op.h"
#include "engine/ops/attention.h"
#include "engine/ops/create.h"
#include "engine/ops/layer_norm.h"
#include "engine/ops/loss.h"
#include "engine/ops/matmul.h"
#include "engine/ops/norm.h"
#include "engine/ops/pool.h"
#include "engine/ops/pool_nd.h"
#include "engine/ops/reduce.h"
#include "engine/ops/resample.h"
#include "tests/engine/op_samples.h"

namespace tenon::op_costs {
namespace {

/// Adds up the operations of all calls of one op.
struct OperationsOf : OpObserver {
  explicit OperationsOf(std::string op) : op(std::move(op)) {}
  void after(const Call& call, int64_t, int64_t) override {
    if (call.op->info.name == op) operations += cost_of(call).flops;
  }
  std::string op;
  double operations = 0;
};
double operations_of(const char* op, const std::function<void()>& f) {
  OperationsOf counted(op);
  ObserveScope observe(counted);
  f();
  return counted.operations;
}

TEST(OpCost, EveryOpThatComputesHasOperations) {
  // What only picks elements.
  const std::set<std::string> none{"im2col", "max_pool2d_gather", "resample, nearest"};
  int seen = 0;
  each_sample([&](const OpDef& op, const Sample& s) {
    const OpKind kind = op.info.kind;
    const bool computes = kind == OpKind::pointwise || kind == OpKind::reduce || kind == OpKind::norm ||
                          kind == OpKind::pool || kind == OpKind::matmul || kind == OpKind::conv;
    if (!computes || none.contains(op.info.name) || none.contains(std::string(op.info.name) + ", " + s.name)) return;
    struct Counted : OpObserver {
      void after(const Call& call, int64_t, int64_t) override { flops = cost_of(call).flops; }
      double flops = 0;
    } counted;
    Tensor out[8];
    {
      ObserveScope observe(counted);
      dispatch(op, s.attrs.get(), s.inputs.data(), static_cast<int>(s.inputs.size()), out);
    }
    if (s.inputs[0].numel() > 0) EXPECT_GT(counted.flops, 0);
    ++seen;
  });
  EXPECT_GT(seen, 100);
}

TEST(OpCost, AttentionCountsTheKeysThatAreSeen) {
  const Tensor q = ones({2, 3, 6, 4}), k = ones({2, 3, 5, 4}), v = ones({2, 3, 5, 7});
  const auto forward = [&](bool causal) {
    return operations_of("scaled_dot_product_attention",
                         [&] { scaled_dot_product_attention(q, k, v, {}, {.causal = causal}); });
  };
  EXPECT_DOUBLE_EQ(forward(false), 2.0 * 6 * (6 * 5) * (4 + 7));
  EXPECT_DOUBLE_EQ(forward(true), 2.0 * 6 * (1 + 2 + 3 + 4 + 5 + 5) * (4 + 7));
}

TEST(OpCost, PoolsCountTheElementsInsideTheImage) {
  // Along an axis of 5, windows of 3 at every second place, one of padding: 2, 3 and 2 elements.
  const Tensor x = ones({2, 3, 5, 5});
  const PoolOptions windows{.kernel = {3}, .stride = {2}, .padding = {1}};
  EXPECT_DOUBLE_EQ(operations_of("avg_pool", [&] { avg_pool(x, windows); }), 2.0 * 6 * 7 * 7);
  EXPECT_DOUBLE_EQ(operations_of("avg_pool", [&] { adaptive_avg_pool(x, {2, 1}); }), 2.0 * 6 * (3 + 3) * 5);
}

TEST(OpCost, NormsAndLossesCountTheirFormulas) {
  Tensor x = ones({4, 6}), w = ones({6}), b = zeros({6});
  EXPECT_DOUBLE_EQ(operations_of("layer_norm", [&] { layer_norm(x, {6}); }), 6.0 * 24);
  EXPECT_DOUBLE_EQ(operations_of("layer_norm", [&] { layer_norm(x, {6}, w, b); }), 8.0 * 24);
  EXPECT_DOUBLE_EQ(operations_of("batch_norm", [&] { batch_norm(x, w, b); }), 7.0 * 24);
  EXPECT_DOUBLE_EQ(operations_of("softmax", [&] { softmax(x); }), 5.0 * 24);
  set_requires_grad(x);
  EXPECT_DOUBLE_EQ(operations_of("mse_loss_backward", [&] { backward(mse_loss(x, zeros({4, 6}))); }), 2.0 * 24);
  EXPECT_DOUBLE_EQ(operations_of("softmax_backward", [&] { backward(sum(softmax(x))); }), 4.0 * 24);
}

TEST(OpCost, TheBackwardOfNormsCountsWhatIsAskedOfIt) {
  Tensor x = ones({4, 6}), w = ones({6}), b = zeros({6});
  set_requires_grad(x);
  const auto of = [](const Tensor& y) { return operations_of("layer_norm_backward", [&] { backward(sum(y)); }); };
  EXPECT_DOUBLE_EQ(of(layer_norm(x, {6})), 9.0 * 24);
  EXPECT_DOUBLE_EQ(of(layer_norm(x, {6}, w, b)), 10.0 * 24);
  EXPECT_DOUBLE_EQ(of(rms_norm(x, {6})), 6.0 * 24) << "it has no mean";
  set_requires_grad(w);
  EXPECT_DOUBLE_EQ(of(layer_norm(x, {6}, w, b)), 13.0 * 24);
}

TEST(OpCost, PoolsCountTapsWithinTheImage) {
  Tensor x = ones({1, 2, 4, 4});
  set_requires_grad(x);
  const Pool2dOptions padded{.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}};
  EXPECT_DOUBLE_EQ(operations_of("max_pool2d", [&] { max_pool2d(x, padded); }),
                   2.0 * (2 + 3 + 3 + 2) * (2 + 3 + 3 + 2));
  const InterpolateOptions twice{.scale = {2}, .mode = Resample::linear};
  const Tensor y = interpolate(x, twice);
  // Along one axis after the other: 8 x 4 elements of two, then 8 x 8 of two.
  EXPECT_DOUBLE_EQ(operations_of("resample", [&] { interpolate(x, twice); }), 3.0 * 2 * (32 + 64));
  EXPECT_DOUBLE_EQ(operations_of("resample_backward", [&] { backward(sum(y)); }), 4.0 * 2 * (32 + 64));
}

TEST(OpCost, ShapesAloneAreEnough) {
  const Tensor x = empty({4, 6}, DType::f32, {DeviceType::meta});
  EXPECT_DOUBLE_EQ(operations_of("layer_norm", [&] { layer_norm(x, {6}); }), 6.0 * 24);
}

}  // namespace
}  // namespace tenon::op_costs
