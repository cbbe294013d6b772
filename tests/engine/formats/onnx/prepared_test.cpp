#include "engine/formats/onnx/prepared.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "tests/engine/normal_values.h"
#include "tests/engine/same_bits.h"

namespace tenon::formats {
namespace {

using Ints = std::vector<int64_t>;
using testing_values::normal_values;

/// A model that is written node by node, from the input "x".
struct MadeModel {
  OnnxModel m;
  std::vector<std::string> outputs;
  uint64_t drawn = 0;
  int made = 0;

  explicit MadeModel(const Shape& x, bool declared = true) {
    OnnxValue v{"x", true, DType::f32, true, {}};
    for (int i = 0; i < x.n; ++i) v.shape.push_back({declared ? x[i] : -1, ""});
    m.graph.inputs = {v};
  }
  std::string constant(const Tensor& t) {
    m.graph.initializers.emplace_back("c" + std::to_string(made++), t);
    return m.graph.initializers.back().first;
  }
  std::string weights(const Shape& s, double scale = 0.3) {
    Tensor t = normal_values(s, 3, drawn++);
    for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] *= static_cast<float>(scale);
    return constant(t);
  }
  std::string positive(const Shape& s) {
    Tensor t = normal_values(s, 3, drawn++);
    for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = std::abs(t.data<float>()[i]) + 0.5f;
    return constant(t);
  }
  std::string number(float v) { return constant(scalar(v)); }
  std::string node(const char* op, std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes = {}) {
    const std::string out = "v" + std::to_string(made++);
    m.graph.nodes.push_back({out + "_" + op, op, "", std::move(inputs), {out}, std::move(attributes)});
    return out;
  }
  std::string conv(const std::string& x, int64_t oc, int64_t ic, int64_t kh, int64_t kw,
                   std::vector<OnnxAttribute> attributes = {}, int64_t groups = 1) {
    if (groups > 1) attributes.push_back({"group", groups});
    return node("Conv", {x, weights({oc, ic / groups, kh, kw}), weights({oc})}, std::move(attributes));
  }
  std::string gelu(const std::string& x) {
    const std::string e = node("Erf", {node("Div", {x, number(1.4142135f)})});
    return node("Mul", {node("Mul", {x, node("Add", {e, number(1)})}), number(0.5f)});
  }
  OnnxModel done(const std::vector<std::string>& names) {
    for (const std::string& n : names) m.graph.outputs.push_back({n, true, DType::f32, false, {}});
    return m;
  }
};

/// The same numbers as node by node, with so many nodes left, and the same bits at one thread as at three.
void expect_as_unfused(const OnnxModel& m, const Tensor& x, size_t nodes, const std::string& what) {
  SCOPED_TRACE(what);
  const PreparedModel prepared(m);
  EXPECT_EQ(prepared.model().graph.nodes.size(), nodes);
  const std::vector<Tensor> plain = run_onnx(m, {x}), fused = prepared.run_tensors({x});
  set_num_threads(1);
  const std::vector<Tensor> alone = prepared.run_tensors({x});
  set_num_threads(3);
  const std::vector<Tensor> several = prepared.run_tensors({x});
  set_num_threads(0);
  ASSERT_EQ(plain.size(), fused.size());
  for (size_t k = 0; k < plain.size(); ++k) {
    ASSERT_EQ(plain[k].size(), fused[k].size());
    EXPECT_TRUE(fused[k].is_contiguous());
    EXPECT_TRUE(same_bits(alone[k], several[k])) << "threads change output " << k;
    const Tensor a = contiguous(plain[k]);
    double most = 1e-6, apart = 0;
    for (int64_t i = 0; i < a.numel(); ++i) {
      most = std::max(most, std::abs(static_cast<double>(a.data<float>()[i])));
      apart = std::max(apart, std::abs(static_cast<double>(a.data<float>()[i]) - fused[k].data<float>()[i]));
    }
    EXPECT_LT(apart, 1e-5 * most) << "output " << k;
    EXPECT_TRUE(std::isfinite(most));
  }
}

TEST(PreparedModel, convolutions_of_every_form) {
  struct Form {
    const char* what;
    Shape x;
    int64_t oc, kh, kw, groups;
    std::vector<OnnxAttribute> attributes;
  };
  const std::vector<Form> forms = {
      {"3 x 3", {2, 5, 13, 11}, 7, 3, 3, 1, {{"pads", Ints{1, 1, 1, 1}}}},
      {"strided, uneven padding", {1, 3, 17, 10}, 9, 3, 2, 1, {{"strides", Ints{2, 3}}, {"pads", Ints{0, 1, 2, 0}}}},
      {"dilated", {1, 4, 15, 16}, 6, 3, 3, 1, {{"dilations", Ints{2, 3}}, {"pads", Ints{3, 2, 1, 4}}}},
      {"groups", {2, 6, 9, 9}, 9, 3, 3, 3, {{"pads", Ints{1, 1, 1, 1}}}},
      {"a group a channel", {1, 19, 30, 31}, 19, 5, 5, 19, {{"strides", Ints{2, 2}}, {"pads", Ints{2, 2, 2, 2}}}},
      {"one pixel", {3, 10, 7, 5}, 13, 1, 1, 1, {}},
      {"one pixel of an image of one", {1, 70, 1, 1}, 130, 1, 1, 1, {}},
      {"padding wider than the kernel", {1, 3, 5, 5}, 4, 2, 2, 1, {{"pads", Ints{3, 3, 3, 3}}}},
      {"same", {1, 3, 14, 14}, 8, 3, 3, 1, {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}}},
      {"large enough for several pieces", {2, 32, 40, 40}, 64, 3, 3, 1, {{"pads", Ints{1, 1, 1, 1}}}},
      {"pixels in several pieces", {1, 64, 60, 61}, 96, 1, 1, 1, {}},
  };
  for (const Form& f : forms)
    for (const bool declared : {true, false}) {
      MadeModel w(f.x, declared);
      const std::string y = w.node("Relu", {w.conv("x", f.oc, f.x[1], f.kh, f.kw, f.attributes, f.groups)});
      expect_as_unfused(w.done({y}), normal_values(f.x, 1), 1, f.what);
    }
}

TEST(PreparedModel, what_follows_a_convolution_is_part_of_it) {
  const Shape x{2, 6, 11, 9};
  const std::vector<OnnxAttribute> pads = {{"pads", Ints{1, 1, 1, 1}}};
  const std::vector<std::pair<const char*, std::function<std::string(MadeModel&, std::string)>>> tails = {
      {"hard swish", [](MadeModel& w, std::string y) { return w.node("HardSwish", {y}); }},
      {"clip",
       [](MadeModel& w, std::string y) {
         return w.node("Clip", {y, w.number(-0.2f), w.number(0.7f)});
       }},
      {"clip above",
       [](MadeModel& w, std::string y) {
         return w.node("Clip", {y, "", w.number(0.7f)});
       }},
      {"hard sigmoid",
       [](MadeModel& w, std::string y) {
         return w.node("HardSigmoid",
                       {
                           y,
                       },
                       {{"alpha", 0.3}});
       }},
      {"swish",
       [](MadeModel& w, std::string y) {
         return w.node("Mul", {y, w.node("Sigmoid", {y})});
       }},
      {"gelu", [](MadeModel& w, std::string y) { return w.gelu(y); }},
      {"numbers a channel",
       [](MadeModel& w, std::string y) {
         return w.node("Add", {w.node("Mul", {w.weights({8, 1, 1}), y}), w.weights({1, 8, 1, 1})});
       }},
      {"norm",
       [](MadeModel& w, std::string y) {
         return w.node("BatchNormalization", {y, w.weights({8}), w.weights({8}), w.weights({8}), w.positive({8})});
       }},
  };
  for (const auto& [what, tail] : tails) {
    MadeModel w(x);
    const std::string y = tail(w, w.conv("x", 8, 6, 3, 3, pads));
    expect_as_unfused(w.done({y}), normal_values(x, 1), 1, what);
  }
}

TEST(PreparedModel, a_node_says_which_nodes_of_the_file_it_is) {
  MadeModel w({2, 6, 11, 9});
  const std::string y = w.conv("x", 8, 6, 3, 3, {{"pads", Ints{1, 1, 1, 1}}});
  const std::string z =
      w.node("BatchNormalization", {y, w.weights({8}), w.weights({8}), w.weights({8}), w.positive({8})});
  const PreparedModel prepared(w.done({w.node("Relu", {z})}));
  ASSERT_EQ(prepared.model().graph.nodes.size(), 1u);
  EXPECT_EQ(prepared.model().graph.nodes[0].types(), "Conv + BatchNormalization + Relu");
}

TEST(PreparedModel, what_is_added_beside_a_convolution) {
  const Shape x{1, 8, 12, 10};
  const std::vector<OnnxAttribute> pads = {{"pads", Ints{1, 1, 1, 1}}};
  MadeModel w(x);
  const std::string a = w.node("Relu", {w.conv("x", 8, 8, 3, 3, pads)}), b = w.conv(a, 8, 8, 1, 1);
  const std::string y = w.node("Relu", {w.node("Add", {b, a})});
  expect_as_unfused(w.done({y}), normal_values(x, 1), 2, "a shortcut");

  MadeModel two(x);
  const std::string sum = two.node("Add", {two.conv("x", 8, 8, 1, 1), two.conv("x", 8, 8, 3, 3, pads)});
  expect_as_unfused(two.done({two.node("Relu", {sum})}), normal_values(x, 1), 2, "two convolutions are added");

  MadeModel wide(x);  // the other side is broadcast: the nodes stay two
  const std::string gate = wide.node("GlobalAveragePool", {"x"});
  expect_as_unfused(wide.done({wide.node("Mul", {wide.conv("x", 8, 8, 1, 1), gate})}), normal_values(x, 1), 3,
                    "a gate");
}

TEST(PreparedModel, a_value_that_others_read_stays) {
  const Shape x{1, 4, 9, 9};
  const std::vector<OnnxAttribute> pads = {{"pads", Ints{1, 1, 1, 1}}};
  MadeModel w(x);
  const std::string c = w.conv("x", 5, 4, 3, 3, pads), r = w.node("Relu", {c});
  expect_as_unfused(w.done({r, c}), normal_values(x, 1), 2, "an output of the graph");

  MadeModel twice(x);
  const std::string before = twice.conv("x", 5, 4, 3, 3, pads), after = twice.node("Relu", {before});
  const std::string pooled = twice.node("GlobalAveragePool", {before});
  expect_as_unfused(twice.done({after, pooled}), normal_values(x, 1), 3, "two readers");

  MadeModel body(x);
  const std::string seen = body.conv("x", 5, 4, 3, 3, pads), then = body.node("Relu", {seen});
  auto inner = std::make_shared<OnnxGraph>();
  inner->nodes.push_back({"inner", "Neg", "", {seen}, {"inner_y"}, {}});
  inner->outputs = {{"inner_y", true, DType::f32, false, {}}};
  const std::string chosen =
      body.node("If", {body.constant(ones({}, DType::boolean))}, {{"then_branch", inner}, {"else_branch", inner}});
  expect_as_unfused(body.done({then, chosen}), normal_values(x, 1), 3, "a body reads it");
}

TEST(PreparedModel, products) {
  for (const int64_t rows : {1, 3, 50, 200}) {
    MadeModel w({rows, 37});
    std::string y = w.node("Gemm", {"x", w.weights({70, 37}), w.weights({70})}, {{"transB", int64_t{1}}});
    y = w.node("Relu", {y});
    y = w.node("Gemm", {y, w.weights({70, 20}), w.weights({1, 20})});
    y = w.node("MatMul", {y, w.weights({20, 11})});
    y = w.gelu(w.node("Add", {y, w.weights({11})}));
    expect_as_unfused(w.done({y}), normal_values({rows, 37}, 1), 3, std::to_string(rows) + " rows");
  }
  MadeModel deep({2, 40, 256});
  const std::string up = deep.node("MatMul", {"x", deep.weights({256, 700}, 0.05)});
  const std::string down = deep.node("MatMul", {deep.gelu(up), deep.weights({700, 256}, 0.05)});
  expect_as_unfused(deep.done({deep.node("Add", {"x", down})}), normal_values({2, 40, 256}, 1), 2, "columns in pieces");
  MadeModel other({4, 6});
  const std::string scaled = other.node("Gemm", {"x", other.weights({6, 5}), other.weights({5})}, {{"alpha", 0.5}});
  expect_as_unfused(other.done({scaled}), normal_values({4, 6}, 1), 1, "a factor, which stays a Gemm");
}

TEST(PreparedModel, images_keep_their_channels_innermost) {
  const Shape x{2, 8, 13, 14};
  MadeModel w(x);
  const std::string a = w.conv("x", 12, 8, 1, 1), b = w.conv("x", 4, 8, 3, 3, {{"pads", Ints{1, 1, 1, 1}}});
  const std::string joined = w.node("Concat", {a, b}, {{"axis", int64_t{1}}});
  const std::string most = w.node(
      "MaxPool", {joined},
      {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 1}}, {"ceil_mode", int64_t{1}}});
  const std::string with_padding = w.node("AveragePool", {joined},
                                          {{"kernel_shape", Ints{3, 3}},
                                           {"strides", Ints{2, 2}},
                                           {"pads", Ints{1, 1, 0, 0}},
                                           {"count_include_pad", int64_t{1}}});
  const std::string without = w.node(
      "AveragePool", {joined},
      {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}});
  const std::string mean = w.node("ReduceMean", {joined}, {{"axes", Ints{2, 3}}, {"keepdims", int64_t{0}}});
  expect_as_unfused(w.done({most, with_padding, without, mean, w.node("GlobalAveragePool", {joined})}),
                    normal_values(x, 1), 8, "joins and pools");

  MadeModel s({1, 12, 7, 6});
  std::string y = s.conv("x", 12, 12, 1, 1);
  y = s.node("Reshape", {y, s.constant(integers({1, 3, 4, 7, 6}))});
  y = s.node("Transpose", {y}, {{"perm", Ints{0, 2, 1, 3, 4}}});
  y = s.node("Reshape", {y, s.constant(integers({1, 12, 7, 6}))});
  expect_as_unfused(s.done({s.conv(y, 5, 12, 1, 1)}), normal_values({1, 12, 7, 6}, 1), 3, "groups exchanged");

  MadeModel u({2, 6, 5, 4});
  const std::string wider = u.node("ConvTranspose", {u.conv("x", 6, 6, 1, 1), u.weights({6, 9, 2, 3}), u.weights({9})},
                                   {{"strides", Ints{2, 3}}});
  expect_as_unfused(u.done({u.node("Relu", {wider})}), normal_values({2, 6, 5, 4}, 1), 2, "upsampling");
}

TEST(PreparedModel, pointwise_nodes_and_norms_without_a_product) {
  MadeModel w({2, 6, 5, 4});
  std::string y = w.node("BatchNormalization", {"x", w.weights({6}), w.weights({6}), w.weights({6}), w.positive({6})});
  expect_as_unfused(w.done({w.node("Relu", {y})}), normal_values({2, 6, 5, 4}, 1), 1, "a norm");
  MadeModel g({3, 50, 33});
  const std::string normed = g.node("LayerNormalization", {"x", g.weights({33}), g.weights({33})});
  expect_as_unfused(g.done({g.gelu(normed)}), normal_values({3, 50, 33}, 1), 2, "a norm of rows and GELU");
}

TEST(PreparedModel, sizes_that_are_declared_are_constants) {
  MadeModel w({2, 3, 4});
  std::string s = w.node("Shape", {"x"});
  s = w.node("Concat", {w.node("Gather", {s, w.constant(integers({0}))}), w.constant(integers({-1}))},
             {{"axis", int64_t{0}}});
  const OnnxModel m = w.done({w.node("Reshape", {w.node("Identity", {"x"}), s})});
  expect_as_unfused(m, normal_values({2, 3, 4}, 1), 1, "declared");
  // Who gives another size than the declared one gets what the model says of it.
  EXPECT_EQ(PreparedModel(m).run_tensors({normal_values({5, 2, 2}, 1)})[0].size(), (Shape{5, 4}));
}

TEST(PreparedModel, tensors_of_another_type_or_size_run_node_by_node) {
  MadeModel w({2, 3, 6, 6}, false);
  w.m.graph.inputs[0].typed = false;
  const OnnxModel m = w.done({w.node("Relu", {w.conv("x", 4, 3, 3, 3)})});
  const PreparedModel prepared(m);
  try {
    prepared.run_tensors({normal_values({2, 5, 6, 6}, 1)});
    FAIL() << "five channels were taken";
  } catch (const Error& e) {
    EXPECT_TRUE(e.message().starts_with("in Conv 'v2_Conv'")) << e.message();
    EXPECT_EQ(e.message().find("Conv 'v2_Conv'", 5), std::string::npos) << e.message();
  }
}

struct Recurrent {
  const char* type;
  int64_t gates;
  std::vector<OnnxAttribute> attributes;
};

TEST(PreparedModel, recurrent_layers_of_every_form) {
  struct Form {
    const char* what;
    int64_t steps, batch, in, h;
    const char* way;
    bool bias, states, batch_first;
  };
  const std::vector<Form> forms = {
      {"one sequence of a large state", 7, 1, 40, 128, "forward", true, false, false},
      {"two of them, backwards", 5, 2, 24, 128, "reverse", true, true, false},
      {"a batch, both ways", 6, 9, 16, 24, "bidirectional", true, true, true},
      {"small, no bias", 4, 3, 5, 7, "forward", false, false, true},
      {"one step", 1, 1, 8, 200, "forward", true, true, false},
  };
  using Names = std::vector<std::string>;
  for (const Form& f : forms) {
    const int64_t d = std::string(f.way) == "bidirectional" ? 2 : 1;
    const Shape x = f.batch_first ? Shape{f.batch, f.steps, f.in} : Shape{f.steps, f.batch, f.in};
    const Shape state = f.batch_first ? Shape{f.batch, d, f.h} : Shape{d, f.batch, f.h};
    const Names relu(static_cast<size_t>(d), "Relu");
    for (const Recurrent& layer :
         {Recurrent{"LSTM", 4, {}}, Recurrent{"GRU", 3, {{"linear_before_reset", int64_t{1}}}}, Recurrent{"GRU", 3, {}},
          Recurrent{"RNN", 1, {}}, Recurrent{"RNN", 1, {{"activations", relu}}}}) {
      const std::string what = std::string(layer.type) + ": " + f.what;
      const bool lstm = layer.gates == 4;
      const int64_t rows = layer.gates * f.h;
      MadeModel w(x);
      Names inputs{"x", w.weights({d, rows, f.in}, 0.1), w.weights({d, rows, f.h}, 0.1),
                   f.bias ? w.weights({d, 2 * rows}) : "", ""};
      for (int i = 0; i < (lstm ? 2 : 1); ++i) inputs.push_back(f.states ? w.weights(state) : "");
      OnnxNode node{
          "layer",
          layer.type,
          "",
          inputs,
          lstm ? Names{"y", "yh", "yc"} : Names{"y", "yh"},
          {{"hidden_size", f.h}, {"direction", std::string(f.way)}, {"layout", static_cast<int64_t>(f.batch_first)}}};
      node.attributes.insert(node.attributes.end(), layer.attributes.begin(), layer.attributes.end());
      w.m.graph.nodes.push_back(node);
      const OnnxModel m = w.done(node.outputs);
      EXPECT_TRUE(PreparedModel(m).model().graph.nodes.at(0).compiled) << what;
      expect_as_unfused(m, normal_values(x, 5), 1, what.c_str());
    }
  }
}

TEST(PreparedModel, recurrent_layers_with_the_usual_activations_said_are_fused) {
  using Names = std::vector<std::string>;
  MadeModel w({3, 2, 4});
  w.m.graph.nodes.push_back({"layer",
                             "LSTM",
                             "",
                             {"x", w.weights({1, 12, 4}), w.weights({1, 12, 3})},
                             {"y"},
                             {{"hidden_size", int64_t{3}}, {"activations", Names{"Sigmoid", "Tanh", "Tanh"}}}});
  const OnnxModel m = w.done({"y"});
  EXPECT_TRUE(PreparedModel(m).model().graph.nodes.at(0).compiled);
  expect_as_unfused(m, normal_values({3, 2, 4}, 6), 1, "said");
}

TEST(PreparedModel, recurrent_layers_that_are_not_fused_run_as_they_are) {
  using Names = std::vector<std::string>;
  const Shape x{3, 2, 4};
  for (const Recurrent& layer :
       {Recurrent{"LSTM", 4, {{"clip", 0.5}}}, Recurrent{"LSTM", 4, {{"input_forget", int64_t{1}}}},
        Recurrent{"LSTM", 4, {{"activations", Names{"Sigmoid", "Relu", "Tanh"}}}}, Recurrent{"GRU", 3, {{"clip", 0.5}}},
        Recurrent{"GRU", 3, {{"linear_before_reset", int64_t{1}}, {"activations", Names{"HardSigmoid", "Tanh"}}}},
        Recurrent{"RNN", 1, {{"activations", Names{"Softsign"}}}}, Recurrent{"RNN", 1, {{"clip", 0.25}}}}) {
    MadeModel w(x);
    OnnxNode node{"layer", layer.type,
                  "",      {"x", w.weights({1, 3 * layer.gates, 4}), w.weights({1, 3 * layer.gates, 3})},
                  {"y"},   {{"hidden_size", int64_t{3}}}};
    node.attributes.insert(node.attributes.end(), layer.attributes.begin(), layer.attributes.end());
    w.m.graph.nodes.push_back(node);
    const OnnxModel m = w.done({"y"});
    EXPECT_FALSE(PreparedModel(m).model().graph.nodes.at(0).compiled) << layer.type;
    expect_as_unfused(m, normal_values(x, 6), 1, layer.type);
  }
}

}  // namespace
}  // namespace tenon::formats
