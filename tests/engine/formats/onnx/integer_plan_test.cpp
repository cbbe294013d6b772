#include "engine/formats/onnx/integer_plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/quant_grid.h"
#include "engine/kernels/int8_conv.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "tests/engine/normal_values.h"

namespace tenon::formats {
namespace {

using Ints = std::vector<int64_t>;
using testing_values::normal_values;

/// A model of one chain of nodes, from "x", as a quantizer writes it.
struct QdqChain {
  OnnxModel m;
  std::string at = "x";
  int made = 0;

  explicit QdqChain(int axes) {
    OnnxValue x{"x", true, DType::f32, true, {}};
    x.shape.resize(static_cast<size_t>(axes));
    m.graph.inputs = {x};
  }
  std::string constant(const Tensor& t) {
    m.graph.initializers.emplace_back("c" + std::to_string(made++), t);
    return m.graph.initializers.back().first;
  }
  void node(const char* op, std::vector<std::string> rest = {}, std::vector<OnnxAttribute> attributes = {}) {
    rest.insert(rest.begin(), at);
    at = "v" + std::to_string(made++);
    m.graph.nodes.push_back({at + "_" + op, op, "", std::move(rest), {at}, std::move(attributes)});
  }
  void grid(float scale, int zero) {
    const std::string s = constant(scalar(scale)), z = constant(scalar(zero, DType::u8));
    node("QuantizeLinear", {s, z});
    node("DequantizeLinear", {s, z});
  }
  /// The weight, dequantized, and with it a bias on the products' scale.
  std::vector<std::string> weights(const Tensor& w, int axis, float scale, bool bias) {
    const QuantizedWeight q = quantize_channels(w, axis);
    const std::string before = at, qs = constant(q.scale);
    const std::vector<OnnxAttribute> along =
        axis < 0 ? std::vector<OnnxAttribute>() : std::vector<OnnxAttribute>{{"axis", int64_t{axis}}};
    at = constant(q.values);
    node("DequantizeLinear", {qs, constant(zeros(q.scale.size(), DType::i8))}, along);
    std::vector<std::string> out{at};
    if (bias) {
      const int64_t channels = w.size(std::max(axis, 0));
      Tensor b = empty({channels}, DType::i32), by = empty({channels});
      for (int64_t c = 0; c < channels; ++c) {
        b.data<int32_t>()[c] = static_cast<int32_t>(137 * (c % 9) - 500);
        by.data<float>()[c] = q.scale.data<float>()[axis < 0 ? 0 : c] * scale;
      }
      at = constant(b);
      node("DequantizeLinear", {constant(by)}, {{"axis", int64_t{0}}});
      out.push_back(at);
    }
    at = before;
    return out;
  }
  OnnxModel done() {
    m.graph.outputs = {{at, true, DType::f32, true, {}}};
    return m;
  }
};

/// At most a step of the last grid apart, and hardly anywhere that; the integers on their own give the same bits at one
/// thread as at two.
void expect_within_a_step(const OnnxModel& m, const Tensor& x, double step, int64_t layers, const std::string& what) {
  const IntegerPlan plan = integer_plan(m);
  ASSERT_EQ(plan.integer, layers) << what << ": " << plan.text();
  const Tensor floats = contiguous(run_onnx(m, {x}).at(0));
  set_num_threads(1);
  const Tensor one = contiguous(run_onnx(plan.model, {x}).at(0));
  set_num_threads(2);
  const Tensor two = contiguous(run_onnx(plan.model, {x}).at(0));
  set_num_threads(0);
  ASSERT_EQ(floats.size(), one.size()) << what;
  int64_t apart = 0;
  for (int64_t i = 0; i < one.numel(); ++i) {
    const double d = std::abs(static_cast<double>(floats.data<float>()[i]) - one.data<float>()[i]);
    ASSERT_LE(d, step * 1.001) << what << " at " << i;
    apart += d > step / 2;
    ASSERT_EQ(one.data<float>()[i], two.data<float>()[i]) << what;
  }
  EXPECT_LE(apart, std::max<int64_t>(1, one.numel() / 200)) << what;
}

struct IntegerPlanTest : ::testing::Test {
  void SetUp() override {
    if (!kernels::has_exact_int8()) GTEST_SKIP() << "the processor has no VNNI";
  }
};

TEST_F(IntegerPlanTest, convolutions_are_within_a_step_of_f32) {
  struct Case {
    const char* what;
    int64_t n, ic, ih, iw, oc, k;
    Ints strides, pads, dilations;
    int64_t groups;
    int zero;
    bool per_channel, relu, to_u8, bias;
  };
  const Case cases[] = {
      {"3 x 3", 2, 16, 9, 9, 32, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 0, true, true, true, true},
      {"of one channel", 3, 1, 28, 28, 32, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 37, true, true, true, true},
      {"odd sizes, a zero in the padding",
       5,
       7,
       11,
       6,
       13,
       3,
       {2, 1},
       {0, 2, 1, 1},
       {1, 1},
       1,
       128,
       true,
       false,
       true,
       true},
      {"dilated", 2, 8, 12, 13, 8, 3, {1, 1}, {2, 2, 2, 2}, {2, 2}, 1, 5, false, true, true, false},
      {"groups", 2, 12, 7, 7, 18, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3, 11, true, false, false, true},
      {"depthwise", 2, 24, 10, 10, 24, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, 24, 0, true, true, true, true},
      {"1 x 1", 9, 33, 5, 4, 17, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, 200, false, true, false, true},
  };
  for (const Case& c : cases) {
    QdqChain chain(4);
    const float step = 0.03f;
    chain.grid(step, c.zero);
    const Tensor w = normal_values({c.oc, c.ic / c.groups, c.k, c.k}, 7);
    chain.node("Conv", chain.weights(w, c.per_channel ? 0 : -1, step, c.bias),
               {{"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}, {"group", c.groups}});
    if (c.relu) chain.node("Relu");
    const float out = 0.11f;
    if (c.to_u8) chain.grid(out, c.relu ? 3 : 120);
    expect_within_a_step(chain.done(), normal_values({c.n, c.ic, c.ih, c.iw}, 9), c.to_u8 ? out : 1e-3, 1, c.what);
  }
}

TEST_F(IntegerPlanTest, convolutions_over_a_line_are_within_a_step_of_f32) {
  struct Case {
    const char* what;
    int64_t n, ic, w, oc, k, stride, dilation, groups;
    Ints pads;
    bool to_u8;
  };
  for (const Case& c : {Case{"three taps", 2, 16, 40, 32, 3, 1, 1, 1, {1, 1}, true},
                        Case{"strides, one side padded", 3, 5, 33, 7, 5, 2, 1, 1, {0, 3}, true},
                        Case{"dilated, to f32", 2, 8, 29, 9, 3, 1, 4, 1, {4, 4}, false},
                        Case{"depthwise", 2, 24, 21, 24, 3, 1, 1, 24, {1, 1}, true}}) {
    QdqChain chain(3);
    chain.grid(0.03f, 93);
    chain.node("Conv", chain.weights(normal_values({c.oc, c.ic / c.groups, c.k}, 7), 0, 0.03f, true),
               {{"strides", Ints{c.stride}}, {"pads", c.pads}, {"dilations", Ints{c.dilation}}, {"group", c.groups}});
    chain.node("Relu");
    const float out = 0.11f;
    if (c.to_u8) chain.grid(out, 3);
    expect_within_a_step(chain.done(), normal_values({c.n, c.ic, c.w}, 9), c.to_u8 ? out : 1e-3, 1, c.what);
  }
}

TEST_F(IntegerPlanTest, residuals_are_added_as_integers) {
  for (const bool relu : {true, false})
    for (const bool pictures : {true, false}) {
      QdqChain chain(pictures ? 4 : 3);
      const auto conv = [&](uint64_t seed) {
        const Shape size = pictures ? Shape{8, 8, 3, 3} : Shape{8, 8, 3};
        chain.node("Conv", chain.weights(normal_values(size, seed), 0, 0.03f, true),
                   {{"pads", pictures ? Ints{1, 1, 1, 1} : Ints{1, 1}}});
      };
      chain.grid(0.03f, 100);
      const std::string shortcut = chain.at;
      conv(1);
      chain.grid(0.2f, 128);
      chain.node("Add", {shortcut});
      if (relu) chain.node("Relu");
      chain.grid(0.15f, relu ? 0 : 120);
      const OnnxModel m = chain.done();
      const IntegerPlan plan = integer_plan(m);
      EXPECT_EQ(plan.sums, 1);
      EXPECT_EQ(plan.text(), "integer nodes: 1 of 1 and 1 sum");
      for (const OnnxNode& n : plan.model.graph.nodes) EXPECT_NE(n.op_type, "Relu");
      // A step of the convolution's grid may be one of the sum's, or two.
      const Shape size = pictures ? Shape{3, 8, 9, 7} : Shape{3, 8, 301};
      expect_within_a_step(m, normal_values(size, 3), 0.3, 1, fmt::format("{} {}", relu, pictures));
    }
}

// Of the same integers the same sum, rounded as f32 is, with sizes that are broadcast.
TEST_F(IntegerPlanTest, a_sum_is_that_of_f32) {
  QdqChain chain(3);
  chain.grid(0.03f, 100);
  const std::string x = chain.at;
  chain.node("MatMul", chain.weights(normal_values({5, 5}, 3), 1, 0.03f, false));
  chain.grid(0.11f, 131);
  const std::string product = chain.at;
  chain.at = x;
  chain.node("ReduceMax", {}, {{"axes", Ints{1}}, {"keepdims", int64_t{1}}});
  chain.grid(0.04f, 55);
  chain.node("Add", {product});
  chain.grid(0.07f, 140);
  chain.m.opset = 17;
  const OnnxModel m = chain.done();
  EXPECT_EQ(integer_plan(m).sums, 1);
  expect_within_a_step(m, normal_values({3, 400, 5}, 3), 0.14, 1, "broadcast");
}

TEST_F(IntegerPlanTest, products_are_within_a_step_of_f32) {
  for (const bool gemm : {true, false})
    for (const bool per_channel : {true, false})
      for (const int64_t rows : {int64_t{1}, int64_t{37}}) {
        QdqChain chain(2);
        chain.grid(0.02f, 90);
        const bool turned = gemm && per_channel;
        const Tensor w = normal_values(turned ? Shape{19, 75} : Shape{75, 19}, 3);
        const int axis = !per_channel ? -1 : turned ? 0 : 1;
        auto rest = chain.weights(w, axis, 0.02f, turned);
        std::vector<OnnxAttribute> attributes;
        if (turned) attributes.push_back({"transB", int64_t{1}});
        chain.node(gemm ? "Gemm" : "MatMul", rest, attributes);
        chain.node("Relu");
        chain.grid(0.05f, 0);
        expect_within_a_step(chain.done(), normal_values({rows, 75}, 5), 0.05, 1,
                             fmt::format("{} {} {}", gemm, per_channel, rows));
      }
}

TEST_F(IntegerPlanTest, a_chain_stays_in_integers_through_its_pools) {
  QdqChain chain(4);
  chain.grid(0.03f, 100);
  chain.node("Conv", chain.weights(normal_values({8, 3, 3, 3}, 1), 0, 0.03f, true), {{"pads", Ints{1, 1, 1, 1}}});
  chain.node("Relu");
  chain.grid(0.04f, 0);
  chain.node(
      "MaxPool", {},
      {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}, {"ceil_mode", int64_t{1}}});
  chain.node("Identity");
  chain.node("Flatten");
  chain.grid(0.04f, 0);
  chain.node("Gemm", chain.weights(normal_values({10, 8 * 5 * 5}, 2), 0, 0.04f, true), {{"transB", int64_t{1}}});
  const OnnxModel m = chain.done();
  const IntegerPlan plan = integer_plan(m);
  std::vector<std::string> ops;
  for (const OnnxNode& n : plan.model.graph.nodes) ops.push_back(n.op_type);
  EXPECT_EQ(ops, (std::vector<std::string>{"QuantizeLinear", "Conv", "MaxPool", "Identity", "Flatten", "Gemm"}));
  EXPECT_EQ(plan.text(), "integer nodes: 2 of 2");
  // A step of the convolution's grid goes through the product.
  const Tensor x = normal_values({4, 3, 9, 9}, 3), floats = contiguous(run_onnx(m, {x}).at(0)),
               ints = contiguous(run_onnx(plan.model, {x}).at(0));
  for (int64_t i = 0; i < floats.numel(); ++i) EXPECT_NEAR(floats.data<float>()[i], ints.data<float>()[i], 0.5) << i;
}

TEST_F(IntegerPlanTest, a_line_stays_in_integers_through_its_pools) {
  QdqChain chain(3);
  chain.grid(0.03f, 100);
  chain.node("Conv", chain.weights(normal_values({8, 3, 3}, 1), 0, 0.03f, true), {{"pads", Ints{1, 1}}});
  chain.node("Relu");
  chain.grid(0.04f, 0);
  chain.node("MaxPool", {},
             {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"pads", Ints{1, 0}}, {"ceil_mode", int64_t{1}}});
  chain.grid(0.04f, 0);
  chain.node("Conv", chain.weights(normal_values({5, 8, 3}, 2), 0, 0.04f, true));
  chain.grid(0.3f, 120);
  const OnnxModel m = chain.done();
  const IntegerPlan plan = integer_plan(m);
  std::vector<std::string> ops;
  for (const OnnxNode& n : plan.model.graph.nodes) ops.push_back(n.op_type);
  EXPECT_EQ(ops, (std::vector<std::string>{"QuantizeLinear", "Conv", "MaxPool", "Conv", "DequantizeLinear"}));
  expect_within_a_step(m, normal_values({4, 3, 23}, 3), 0.6, 2, "a line");
}

// Averages and Concats of integers are those of f32 but for a rounding.
TEST_F(IntegerPlanTest, averages_and_joins_are_those_of_f32) {
  struct Case {
    const char* op;
    std::vector<OnnxAttribute> how;
    Shape size;
  };
  const Case cases[] = {
      {"GlobalAveragePool", {}, {3, 8, 7, 5}},
      {"GlobalAveragePool", {}, {3, 8, 31}},
      {"AveragePool", {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}, {3, 8, 8, 6}},
      {"AveragePool", {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 0, 1}}}, {2, 8, 6, 6}},
      {"AveragePool",
       {{"kernel_shape", Ints{3, 2}}, {"pads", Ints{1, 1, 1, 0}}, {"count_include_pad", int64_t{1}}},
       {2, 8, 6, 6}},
      {"AveragePool", {{"kernel_shape", Ints{4}}, {"strides", Ints{3}}, {"pads", Ints{2, 1}}}, {2, 8, 25}},
      {"Concat", {{"axis", int64_t{1}}}, {2, 8, 6, 6}},
      {"Concat", {{"axis", int64_t{-1}}}, {2, 8, 25}}};
  for (const Case& c : cases) {
    const bool join = std::string(c.op) == "Concat", line = c.size.n == 3;
    QdqChain chain(c.size.n);
    chain.grid(0.03f, 100);
    const std::string x = chain.at;
    chain.node("Conv", chain.weights(normal_values(line ? Shape{8, 8, 1} : Shape{8, 8, 1, 1}, 1), 0, 0.03f, true));
    chain.grid(0.1f, 128);
    chain.node(c.op, join ? std::vector<std::string>{x} : std::vector<std::string>(), c.how);
    const float step = 0.053f;  // no average lies halfway between two of its values
    chain.grid(step, 128);
    const OnnxModel m = chain.done();
    const IntegerPlan plan = integer_plan(m);
    EXPECT_EQ(plan.joins, join) << c.op;
    EXPECT_EQ(plan.averages, !join) << c.op;
    // A step of the convolution's grid is two of the last one.
    expect_within_a_step(m, normal_values(c.size, 3), join ? 0.1 : step, 1, c.op);
  }
}

TEST_F(IntegerPlanTest, what_others_read_is_still_made) {
  QdqChain chain(2);
  chain.grid(0.02f, 90);
  const std::string dequantized = chain.at;
  chain.node("MatMul", chain.weights(normal_values({6, 6}, 3), 1, 0.02f, false));
  const std::string product = chain.at;
  chain.grid(0.05f, 128);
  chain.node("Add", {dequantized});
  chain.node("Add", {product});
  const OnnxModel m = chain.done();
  const IntegerPlan plan = integer_plan(m);
  EXPECT_EQ(plan.integer, 1);
  const Tensor x = normal_values({3, 6}, 3), floats = run_onnx(m, {x}).at(0), ints = run_onnx(plan.model, {x}).at(0);
  for (int64_t i = 0; i < floats.numel(); ++i) EXPECT_NEAR(floats.data<float>()[i], ints.data<float>()[i], 0.051) << i;
}

TEST(IntegerPlan, a_model_that_is_not_quantized_stays_what_it_was) {
  OnnxModel m;
  m.graph.inputs = {{"x", true, DType::f32, true, {{2, ""}, {2, ""}}}};
  m.graph.outputs = {{"y", true, DType::f32, true, {}}};
  m.graph.nodes = {{"n", "MatMul", "", {"x", "w"}, {"y"}, {}}};
  m.graph.initializers = {{"w", full({2, 2}, 3)}};
  const IntegerPlan plan = integer_plan(m);
  EXPECT_EQ(plan.integer, 0);
  EXPECT_EQ(plan.weighted, 1);
  EXPECT_FALSE(plan.why.empty());
  EXPECT_EQ(plan.model.graph.nodes.size(), 1u);
  EXPECT_TRUE(plan.text().starts_with("integer nodes: none of 1, ")) << plan.text();
}

}  // namespace
}  // namespace tenon::formats
