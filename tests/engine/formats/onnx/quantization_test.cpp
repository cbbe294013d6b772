#include "engine/formats/onnx/quantization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/state.h"
#include "engine/formats/onnx/equal_constants.h"
#include "engine/formats/onnx/export.h"
#include "engine/formats/onnx/integer_plan.h"
#include "engine/formats/onnx/quantization_damage.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/onnx/value_flow.h"
#include "engine/kernels/int8_conv.h"
#include "engine/model/graph_module.h"
#include "engine/ops/create.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/spec/chain.h"
#include "engine/spec/layer_registry.h"
#include "tests/engine/normal_values.h"

namespace tenon::formats {
namespace {

using Ints = std::vector<int64_t>;

Tensor gaussian(const Shape& size, uint64_t seed) { return testing_values::normal_values(size, seed, 1); }
Tensor tokens(const Shape& size) {
  Tensor t = empty(size, DType::i64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<int64_t>()[i] = i * 7 % 40;
  return t;
}

OnnxModel exported(const ModelSpec& spec, const Tensor& x) {
  GraphModule m(spec);
  m.initialize(3);
  const NoGrad off;
  for (int i = 0; i < 3; ++i) m(x);  // norms have statistics of their own now
  m.train(false);
  Meta traced = x.meta();
  traced.shape[0] = 31;
  return to_onnx(trace_graph(m, traced), "net");
}

Attr channels(int64_t n) { return {"out_channels", n}; }
Attr features(int64_t n) { return {"out_features", n}; }
const Attr kThree{"kernel_size", Ints{3, 3}}, kPadded{"padding", Ints{1, 1}};

/// A convolution with a norm, a ReLU and a pool behind it, one whose output is added to, and a linear layer.
ModelSpec images() {
  Chain c("net", {3, 8, 8});
  c.add("conv1", "Conv2d", {channels(8), kThree, kPadded, {"bias", false}})
      .add("bn1", "BatchNorm2d")
      .add("act", "ReLU");
  c.add("pool", "MaxPool2d", {{"kernel_size", Ints{2, 2}}});
  const std::string around = c.here;
  c.add("conv2", "Conv2d", {channels(8), kThree, kPadded});
  c.join("sum", "Add", {c.here, around}).add("act2", "ReLU");
  return c.add("flatten", "Flatten").add("fc", "Linear", {features(10)}).done();
}
ModelSpec texts() {
  Chain c("net", {16}, "i64");
  c.add("embed", "Embedding", {{"num_embeddings", int64_t{40}}, {"embedding_dim", int64_t{32}}});
  c.add("lstm", "LSTM", {{"hidden_size", int64_t{24}}});
  const std::string from = c.here;
  c.add("attention", "MultiheadAttention", {{"num_heads", int64_t{2}}});
  return c.join("add", "Add", {from, c.here}).add("head", "Linear", {features(40)}).done();
}

constexpr Precision kAll[] = {Precision::int8_static, Precision::int8_dynamic, Precision::int8_weights,
                              Precision::int4_weights};

Quantizer ready(const OnnxModel& m, Precision p, const Tensor& x, bool per_channel = true) {
  Quantizer q(m, {.precision = p, .calibration = "minmax", .per_channel = per_channel});
  if (!q.activations().empty()) q.calibrate({x});
  return q;
}
OnnxModel wholly(const Quantizer& q) { return q.quantized(std::vector<bool>(q.layers().size(), true)); }

double snr_of(const OnnxModel& a, const OnnxModel& b, const Tensor& x) {
  return snr_within(a, b, {{a.graph.outputs[0].name}}, {x})[0];
}
std::multiset<std::string> ops_of(const OnnxModel& m) {
  std::multiset<std::string> ops;
  for (const OnnxNode& n : m.graph.nodes) ops.insert(n.op_type);
  return ops;
}
int64_t count_of(const OnnxModel& m, const char* op) { return static_cast<int64_t>(ops_of(m).count(op)); }

TEST(Quantization, every_form_is_near_the_model_and_survives_its_file) {
  const Tensor x = gaussian({9, 3, 8, 8}, 5);
  const OnnxModel m = exported(images(), x);
  const double least[] = {28, 28, 38, 18};
  for (size_t i = 0; i < 4; ++i) {
    const OnnxModel q = wholly(ready(m, kAll[i], x));
    EXPECT_GT(snr_of(m, q, x), least[i]) << name(kAll[i]);
    const OnnxModel back = parse_onnx(onnx_bytes(q), "q");
    EXPECT_EQ(back.graph.four_bit, q.graph.four_bit);
    const Tensor one = run_onnx(q, {x})[0], other = run_onnx(back, {x})[0];
    for (int64_t k = 0; k < one.numel(); ++k)
      EXPECT_EQ(contiguous(one).data<float>()[k], contiguous(other).data<float>()[k]) << name(kAll[i]);
  }
}

TEST(Quantization, a_norm_is_folded_into_its_convolution) {
  const Tensor x = gaussian({9, 3, 8, 8}, 5);
  const OnnxModel m = exported(images(), x);
  const Quantizer q = ready(m, Precision::int8_weights, x);
  EXPECT_EQ(count_of(m, "BatchNormalization"), 1);
  EXPECT_EQ(count_of(q.model(), "BatchNormalization"), 0);
  EXPECT_GT(snr_of(m, q.model(), x), 110) << "the same function but for rounding";
}

TEST(Quantization, static_writes_pairs_round_what_is_read_and_made) {
  const Tensor x = gaussian({9, 3, 8, 8}, 5);
  const Quantizer q = ready(exported(images(), x), Precision::int8_static, x);
  // The input, what the first convolution's ReLU makes, what the second makes, and what the linear layer reads.
  EXPECT_EQ(q.activations().size(), 4u);
  const OnnxModel m = wholly(q);
  // What a copy, the pool and the flattening pass on is told again where it is read, on the grids of what goes in.
  std::multiset<std::string> made_by;
  for (const OnnxNode& n : m.graph.nodes)
    if (n.op_type == "QuantizeLinear") {
      const auto maker = std::find_if(m.graph.nodes.begin(), m.graph.nodes.end(),
                                      [&](const OnnxNode& other) { return other.outputs[0] == n.inputs[0]; });
      made_by.insert(maker == m.graph.nodes.end() ? "x" : maker->op_type);
    }
  EXPECT_EQ(made_by, (std::multiset<std::string>{"Conv", "Identity", "MaxPool", "Relu", "Relu", "Reshape", "x"}));
  EXPECT_EQ(count_of(m, "DequantizeLinear"), 7 + 3 + 3) << "three weights and three biases";
  for (const OnnxNode& n : m.graph.nodes) {
    if (n.op_type != "Conv" && n.op_type != "Gemm") continue;
    EXPECT_TRUE(n.inputs[0].ends_with("_dequantized")) << n.inputs[0];
    EXPECT_TRUE(n.inputs[1].ends_with("_dequantized")) << n.inputs[1];
    EXPECT_TRUE(n.inputs[2].ends_with("_dequantized")) << n.inputs[2];
  }
  EXPECT_EQ(m.graph.outputs[0].name, q.model().graph.outputs[0].name);
  for (const auto& [name, t] : m.graph.initializers)
    EXPECT_TRUE(t.dtype() != DType::f32 || t.numel() <= 10) << name << ": only scales are left in f32";
}

/// Two branches that are summed, joined and averaged between convolutions.
ModelSpec branches() {
  Chain c("net", {3, 8, 8});
  c.add("stem", "Conv2d", {channels(8), kThree, kPadded}).add("act", "ReLU");
  const std::string stem = c.here;
  c.add("one", "Conv2d", {channels(8), kThree, kPadded});
  const std::string sum = c.join("sum", "Add", {c.here, stem}).add("act_sum", "ReLU").here;
  c.add("two", "Conv2d", {channels(4), kThree, kPadded}).join("join", "Concat", {c.here, sum});
  c.add("shrink", "AvgPool2d", {{"kernel_size", Ints{2, 2}}});
  c.add("three", "Conv2d", {channels(6), kThree}).add("act_three", "ReLU");
  return c.add("all", "AdaptiveAvgPool2d", {{"output_size", Ints{1, 1}}})
      .add("flat", "Flatten")
      .add("fc", "Linear", {features(10)})
      .done();
}

TEST(Quantization, sums_joins_and_averages_between_integers_are_integers) {
  const Tensor x = gaussian({64, 3, 8, 8}, 5);
  const OnnxModel f32 = exported(branches(), x);
  const Quantizer q = ready(f32, Precision::int8_static, x);
  const OnnxModel m = wholly(q);
  const ValueFlow flow(m.graph);
  const auto is = [&](int node, const char* type) {
    return node >= 0 && m.graph.nodes[static_cast<size_t>(node)].op_type == type;
  };
  int64_t between = 0;
  for (const OnnxNode& n : m.graph.nodes) {
    if (n.op_type != "Add" && n.op_type != "Concat" && n.op_type != "AveragePool" && n.op_type != "ReduceMean")
      continue;
    ++between;
    for (const std::string& in : n.inputs) EXPECT_TRUE(is(flow.maker(in), "DequantizeLinear")) << n.name << " " << in;
    std::string made = n.outputs[0];
    if (is(static_cast<int>(flow.readers(made).at(0)), "Relu")) made = m.graph.nodes[flow.readers(made)[0]].outputs[0];
    for (size_t reader : flow.readers(made)) EXPECT_EQ(m.graph.nodes[reader].op_type, "QuantizeLinear") << n.name;
  }
  EXPECT_EQ(between, 4) << "a sum, a join, and two averages";
  EXPECT_GT(snr_of(f32, m, x), 24);
  // What is left in f32 has none of them round it.
  std::vector<bool> none(q.layers().size(), false);
  EXPECT_EQ(count_of(q.quantized(none), "QuantizeLinear"), 0);
  none[0] = true;
  const OnnxModel first = q.quantized(none);
  for (const OnnxNode& n : first.graph.nodes) {
    if (n.op_type != "Concat" && n.op_type != "AveragePool") continue;
    EXPECT_FALSE(n.inputs[0].ends_with("_dequantized")) << n.name;
  }
  if (!kernels::has_exact_int8()) return;
  const IntegerPlan plan = integer_plan(m);
  EXPECT_EQ(plan.text(), "integer nodes: 5 of 5 and 1 sum, 1 join, 2 averages");
  EXPECT_GT(snr_of(m, plan.model, x), 24) << "a step here and there";
}

TEST(Quantization, dynamic_multiplies_integers) {
  const Tensor x = gaussian({9, 3, 8, 8}, 5);
  const OnnxModel m = wholly(ready(exported(images(), x), Precision::int8_dynamic, x));
  EXPECT_EQ(count_of(m, "ConvInteger"), 2);
  EXPECT_EQ(count_of(m, "MatMulInteger"), 1);
  EXPECT_EQ(count_of(m, "Conv") + count_of(m, "Gemm"), 0);
}

TEST(Quantization, layers_that_are_read_in_every_step_are_quantized_once) {
  const Tensor x = tokens({6, 16});
  const OnnxModel m = exported(texts(), x);
  for (Precision p : kAll) {
    const Quantizer q = ready(m, p, x);
    std::set<std::string> modules;
    for (const WeightedLayer& l : q.layers()) modules.insert(l.module);
    EXPECT_EQ(modules, (std::set<std::string>{"embed", "lstm", "attention", "attention.out_proj", "head"}));
    EXPECT_EQ(q.layers()[1].weights, 4 * 24 * (32 + 24)) << "read in every step, and counted once";
    const OnnxModel quantized = wholly(q);
    EXPECT_EQ(count_of(quantized, "Gather"), 1);
    EXPECT_EQ(quantized_as(q.nodes()[0], p), Precision::int8_weights) << "a table";
    EXPECT_FALSE(quantized.graph.four_bit.contains("embed.weight_quantized"));
    EXPECT_EQ(quantized.graph.four_bit.contains("head.weight_quantized"), p == Precision::int4_weights);
    EXPECT_GT(snr_of(m, quantized, x), p == Precision::int4_weights ? 12 : 25) << name(p);
    EXPECT_EQ(quantized.opset, p == Precision::int4_weights ? 21 : 17);
    EXPECT_LT(onnx_size(quantized), onnx_size(m)) << name(p);
  }
}

TEST(Quantization, a_recurrent_node_has_its_weights_alone_quantized) {
  OnnxModel m;
  const int64_t in = 6, hidden = 20;
  m.graph.inputs = {{"x", true, DType::f32, true, {{5, ""}, {-1, "N"}, {in, ""}}}};
  m.graph.outputs = {{"y", true, DType::f32, true, {}}};
  m.graph.nodes = {{"n", "LSTM", "", {"x", "cell.w", "cell.r"}, {"y"}, {{"hidden_size", hidden}}}};
  m.graph.initializers = {{"cell.w", gaussian({1, 4 * hidden, in}, 1)},
                          {"cell.r", gaussian({1, 4 * hidden, hidden}, 2)}};
  const Tensor x = gaussian({5, 3, in}, 3);
  for (Precision p : kAll) {
    const OnnxModel q = wholly(ready(m, p, x));
    EXPECT_EQ(count_of(q, "LSTM"), 1);
    EXPECT_EQ(count_of(q, "DequantizeLinear"), 2);
    EXPECT_EQ(count_of(q, "Reshape"), p == Precision::int4_weights ? 2 : 0);
    EXPECT_GT(snr_of(m, q, x), p == Precision::int4_weights ? 12 : 30) << name(p);
  }
}

TEST(Quantization, a_scale_a_channel_is_nearer_than_one_a_weight) {
  const Tensor x = gaussian({9, 3, 8, 8}, 5);
  OnnxModel m = exported(images(), x);
  for (auto& [name, t] : m.graph.initializers)
    if (name == "fc.weight")
      for (int64_t i = 0; i < t.size(1); ++i) t.data<float>()[i] *= 100;
  const double many = snr_of(m, wholly(ready(m, Precision::int8_weights, x)), x);
  const Quantizer one = ready(m, Precision::int8_weights, x, false);
  EXPECT_GE(many, snr_of(m, wholly(one), x));
  for (const OnnxNode& n : wholly(one).graph.nodes)
    EXPECT_TRUE(n.op_type != "DequantizeLinear" || n.find("axis") == nullptr);
}

TEST(Quantization, nodes_that_are_left_compute_what_they_did) {
  const Tensor x = gaussian({9, 3, 8, 8}, 5);
  const Quantizer q = ready(exported(images(), x), Precision::int8_static, x);
  const OnnxModel none = q.quantized({false, false, false});
  EXPECT_EQ(count_of(none, "QuantizeLinear") + count_of(none, "DequantizeLinear"), 0);
  EXPECT_TRUE(std::isinf(snr_of(q.model(), none, x)));
  const OnnxModel last = q.quantized({false, false, true});
  EXPECT_TRUE(std::isinf(snr_within(q.model(), last, layer_outputs(q), {x})[1])) << "before what is quantized";
  EXPECT_LT(snr_of(q.model(), last, x), 80);
}

TEST(Quantization, the_layer_with_the_coarsest_grid_is_the_most_sensitive) {
  const Tensor x = gaussian({9, 3, 8, 8}, 5);
  OnnxModel m = exported(images(), x);
  // A weight a thousand times the others takes the grid of the tensor, though what it reads is always 0.
  for (auto& [name, t] : m.graph.initializers) {
    if (name == "bn1.weight" || name == "bn1.bias") t.data<float>()[4] = 0;
    if (name == "conv2.weight") t.data<float>()[4 * 9] = 1000;
  }
  const Quantizer q = ready(m, Precision::int8_weights, x, false);
  const std::vector<double> alone = sensitivities(q, {x});
  ASSERT_EQ(alone.size(), 3u);
  EXPECT_EQ(q.layers()[least_first(alone)[0]].module, "conv2");
  EXPECT_EQ(least_first({3, 1, 2, 1}), (std::vector<size_t>{1, 3, 2, 0}));
}

TEST(Quantization, constants_that_are_equal_are_written_once) {
  OnnxModel m;
  m.graph.inputs = {{"x", true, DType::f32, true, {{2, ""}}}};
  m.graph.outputs = {{"y", true, DType::f32, true, {{2, ""}}}};
  m.graph.nodes = {{"a", "Add", "", {"x", "one"}, {"h"}, {}}, {"b", "Mul", "", {"h", "other"}, {"y"}, {}}};
  m.graph.initializers = {{"one", full({2}, 3)}, {"other", full({2}, 3)}, {"third", full({1, 2}, 3)}};
  merge_equal_constants(m.graph);
  ASSERT_EQ(m.graph.initializers.size(), 2u) << "another shape is another constant";
  EXPECT_EQ(m.graph.nodes[1].inputs[1], "one");
  EXPECT_EQ(item(sum(run_onnx(m, {full({2}, 1)})[0])), 24);
}

TEST(Quantization, what_cannot_be_is_told) {
  const Tensor x = gaussian({2, 3, 8, 8}, 5);
  const OnnxModel m = exported(images(), x);
  EXPECT_THROW(Quantizer(m, {.precision = Precision::int8_static, .calibration = "median"}), Error);
  EXPECT_THROW(Quantizer(m, {.precision = Precision::int4_weights, .group = 8}), Error);
  EXPECT_THROW(precision_named("int2"), Error);
  for (Precision p : kAll) EXPECT_EQ(precision_named(name(p)), p);
  const OnnxModel bare = exported(Chain("net", {3, 8, 8}).add("act", "ReLU").done(), x);
  EXPECT_THROW(Quantizer(bare, {}), Error);
}

TEST(Quantization, four_bits_are_packed_two_a_byte_and_refuse_more) {
  OnnxModel m;
  m.graph.inputs = {{"x", true, DType::f32, true, {{1, ""}}}};
  m.graph.outputs = {{"y", true, DType::f32, true, {{1, ""}}}};
  m.graph.nodes = {{"n", "Identity", "", {"x"}, {"y"}, {}}};
  Tensor u = empty({5}, DType::u8), s = empty({16}, DType::i8);
  for (int i = 0; i < 5; ++i) u.data<uint8_t>()[i] = static_cast<uint8_t>(15 - i);
  for (int i = 0; i < 16; ++i) s.data<int8_t>()[i] = static_cast<int8_t>(i - 8);
  m.graph.initializers = {{"u", u}, {"s", s}};
  m.graph.four_bit = {"u", "s"};
  const std::string bytes = onnx_bytes(m);
  EXPECT_NE(bytes.find("\xef\xcd\x0b"), std::string::npos) << "15 and 14, 13 and 12, 11 alone";
  const OnnxModel back = parse_onnx(bytes, "m");
  EXPECT_EQ(back.graph.four_bit, m.graph.four_bit);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(back.graph.initializer("u")->data<uint8_t>()[i], 15 - i);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(back.graph.initializer("s")->data<int8_t>()[i], i - 8);
  u.data<uint8_t>()[0] = 16;
  EXPECT_THROW(onnx_bytes(m), Error);
}

}  // namespace
}  // namespace tenon::formats
