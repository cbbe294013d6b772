#include <gtest/gtest.h>

#include <unistd.h>
#include <cmath>

#include <filesystem>

#include "core/error.h"
#include "core/pool.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/custom_function.h"
#include "engine/autograd/functional.h"
#include "engine/autograd/gradcheck.h"
#include "engine/autograd/node.h"
#include "engine/nn/checkpoint.h"
#include "engine/nn/layers.h"
#include "engine/nn/random_state.h"
#include "engine/op/autocast.h"
#include "engine/op/broadcast_watch.h"
#include "engine/ops/create.h"
#include "engine/ops/layer_norm.h"
#include "engine/ops/loss.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

Tensor scalar_leaf(double value, const Shape& size = {}) {
  Tensor t = full(size, value, DType::f64);
  return set_requires_grad(t);
}
Tensor ramp(const Shape& size, DType dtype = DType::f64) {
  return view(mul(cast(add(arange(size.product()), 1.0), dtype), 0.1), size);
}

/// x^3 with a derivative that is written by hand.
class Cube : public CustomFunction {
 public:
  const char* name() const override { return "cube"; }
  std::vector<Tensor> forward(FunctionContext& c, const std::vector<Tensor>& in) override {
    c.save_for_backward({in[0]});
    return {mul(in[0], mul(in[0], in[0]))};
  }
  std::vector<Tensor> backward(FunctionContext& c, const std::vector<Tensor>& g) override {
    Tensor x = c.saved()[0];
    return {mul(g[0], mul(mul(x, x), 3.0))};
  }
};
/// exp by its own result.
class Exp : public CustomFunction {
 public:
  std::vector<Tensor> forward(FunctionContext& c, const std::vector<Tensor>& in) override {
    Tensor y = exp(in[0]);
    c.save_for_backward({y});
    return {y, neg(y)};
  }
  std::vector<Tensor> backward(FunctionContext& c, const std::vector<Tensor>& g) override {
    Tensor y = c.saved()[0], total;
    if (g[0]) total = mul(g[0], y);
    if (g[1]) total = total ? sub(total, mul(g[1], y)) : neg(mul(g[1], y));
    return {total};
  }
};

TEST(CustomFunction, HasItsOwnGradientAndASecondOne) {
  for (std::shared_ptr<CustomFunction> f : {std::shared_ptr<CustomFunction>(std::make_shared<Cube>()),
                                            std::shared_ptr<CustomFunction>(std::make_shared<Exp>())}) {
    auto call = [&](const std::vector<Tensor>& in) { return apply_function(f, in); };
    Tensor x = ramp({3});
    set_requires_grad(x);
    EXPECT_EQ(gradcheck(call, {x}), "") << f->name();
    EXPECT_EQ(gradgradcheck(call, {x}), "") << f->name();
  }
}

TEST(CustomFunction, AnOverwrittenSavedTensorIsFound) {
  Tensor x = mul(scalar_leaf(2), 1.0);
  Tensor y = apply_function(std::make_shared<Cube>(), {x})[0];
  add_(x, 1.0);
  EXPECT_THROW(backward(y), Error);
}

TEST(CustomFunction, StraightThroughPassesTheGradient) {
  Tensor x = ramp({4});
  set_requires_grad(x);
  Tensor y = straight_through(x, round);
  EXPECT_EQ(value_at(y, {3}), 0);
  backward(sum(mul(y, 3.0)));
  EXPECT_EQ(value_at(grad_of(x), {1}), 3);
}

TEST(Hooks, OfAllFourKindsRunInTheirOrderAndAreRemovable) {
  Tensor x = scalar_leaf(3), y = mul(x, x), z = mul(y, 2.0);
  std::string order;
  int ids[4];
  ids[0] = add_hook(y, [&](const Tensor&) {
    order += "gradient ";
    return Tensor();
  });
  ids[1] = add_node_pre_hook(y, [&](std::vector<Tensor>& out) {
    order += "before ";
    out[0] = mul(out[0], 10.0);
  });
  ids[2] = add_node_hook(y, [&](std::vector<Tensor>& in, const std::vector<Tensor>& out) {
    order += "after" + std::to_string(static_cast<int>(item(out[0]))) + " ";
    in[0] = mul(in[0], 0.5);
  });
  ids[3] = add_leaf_hook(
      x, [&](const Tensor& leaf) { order += "leaf" + std::to_string(static_cast<int>(item(grad_of(leaf)))) + " "; });
  BackwardOptions again;
  again.retain_graph = true;
  backward(z, {}, again);
  EXPECT_EQ(order, "gradient before after20 leaf90 ");  // x gets 3 * 20 * 0.5 from one side, 3 * 20 from the other
  order.clear();
  for (int i = 0; i < 3; ++i) remove_hook(y, ids[i]);
  remove_hook(x, ids[3]);
  zero_grad(x);
  backward(z);
  EXPECT_EQ(order, "");
  EXPECT_EQ(item(grad_of(x)), 12);
}

TEST(Backward, InputsLimitWhereGradientsGo) {
  Tensor a = scalar_leaf(2), b = scalar_leaf(3), middle = mul(a, b);
  BackwardOptions o;
  o.retain_graph = true;
  o.inputs = {a};
  backward(mul(middle, b), {}, o);
  EXPECT_EQ(item(grad_of(a)), 9);
  EXPECT_FALSE(grad_of(b).defined());
  o.inputs = {middle};
  backward(mul(middle, b), {}, o);
  EXPECT_EQ(item(grad_of(middle)), 3);
  EXPECT_EQ(item(grad_of(a)), 9);
}

TEST(SavedTensors, CanBeOffloadedToAFolder) {
  Tensor x = ramp({64, 64}), w = ramp({64, 64});
  set_requires_grad(x);
  set_requires_grad(w);
  auto run = [&](bool create) {
    BackwardOptions o;
    o.create_graph = create;
    return grad({sum(exp(mul(tanh(matmul(x, w)), x)))}, {x, w}, {}, o);
  };
  auto plain = run(true);
  std::string folder =
      (std::filesystem::temp_directory_path() / ("tenon_offload_" + std::to_string(getpid()))).string();
  std::filesystem::create_directory(folder);
  {
    SavedTensorHooks offload(offload_to(folder, 0));
    auto stored = run(true);
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(item(amax(abs(sub(plain[i], stored[i])))), 0);
    EXPECT_TRUE(stored[0].requires_grad());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "the files have no names";
  std::filesystem::remove(folder);
  SavedTensorHooks nowhere(offload_to("/nowhere/at/all", 0));
  EXPECT_THROW(mul(x, w), Error);
}

TEST(Checkpoint, GivesTheSameGradientsForLessMemory) {
  Tensor w = mul(ramp({32, 32}), 1e-3);
  set_requires_grad(w);
  nn::Dropout drop(0.5);
  drop.initialize(1, "drop");
  auto block = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{drop(tanh(matmul(exp(tanh(matmul(in[0], w))), w)))};
  };
  auto run = [&](bool checkpointed, int64_t& held) {
    nn::RandomScope random({7, 3, 0});
    Tensor x = ramp({512, 32}), y = x;
    set_requires_grad(y);
    Tensor first = y;
    int64_t before = pool_stats().live_bytes;
    for (int i = 0; i < 4; ++i) y = checkpointed ? nn::checkpoint(block, {y})[0] : block({y})[0];
    held = pool_stats().live_bytes - before;
    return grad({sum(y)}, {first, w});
  };
  int64_t plain_bytes, saved_bytes;
  auto plain = run(false, plain_bytes), light = run(true, saved_bytes);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(item(amax(abs(sub(plain[i], light[i])))), 0);
  EXPECT_LT(saved_bytes * 2, plain_bytes);
  int64_t unused;
  auto once = run(true, unused);
  EXPECT_EQ(item(amax(abs(sub(once[0], light[0])))), 0);
}

// An op whose gradient is taken through its definition in other ops must find its inputs again.
TEST(Checkpoint, HoldsOpsThatAreDifferentiatedByTheirDefinition) {
  Tensor x = ramp({4, 6}), w = ramp({6}), b = ramp({6});
  for (Tensor* t : {&x, &w, &b}) set_requires_grad(*t);
  auto f = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{tanh(layer_norm(in[0], {6}, in[1], in[2]))};
  };
  auto plain = grad({sum(f({x, w, b})[0])}, {x, w, b}), held = grad({sum(nn::checkpoint(f, {x, w, b})[0])}, {x, w, b});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(item(amax(abs(sub(plain[i], held[i])))), 0);
}

TEST(Checkpoint, IsDifferentiableTwice) {
  auto f = [](const std::vector<Tensor>& in) {
    return nn::checkpoint([](const std::vector<Tensor>& x) { return std::vector<Tensor>{mul(tanh(x[0]), exp(x[0]))}; },
                          in);
  };
  Tensor x = ramp({3});
  set_requires_grad(x);
  EXPECT_EQ(gradcheck(f, {x}), "");
  EXPECT_EQ(gradgradcheck(f, {x}), "");
}

TEST(InferenceMode, ItsResultsCannotJoinAGraph) {
  Tensor x = scalar_leaf(2), y;
  {
    InferenceMode inference;
    y = mul(x, 3.0);
  }
  EXPECT_FALSE(y.requires_grad());
  EXPECT_THROW(mul(x, y), Error);
  EXPECT_EQ(item(mul(x, clone(y))), 12);
}

TEST(Functional, DerivativesOfFunctions) {
  auto f = [](const std::vector<Tensor>& in) { return sum(mul(mul(in[0], in[0]), in[0])); };
  Tensor x = ramp({3}), v = full({3}, 2, DType::f64);
  EXPECT_NEAR(value_at(hessian_vector_product(f, {x}, {v})[0], {2}), 6 * 0.3 * 2, 1e-12);
  Tensor h = hessian([&](const Tensor& t) { return f({t}); }, x);
  EXPECT_NEAR(value_at(h, {1, 1}), 1.2, 1e-12);
  EXPECT_EQ(value_at(h, {0, 1}), 0);
  auto squares = [](const std::vector<Tensor>& in) { return mul(in[0], in[0]); };
  EXPECT_NEAR(value_at(jvp(squares, {x}, {v}), {1}), 0.8, 1e-12);
  EXPECT_NEAR(value_at(vjp(squares, {x}, v)[0], {2}), 1.2, 1e-12);
  EXPECT_NEAR(value_at(jacobian([&](const Tensor& t) { return squares({t}); }, x), {2, 2}), 0.6, 1e-12);
  Tensor w = scalar_leaf(2);
  auto per_sample =
      per_sample_gradients([&](int64_t i) { return square(sub(mul(w, static_cast<double>(i)), 1.0)); }, 3, {w});
  EXPECT_EQ(to_string(per_sample[0].size()), "[3]");
  EXPECT_EQ(value_at(per_sample[0], {2}), 12);
}

TEST(Autocast, PoliciesComeFromTheDefinitions) {
  Tensor x = ramp({4, 8}, DType::f32), w = ramp({8, 4}, DType::f32);
  set_requires_grad(w);
  Tensor y, s, e;
  {
    AutocastScope bf16(DType::bf16);
    y = matmul(x, w);
    s = sum(y);
    e = exp(y);
    AutocastScope off(DType::bf16, false);
    EXPECT_EQ(matmul(x, w).dtype(), DType::f32);
  }
  EXPECT_EQ(y.dtype(), DType::bf16);
  EXPECT_EQ(s.dtype(), DType::f32);
  EXPECT_EQ(e.dtype(), DType::bf16);
  backward(s);
  EXPECT_EQ(grad_of(w).dtype(), DType::f32);
  EXPECT_NEAR(item(s), item(sum(matmul(x, w))), 0.5);  // 375 from products of 8 bits
  EXPECT_THROW(AutocastScope(DType::f64), Error);
}

TEST(Halves, OpsWithoutAHalfFormRunInSingle) {
  Tensor x = cast(ramp({4, 8}, DType::f32), DType::f16), w = cast(ramp({8, 4}, DType::f32), DType::f16);
  Tensor y = matmul(x, w), wide = matmul(cast(x, DType::f32), cast(w, DType::f32));
  EXPECT_EQ(y.dtype(), DType::f16);
  EXPECT_EQ(item(amax(abs(sub(y, cast(wide, DType::f16))))), 0);
  set_requires_grad(x);
  backward(sum(softmax(x, -1)));
  EXPECT_EQ(grad_of(x).dtype(), DType::f16);
}

TEST(Out, FormsWriteIntoWhatIsGiven) {
  Tensor a = ramp({3, 4}), b = ramp({4}), out = zeros({3, 4}, DType::f64), narrow = zeros({3, 4});
  add_out(out, a, b);
  EXPECT_EQ(item(amax(abs(sub(out, add(a, b))))), 0);
  exp_out(narrow, a);
  EXPECT_NEAR(value_at(narrow, {2, 3}), std::exp(1.2), 1e-6);
  Tensor shifted = slice(view(out, {12}), 0, 1, 12), from = slice(view(out, {12}), 0, 0, 11), want = add(from, 1.0);
  add_out(shifted, from, ones({1}, DType::f64));
  EXPECT_EQ(item(amax(abs(sub(shifted, want)))), 0) << "operands that share memory with the result";
  Tensor wrong = zeros({2}, DType::f64);
  EXPECT_THROW(add_out(wrong, a, b), Error);
  set_requires_grad(a);
  EXPECT_THROW(add_out(out, a, b), Error);
}

TEST(BroadcastWatch, NamesTheRuleThatIsBroken) {
  BroadcastWatch watch;
  Tensor p = zeros({64, 1}), t = zeros({64});
  sub(p, t);
  sub(p, t);
  ASSERT_EQ(watch.warnings().size(), 1u);
  EXPECT_NE(to_string(watch.warnings()[0]).find("sub: (64, 1) against (64) gives (64, 64): both sides grow"),
            std::string::npos)
      << to_string(watch.warnings()[0]);
  add(zeros({8, 8}), zeros({8}));
  EXPECT_EQ(watch.warnings().size(), 2u);
  add(zeros({8, 16}), zeros({16}));            // a bias
  mul(zeros({2, 8, 4, 4}), zeros({8, 1, 1}));  // a scale a channel
  add(zeros({3, 1}), zeros({1, 5}));           // an outer sum of different sizes is meant
  mul(zeros({5}), 2.0);
  EXPECT_EQ(watch.warnings().size(), 2u);
}

}  // namespace
}  // namespace tenon
