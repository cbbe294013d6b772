// C++ artifacts beside our own runner: operator by operator, and layer by layer.
#include "engine/formats/cpp/artifact.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "core/error.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/formats/cpp/kernel.h"
#include "engine/formats/cpp/memory_plan.h"
#include "engine/formats/onnx/export.h"
#include "engine/graph/graph.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"
#include "tests/engine/formats/cpp/artifact_cases.h"
#include "tests/messages.h"

namespace tenon::testing_artifacts {
namespace {

using formats::OnnxAttribute;
using Attributes = std::vector<OnnxAttribute>;
using List = std::vector<int64_t>;

const std::vector<std::string> kStrict = {
    "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"};

/// One operator on inputs and constants: an i64 tensor of one axis without elements stands for one left out.
struct Cases {
  std::vector<ArtifactCase> all;
  struct Given {
    Tensor t;
    bool constant = false;
    Given(Tensor x, bool is_constant = false) : t(std::move(x)), constant(is_constant) {}
  };
  static Given fixed(const Tensor& t) { return {t, true}; }
  static Given fixed(const List& l) { return {integers(l), true}; }
  static Given fixed(double v) { return {scalar(v), true}; }
  static Given none() { return {Tensor(), true}; }

  void add(const std::string& op, const std::vector<Given>& given, const Attributes& attributes = {},
           int64_t opset = 17) {
    ArtifactCase c;
    ModelText m;
    m.model.opset = opset;
    std::vector<std::string> names;
    for (const Given& g : given) {
      names.push_back(g.t ? fmt::format("x{}", names.size()) : "");
      if (!g.t) continue;
      if (g.constant) {
        m.constant(names.back(), g.t);
      } else {
        m.input(names.back(), g.t.dtype(), g.t.size());
        c.inputs.push_back(g.t);
      }
    }
    m.node(op, names, "y", attributes).output("y");
    c.name = fmt::format("{} #{}", op, all.size());
    c.model = m.model;
    all.push_back(std::move(c));
  }
};

Tensor truth(const Shape& size, uint64_t seed) { return cast(numbers(size, seed, 2), DType::boolean); }
Tensor positive(const Shape& size, uint64_t seed) {
  Tensor t = numbers(size, seed);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = 0.1f + t.data<float>()[i] * t.data<float>()[i];
  return t;
}
Tensor within_one(const Shape& size, uint64_t seed) {
  Tensor t = numbers(size, seed);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = std::tanh(t.data<float>()[i]) * 0.95f;
  return t;
}

TEST(Artifact, pointwise_operators) {
  Cases c;
  const Tensor x = numbers({3, 5}, 1), z = numbers({3, 5}, 2);
  for (const char* op : {"Abs",         "Neg",  "Sign",  "Floor", "Ceil",      "Round",    "Reciprocal",
                         "Exp",         "Erf",  "Sin",   "Cos",   "Tan",       "Atan",     "Sinh",
                         "Cosh",        "Tanh", "Asinh", "Relu",  "Sigmoid",   "Softplus", "Softsign",
                         "HardSwish",   "Elu",  "Celu",  "Selu",  "LeakyRelu", "Shrink",   "ThresholdedRelu",
                         "HardSigmoid", "IsNaN"})
    c.add(op, {x});
  for (const char* op : {"Sqrt", "Log"}) c.add(op, {positive({7}, 3)});
  for (const char* op : {"Asin", "Acos", "Atanh"}) c.add(op, {within_one({7}, 3)});
  c.add("Acosh", {full({4}, 1.5)});
  c.add("Mish", {x}, {}, 18);
  c.add("Gelu", {x}, {}, 20);
  c.add("Gelu", {x}, {{"approximate", std::string("tanh")}}, 20);
  c.add("Elu", {x}, {{"alpha", 0.3}});
  c.add("HardSigmoid", {x}, {{"alpha", 0.1}, {"beta", 0.4}});
  for (const char* op : {"Add", "Sub", "Mul", "Div", "PRelu"}) {
    c.add(op, {x, z});
    c.add(op, {x, Cases::fixed(0.25)});
    c.add(op, {numbers({2, 3, 4}, 4), Cases::fixed(numbers({3, 1}, 5))});
  }
  c.add("Add", {numbers({2, 1, 4}, 4), numbers({3, 1}, 5)});
  c.add("Add", {numbers({4, 3}, 4, 9), numbers({4, 3}, 5, 9)});
  c.add("Pow", {positive({6}, 1), numbers({6}, 2)});
  c.add("Pow", {x, Cases::fixed(2.0)});
  c.add("Mod", {numbers({6}, 1, 20), Cases::fixed(List{3})});
  for (const char* op : {"Max", "Min", "Sum"}) {
    c.add(op, {x});
    c.add(op, {x, z, Cases::fixed(0.5), numbers({5}, 8)});
  }
  for (const char* op : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
    c.add(op, {numbers({9}, 1, 3), numbers({9}, 2, 3)});
  for (const char* op : {"And", "Or", "Xor"}) c.add(op, {truth({9}, 1), truth({9}, 2)});
  c.add("Not", {truth({9}, 1)});
  c.add("Where", {truth({3, 1}, 1), x, z});
  c.add("Where", {Cases::fixed(truth({3, 5}, 1)), x, Cases::fixed(-INFINITY)});
  c.add("Clip", {x, Cases::fixed(-0.5), Cases::fixed(0.25)});
  c.add("Clip", {x, Cases::none(), Cases::fixed(0.25)});
  c.add("Clip", {x, Cases::fixed(0.1)});
  c.add("Cast", {numbers({7}, 1, 9)}, {{"to", int64_t{1}}});
  c.add("Cast", {x}, {{"to", int64_t{7}}});
  c.add("Cast", {x}, {{"to", int64_t{9}}});
  c.add("Cast", {truth({5}, 1)}, {{"to", int64_t{1}}});
  expect_same(c.all, kStrict);
}

TEST(Artifact, operators_that_move_elements) {
  Cases c;
  const Tensor x = numbers({2, 3, 4}, 1);
  c.add("Identity", {x});
  c.add("Reshape", {x, Cases::fixed(List{4, -1})});
  c.add("Flatten", {x});
  c.add("Transpose", {x}, {{"perm", List{2, 0, 1}}});
  c.add("Transpose", {x});
  c.add("Squeeze", {numbers({2, 1, 3}, 1), Cases::fixed(List{1})});
  c.add("Unsqueeze", {x, Cases::fixed(List{0, 3})});
  c.add("Expand", {numbers({3, 1}, 1), Cases::fixed(List{2, 3, 4})});
  c.add("Slice", {x, Cases::fixed(List{1}), Cases::fixed(List{3}), Cases::fixed(List{1})});
  c.add("Slice", {x, Cases::fixed(List{1}), Cases::fixed(List{2}), Cases::fixed(List{0})});
  c.add("Slice", {x, Cases::fixed(List{3, 0}), Cases::fixed(List{-100, 3}), Cases::fixed(List{2, 1}),
                  Cases::fixed(List{-1, 2})});
  for (int64_t axis : {0, 1, -1})
    c.add("Concat", {x, numbers({2, 3, 4}, 2), Cases::fixed(numbers({2, 3, 4}, 3))}, {{"axis", axis}});
  for (int64_t axis : {0, 1, 2}) c.add("Gather", {x, numbers({2, 2}, 3, 2)}, {{"axis", axis}});
  c.add("Gather", {Cases::fixed(numbers({9, 4}, 1)), numbers({5}, 2, 9)});
  c.add("Gather", {x, Cases::fixed(List{-1})}, {{"axis", int64_t{1}}});
  c.add("GatherElements", {x, numbers({2, 3, 2}, 3, 4)}, {{"axis", int64_t{2}}});
  c.add("GatherElements", {x, numbers({2, 2, 4}, 3, 3)}, {{"axis", int64_t{1}}});
  c.add("Pad", {x, Cases::fixed(List{0, 1, 2, 1, 0, 3})});
  c.add("Pad", {x, Cases::fixed(List{0, -1, 2, 1, 0, -1}), Cases::fixed(0.5)});
  c.add("Pad", {x, Cases::fixed(List{0, 1, 2, 0, 2, 3})}, {{"mode", std::string("reflect")}});
  c.add("Pad", {x, Cases::fixed(List{1, 1, 2, 0, 4, 3})}, {{"mode", std::string("edge")}});
  c.add("Tile", {x, Cases::fixed(List{2, 1, 3})});
  c.add("DepthToSpace", {numbers({2, 8, 2, 3}, 1)}, {{"blocksize", int64_t{2}}});
  c.add("DepthToSpace", {numbers({2, 8, 2, 3}, 1)}, {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}});
  c.add("SpaceToDepth", {numbers({2, 2, 4, 6}, 1)}, {{"blocksize", int64_t{2}}});
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* place : {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"}) {
      const Attributes how = {{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string(place)}};
      Tensor scales = ones({4});
      scales.data<float>()[2] = 2, scales.data<float>()[3] = 1.5;
      c.add("Resize", {numbers({1, 2, 3, 4}, 1), Cases::none(), Cases::fixed(scales)}, how);
      c.add("Resize", {numbers({1, 2, 6, 4}, 1), Cases::none(), Cases::none(), Cases::fixed(List{1, 2, 3, 7})}, how);
    }
  expect_same(c.all, kStrict);
}

TEST(Artifact, products_and_convolutions) {
  Cases c;
  for (int64_t rows : {1, 4, 7})
    for (int64_t columns : {1, 16, 37}) {
      const int64_t depth = columns == 16 ? 300 : 5;
      const Tensor x = numbers({rows, depth}, 1), w = numbers({columns, depth}, 2);
      c.add("Gemm", {x, Cases::fixed(w), Cases::fixed(numbers({columns}, 3))}, {{"transB", int64_t{1}}});
      c.add("Gemm", {x, Cases::fixed(w)}, {{"transB", int64_t{1}}});
    }
  c.add("Gemm", {numbers({5, 3}, 1), Cases::fixed(numbers({5, 4}, 2)), Cases::fixed(numbers({3, 1}, 3))},
        {{"transA", int64_t{1}}, {"alpha", 0.5}, {"beta", 2.0}});
  c.add("Gemm", {numbers({3, 5}, 1), numbers({5, 4}, 2), numbers({3, 4}, 4)});
  c.add("Gemm", {numbers({3, 5}, 1), numbers({4, 5}, 2)}, {{"transB", int64_t{1}}, {"alpha", 0.5}});
  c.add("MatMul", {numbers({2, 3, 4, 5}, 1), numbers({2, 3, 5, 6}, 2)});
  c.add("MatMul", {numbers({2, 1, 4, 5}, 1), numbers({3, 5, 20}, 2)});
  c.add("MatMul", {numbers({2, 4, 5}, 1), Cases::fixed(numbers({5, 18}, 2))});
  c.add("MatMul", {numbers({2, 4, 5}, 1), Cases::fixed(numbers({2, 5, 18}, 2))});
  c.add("MatMul", {numbers({5}, 1), numbers({2, 5, 3}, 2)});
  c.add("MatMul", {numbers({2, 3, 5}, 1), numbers({5}, 2)});
  c.add("MatMul", {numbers({5}, 1), Cases::fixed(numbers({5}, 2))});

  auto conv = [&](const char* op, const Shape& x, const Shape& w, const Attributes& a, int64_t bias) {
    std::vector<Cases::Given> in = {numbers(x, 1), Cases::fixed(numbers(w, 2))};
    if (bias) in.push_back(Cases::fixed(numbers({bias}, 3)));
    c.add(op, in, a);
  };
  const OnnxAttribute same{"pads", List{1, 1, 1, 1}}, stride{"strides", List{2, 2}}, wide{"dilations", List{2, 2}};
  conv("Conv", {2, 3, 7, 9}, {5, 3, 3, 3}, {same}, 5);
  conv("Conv", {2, 3, 7, 9}, {17, 3, 3, 3}, {same, stride}, 0);
  conv("Conv", {1, 3, 9, 9}, {33, 3, 3, 2}, {same, wide}, 33);
  conv("Conv", {1, 200, 4, 4}, {16, 200, 3, 3}, {same}, 16);
  conv("Conv", {1, 4, 5, 5}, {8, 2, 1, 1}, {{"group", int64_t{2}}}, 8);
  conv("Conv", {2, 6, 5, 8}, {6, 1, 3, 3}, {{"group", int64_t{6}}, same}, 6);
  conv("Conv", {1, 2, 3, 3}, {2, 2, 3, 3}, {{"pads", List{3, 2, 0, 4}}}, 2);
  conv("Conv", {2, 3, 11}, {4, 3, 5}, {{"pads", List{2, 1}}, {"strides", List{3}}}, 4);
  conv("Conv", {1, 2, 4, 5, 6}, {3, 2, 3, 3, 3}, {{"pads", List{1, 1, 1, 1, 1, 1}}, {"strides", List{2, 1, 2}}}, 3);
  conv("ConvTranspose", {2, 3, 4, 5}, {3, 4, 2, 2}, {stride}, 4);
  conv("ConvTranspose", {1, 4, 4, 20}, {4, 2, 3, 3},
       {stride, same, {"group", int64_t{2}}, {"output_padding", List{1, 1}}}, 4);
  conv("ConvTranspose", {1, 2, 5}, {2, 3, 4}, {{"dilations", List{2}}, {"pads", List{1, 2}}}, 0);
  conv("ConvTranspose", {1, 2, 2, 3, 2}, {2, 2, 2, 3, 2}, {{"strides", List{2, 2, 1}}}, 2);
  expect_same(c.all, kStrict);
}

TEST(Artifact, pools_norms_and_reductions) {
  Cases c;
  const Tensor picture = numbers({2, 3, 7, 8}, 1);
  for (const char* op : {"MaxPool", "AveragePool"}) {
    c.add(op, {picture}, {{"kernel_shape", List{2, 2}}, {"strides", List{2, 2}}});
    c.add(op, {picture}, {{"kernel_shape", List{3, 3}}, {"strides", List{2, 2}}, {"pads", List{1, 1, 1, 1}}});
    c.add(op, {picture}, {{"kernel_shape", List{3, 2}}, {"strides", List{2, 3}}, {"ceil_mode", int64_t{1}}});
    c.add(op, {numbers({2, 3, 9}, 1)}, {{"kernel_shape", List{3}}, {"pads", List{1, 0}}});
    c.add(op, {numbers({1, 2, 4, 5, 6}, 1)}, {{"kernel_shape", List{2, 2, 2}}, {"strides", List{2, 2, 2}}});
  }
  c.add("MaxPool", {picture}, {{"kernel_shape", List{2, 2}}, {"dilations", List{2, 3}}});
  c.add("AveragePool", {picture},
        {{"kernel_shape", List{3, 3}}, {"pads", List{1, 1, 1, 1}}, {"count_include_pad", int64_t{1}}});
  c.add("GlobalAveragePool", {picture});
  c.add("GlobalMaxPool", {picture});
  c.add("BatchNormalization", {picture, Cases::fixed(numbers({3}, 2)), Cases::fixed(numbers({3}, 3)),
                               Cases::fixed(numbers({3}, 4)), Cases::fixed(positive({3}, 5))});
  const Tensor x = numbers({2, 3, 10}, 1);
  c.add("LayerNormalization", {x, Cases::fixed(numbers({10}, 2)), Cases::fixed(numbers({10}, 3))},
        {{"axis", int64_t{-1}}});
  c.add("LayerNormalization", {x, Cases::fixed(numbers({3, 10}, 2))}, {{"axis", int64_t{1}}, {"epsilon", 0.01}});
  c.add("InstanceNormalization", {picture, Cases::fixed(numbers({3}, 2)), Cases::fixed(numbers({3}, 3))});
  c.add("GroupNormalization", {numbers({2, 6, 4}, 1), Cases::fixed(numbers({6}, 2)), Cases::fixed(numbers({6}, 3))},
        {{"num_groups", int64_t{3}}}, 21);
  c.add("RMSNormalization", {x, Cases::fixed(numbers({10}, 2))}, {}, 23);
  for (int64_t axis : {0, 1, -1}) {
    c.add("Softmax", {x}, {{"axis", axis}});
    c.add("LogSoftmax", {x}, {{"axis", axis}});
    c.add("ArgMax", {x}, {{"axis", axis}, {"keepdims", int64_t{0}}});
    c.add("ArgMin", {x}, {{"axis", axis}});
    c.add("CumSum", {x, Cases::fixed(List{axis})},
          {{"exclusive", int64_t{axis == 0}}, {"reverse", int64_t{axis == 1}}});
  }
  for (const char* op :
       {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2"}) {
    c.add(op, {x}, {{"axes", List{1}}});
    c.add(op, {x}, {{"axes", List{0, -1}}, {"keepdims", int64_t{0}}});
    c.add(op, {x});
    c.add(op, {x, Cases::fixed(List{2})}, {}, 18);
  }
  c.add("ReduceSum", {x, Cases::fixed(List{1, 2})}, {{"keepdims", int64_t{0}}});
  c.add("ReduceSum", {x});
  c.add("ReduceSum", {numbers({4, 3}, 1, 9), Cases::fixed(List{0})});
  expect_same(c.all, kStrict);
}

/// Values that share memory, are views, go out twice or are read after they were written over.
std::vector<ArtifactCase> memory_cases() {
  std::vector<ArtifactCase> all;
  const Tensor x = numbers({4, 6}, 1);
  auto begin = [&] {
    ModelText m;
    m.input("x", DType::f32, {4, 6});
    return m;
  };
  auto end = [&](const char* name, const ModelText& m) { all.push_back({name, m.model, {x}}); };
  ModelText m = begin();
  m.node("Relu", {"x"}, "a").node("Exp", {"a"}, "b").node("Add", {"a", "b"}, "c").node("Tanh", {"c"}, "y").output("y");
  end("a value that is read again after its first reader", m);
  m = begin();
  m.node("Relu", {"x"}, "a")
      .node("Mul", {"a", "a"}, "b")
      .node("Sub", {"b", "b"}, "c")
      .node("Add", {"c", "x"}, "y")
      .output("y");
  end("both operands are one", m);
  m = begin();
  m.constant("shape", integers({6, 4}))
      .constant("from", integers({1}))
      .constant("to", integers({3}))
      .constant("axis", integers({0}));
  m.node("Exp", {"x"}, "a").node("Slice", {"a", "from", "to", "axis"}, "part").node("Neg", {"a"}, "b");
  m.node("Reshape", {"b", "shape"}, "turned")
      .node("ReduceMean", {"part"}, "mean")
      .node("Add", {"turned", "mean"}, "y")
      .output("y");
  end("a slice that outlives what it was cut of", m);
  m = begin();
  m.node("Neg", {"x"}, "a").node("Exp", {"a"}, "b").output("a").output("b").output("x").output("a");
  end("several outputs, one twice, one an input", m);
  m = begin();
  m.constant("shape", integers({2, 12}))
      .node("Relu", {"x"}, "a")
      .node("Reshape", {"a", "shape"}, "y")
      .node("Neg", {"a"}, "z");
  m.output("y").output("z");
  end("an output that is a view", m);
  m = begin();
  m.constant("w", numbers({6}, 2))
      .node("Exp", {"w"}, "v")
      .node("Add", {"v", "w"}, "u")
      .node("Mul", {"x", "u"}, "y")
      .output("y")
      .output("u");
  end("what needs no input is computed before", m);
  m = begin();
  m.constant("from", integers({0})).constant("to", integers({2})).constant("axis", integers({0}));
  m.node("Exp", {"x"}, "a")
      .node("Slice", {"a", "from", "to", "axis"}, "part")
      .node("Concat", {"part", "part"}, "c", {{"axis", int64_t{0}}});
  m.node("Add", {"a", "c"}, "y").output("y");
  end("a part and the whole are read by different nodes", m);
  return all;
}
TEST(Artifact, memory_is_shared_without_being_written_over) { expect_same(memory_cases(), kStrict); }
TEST(Artifact, weights_in_a_file_of_their_own) {
  std::vector<ArtifactCase> cases = memory_cases();
  Cases c;
  c.add("Gemm", {numbers({4, 30}, 1), Cases::fixed(numbers({17, 30}, 2)), Cases::fixed(numbers({17}, 3))},
        {{"transB", int64_t{1}}});
  c.add("Gather", {Cases::fixed(numbers({9, 4}, 1)), numbers({5}, 2, 9)});
  for (ArtifactCase& more : c.all) cases.push_back(std::move(more));
  expect_same(cases, kStrict, true);
}

TEST(Artifact, an_arena_is_planned_by_lifetimes) {
  ModelText m;
  m.input("x", DType::f32, {1, 100}).constant("axis", integers({1}));
  std::string last = "x";
  for (int i = 0; i < 10; ++i) {
    const std::string a = fmt::format("a{}", i), b = fmt::format("b{}", i);
    m.node("CumSum", {last, "axis"}, a).node("Tanh", {a}, b);
    last = b;
  }
  m.node("CumSum", {last, "axis"}, "y").output("y");
  const formats::Artifact a = formats::write_artifact(m.model, "chain.h", {});
  EXPECT_EQ(a.arena_bytes, 800) << "a sum reads one row and writes another; a tanh stays in its own";
  EXPECT_EQ(a.unshared_bytes, 21 * 400);
  EXPECT_EQ(a.kernels, 2) << "nodes of one kind and size share a function";
  EXPECT_EQ(a.calls, 21);
}

TEST(Artifact, an_index_that_names_no_row_reads_inside) {
  ModelText m;
  m.input("at", DType::i64, {3}).constant("w", numbers({4, 2}, 1)).node("Gather", {"w", "at"}, "y").output("y");
  const std::string source = formats::write_artifact(m.model, "gather.h", {}).source;
  EXPECT_NE(source.find("row = row < 0 ? 0 : row >= rows ? rows - 1 : row;"), std::string::npos) << source;
}

TEST(Artifact, names_become_namespaces) {
  EXPECT_EQ(formats::artifact_name("p-first"), "p_first");
  EXPECT_EQ(formats::artifact_name("3 layers"), "m3_layers");
  EXPECT_EQ(formats::artifact_name("switch"), "switch_");
  EXPECT_EQ(formats::artifact_name("--"), "m");
  EXPECT_EQ(formats::artifact_name("größe"), "gr_e");
}

TEST(Artifact, what_it_cannot_do_is_refused_by_name) {
  auto refusal = [](ModelText& m, const formats::ArtifactOptions& o = {}) {
    return testing_words::message_of([&] { formats::write_artifact(m.model, "m.h", o); });
  };
  ModelText sorted;
  sorted.input("x", DType::f32, {4}).node("NonZero", {"x"}, "y").output("y");
  EXPECT_NE(refusal(sorted).find("NonZero 'NonZero_0' cannot be written as C++: there is no C++ kernel"),
            std::string::npos)
      << refusal(sorted);
  ModelText half;
  half.input("x", DType::f16, {4}).node("Exp", {"x"}, "y").output("y");
  EXPECT_NE(refusal(half).find("f16"), std::string::npos) << refusal(half);
  ModelText open;
  open.input("x", DType::f32, {4, 4}).node("Exp", {"x"}, "y").output("y");
  open.model.graph.inputs[0].shape[1] = {-1, "T"};
  EXPECT_NE(refusal(open).find("leaves a size open"), std::string::npos) << refusal(open);
  EXPECT_NE(refusal(sorted, {.batch = 0}).find("a batch of 0"), std::string::npos);
}

// Every layer that ONNX can express becomes C++.
TEST(Artifact, every_layer) {
  std::vector<ArtifactCase> cases;
  std::map<std::string, std::string> refused;
  const NoGrad off;
  for (const LayerDef& def : layers()) {
    const LayerInfo& info = def.info;
    if (info.inputs == 0 || info.outputs == 0) continue;
    SCOPED_TRACE(info.type);
    std::vector<Tensor> in, given;
    std::vector<Meta> metas;
    for (int i = 0; i < info.inputs; ++i) {
      const auto k = static_cast<size_t>(i);
      const bool left_out = i >= info.inputs - info.optional && k >= info.examples.size();
      const LayerExample e = k < info.examples.size() ? info.examples[k] : LayerExample{{2, 3, 8, 8}};
      const Tensor t = left_out ? Tensor() : numbers(Shape(e.shape), 3 + k, e.dtype == DType::i64 ? e.below : 0);
      in.push_back(t);
      metas.push_back(t ? t.meta() : Meta{});
      if (t) given.push_back(t);
    }
    const auto module = make_layer({"layer", info.type, {}}, metas, {});
    module->initialize(1, "layer");
    module->eval();
    ArtifactCase c{info.type, {}, given};
    try {
      c.model = formats::to_onnx(trace_graph(
                                     [&](const std::vector<Tensor>& args) {
                                       std::vector<Tensor> all = in;
                                       size_t k = 0;
                                       for (Tensor& t : all)
                                         if (t) t = args[k++];
                                       return std::vector<Tensor>{(*module)(all)};
                                     },
                                     given),
                                 info.type, {.recurrence = formats::Recurrence::steps});
    } catch (const Error&) {
      continue;  // ONNX has no words for it: LayersOnnx tells of those
    }
    try {
      formats::write_artifact(c.model, "m.h", {given.at(0).size(0)});
      cases.push_back(std::move(c));
    } catch (const formats::OnnxUnsupported& e) {
      refused[info.type] = e.message();
    }
  }
  std::string list;
  for (const auto& [type, why] : refused) list += "\n  " + type + ": " + why;
  if (std::getenv("TENON_LIST_REFUSED"))
    std::printf("%zu written, %zu refused:%s\n", cases.size(), refused.size(), list.c_str());
  EXPECT_GT(cases.size(), 100u) << list;
  EXPECT_TRUE(refused.empty()) << list;
  expect_same(cases, {"-O1"});
}

}  // namespace
}  // namespace tenon::testing_artifacts
