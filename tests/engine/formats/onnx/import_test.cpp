#include "engine/formats/onnx/import.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/pool.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/onnx/export.h"
#include "engine/formats/onnx/importer.h"
#include "engine/formats/onnx/op_layer.h"
#include "engine/formats/onnx/run.h"
#include "engine/graph/graph.h"
#include "engine/model/graph_module.h"
#include "engine/nn/state_dict.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"
#include "engine/templates/templates.h"
#include "tests/engine/formats/onnx/imports.h"
#include "tests/messages.h"

namespace tenon::formats {
namespace {

using namespace testing_import;

TEST(OnnxImport, what_a_template_exports_comes_back_as_layers) {
  for (const Template& t : templates()) {
    SCOPED_TRACE(t.name);
    NoGrad off;
    GraphModule module(t.model);
    module.initialize(3);
    module.eval();
    Shape size = module.input().shape;
    size.insert(0, 31);  // told from other sizes, so that the file takes any batch
    Tensor x = module.input().dtype == DType::i64 ? full(size, 1, DType::i64) : noise(size, 5);
    const auto f = [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{module(in[0])}; };
    OnnxModel onnx;
    try {
      onnx = to_onnx(trace_graph(f, {x}), t.name);
    } catch (const Error&) {
      continue;  // not every template can be exported
    }
    ImportedModel in;
    try {
      in = import_model(onnx, t.name);
    } catch (const OnnxUnsupported& e) {
      EXPECT_NE(e.message().find("there is no layer for"), std::string::npos) << e.message();
      std::printf("%-16s refused: %s\n", t.name.c_str(), e.message().c_str());
      continue;
    }
    EXPECT_LE(distance((*built(in))(x), run_onnx(onnx, {x})[0]), 2e-4);
    std::printf("%-16s %3zu layers of %3d nodes, %d of them OnnxOp\n", t.name.c_str(), in.model.layers.size(),
                static_cast<int>(in.nodes), static_cast<int>(in.op_layers));
    if (t.name == "fashion-cnn" || t.name == "fashion-mlp" || t.name == "resnet18" || t.name == "spirals") {
      EXPECT_EQ(in.op_layers, 0);
    }
  }
}

TEST(OnnxImport, names_are_those_of_the_weights_and_of_the_scopes) {
  Written w({3, 8, 8});
  w.constant("layer1.0.conv1.weight", noise({4, 3, 3, 3}, 1)).constant("onnx::Conv_7", noise({4, 4, 1, 1}, 2));
  w.put("a", "Conv", {"x", "layer1.0.conv1.weight"}, {{"pads", Ints{1, 1, 1, 1}}}, "/layer1/layer1.0/conv1/Conv");
  w.put("b", "Relu", {"a"}, {}, "/layer1/layer1.0/relu/Relu")
      .put("c", "Conv", {"b", "onnx::Conv_7"}, {}, "/layer1/layer1.0/conv2/Conv");
  w.put("d", "Relu", {"c"}, {}, "/layer1/layer1.0/relu/Relu").put("e", "Relu", {"d"}, {}, "");
  const ImportedModel in = imported(w.out("e"), noise({2, 3, 8, 8}, 9));
  Types names;
  for (const LayerSpec& l : in.model.layers) names.push_back(l.name);
  EXPECT_EQ(names,
            (Types{"input", "layer1.0.conv1", "layer1.0.relu", "layer1.0.conv2", "layer1.0.relu_2", "relu", "output"}));
  EXPECT_EQ(in.weights[0].first, "layer1.0.conv1.weight");
}

TEST(OnnxImport, activations_written_as_several_nodes_are_one_layer) {
  const Tensor x = noise({2, 6}, 3);
  const auto number = [](double v) { return scalar(v); };
  for (int order = 0; order < 3; ++order) {
    Written w({6});
    w.constant("s", number(std::sqrt(2.0)))
        .constant("r", number(1 / std::sqrt(2.0)))
        .constant("one", number(1))
        .constant("half", number(0.5));
    if (order == 1)
      w.put("d", "Mul", {"x", "r"});
    else
      w.put("d", "Div", {"x", "s"});
    w.put("e", "Erf", {"d"}).put("p", "Add", {"e", "one"});
    if (order == 2)
      w.put("h", "Mul", {"half", "x"}).put("y", "Mul", {"h", "p"});
    else
      w.put("m", "Mul", {"x", "p"}).put("y", "Mul", {"m", "half"});
    EXPECT_EQ(types(imported(w.out("y"), x)), Types{"GELU"}) << order;
  }
  Written silu({6});
  EXPECT_EQ(types(imported(silu.put("s", "Sigmoid", {"x"}).put("y", "Mul", {"s", "x"}).out("y"), x)), Types{"SiLU"});
  Written hard({6});
  hard.put("s", "HardSigmoid", {"x"}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}).put("y", "Mul", {"x", "s"});
  EXPECT_EQ(types(imported(hard.out("y"), x)), Types{"Hardswish"});
  Written six({6});
  six.constant("lo", number(0)).constant("hi", number(6)).put("y", "Clip", {"x", "lo", "hi"});
  EXPECT_EQ(types(imported(six.out("y"), x)), Types{"ReLU6"});
  // The parts of what is no GELU stay.
  Written other({6});
  other.constant("s", number(1.5)).constant("one", number(1)).put("d", "Div", {"x", "s"}).put("e", "Erf", {"d"});
  other.put("p", "Add", {"e", "one"}).put("y", "Mul", {"x", "p"});
  EXPECT_EQ(types(imported(other.out("y"), x)), (Types{"OnnxOp", "OnnxOp", "OnnxOp", "Mul"}));
}

TEST(OnnxImport, products_take_their_bias_and_turn_their_weights) {
  const Tensor x = noise({2, 5}, 3);
  Written w({5});
  w.constant("a", noise({5, 4}, 1))
      .constant("b", noise({4}, 2))
      .constant("c", noise({3, 4}, 3))
      .constant("d", noise({3}, 4));
  w.put("p", "MatMul", {"x", "a"})
      .put("q", "Add", {"b", "p"})
      .put("y", "Gemm", {"q", "c", "d"}, {{"transB", int64_t{1}}});
  const ImportedModel in = imported(w.out("y"), x);
  EXPECT_EQ(types(in), (Types{"Linear", "Linear"}));
  // A sum that a second reader needs without the bias stays a layer of its own.
  Written two({5});
  two.constant("a", noise({5, 5}, 1)).constant("b", noise({5}, 2));
  two.put("p", "MatMul", {"x", "a"}).put("q", "Add", {"p", "b"}).put("y", "Mul", {"p", "q"});
  EXPECT_EQ(types(imported(two.out("y"), x)), (Types{"Linear", "OnnxOp", "Mul"}));
}

TEST(OnnxImport, windows_norms_and_moves) {
  const Tensor x = noise({2, 4, 9, 9}, 3);
  Written w({4, 9, 9});
  w.constant("k", noise({8, 2, 3, 3}, 1))
      .constant("g", noise({8}, 2))
      .constant("b", noise({8}, 3))
      .constant("m", noise({8}, 4));
  w.constant("v", full({8}, 2)).constant("axes", whole({2, 3})).constant("halves", whole({2, 6}));
  w.put("c", "Conv", {"x", "k"},
        {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}, {"group", int64_t{2}}});
  w.put("n", "BatchNormalization", {"c", "g", "b", "m", "v"}, {{"epsilon", 1e-3}});
  w.put("p", "MaxPool", {"n"}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
  w.put("s", "Split", {"p", "halves"}, {{"axis", int64_t{1}}});
  w.m.graph.nodes.back().outputs.push_back("t");
  w.put("j", "Concat", {"t", "s", "t", "s", "t"}, {{"axis", int64_t{1}}});
  w.put("a", "AveragePool", {"j"}, {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
  w.put("y", "ReduceMean", {"a"}, {{"axes", Ints{2, 3}}, {"keepdims", int64_t{0}}});
  w.m.opset = 17;
  const ImportedModel in = imported(w.out("y"), x);
  EXPECT_EQ(types(in),
            (Types{"Conv2d", "BatchNorm2d", "MaxPool2d", "Narrow", "Narrow", "Concat", "Concat", "AvgPool2d", "Mean"}));
  // An even window that has to keep the size is padded at one end more than at the other.
  Written even({4, 9, 9});
  even.constant("k", noise({2, 4, 2, 2}, 1)).put("y", "Conv", {"x", "k"}, {{"auto_pad", std::string("SAME_UPPER")}});
  EXPECT_EQ(types(imported(even.out("y"), x)), (Types{"ZeroPad2d", "Conv2d"}));
  Written up({4, 9, 9});
  Tensor twice = full({4}, 2);
  twice.data<float>()[0] = twice.data<float>()[1] = 1;
  up.constant("twice", twice).put("y", "Resize", {"x", "", "twice"}, {{"mode", std::string("linear")}});
  EXPECT_EQ(types(imported(up.out("y"), x)), Types{"Upsample"});
}

// A vision transformer's first steps: patches, a class token, positions.
TEST(OnnxImport, sequences_begin_with_their_tokens) {
  for (OnnxDim batch : {OnnxDim{-1, "N"}, OnnxDim{1, ""}}) {
    Written w({3, 8, 8}, false, batch);
    w.constant("k", noise({6, 3, 4, 4}, 1)).constant("shape", whole({batch.value > 0 ? 1 : 0, 6, -1}));
    w.constant("token", noise({1, 1, 6}, 2))
        .constant("rows", noise({1, 5, 6}, 3))
        .constant("first", reshape(whole({0}), {}));
    w.put("c", "Conv", {"x", "k"}, {{"strides", Ints{4, 4}}}).put("r", "Reshape", {"c", "shape"});
    w.put("t", "Transpose", {"r"}, {{"perm", Ints{0, 2, 1}}});
    std::string token = "token";
    if (batch.value < 0) {  // as exporters write expand(batch, -1, -1)
      w.constant("at", whole({0})).constant("rest", whole({1, 6})).put("size", "Shape", {"x"});
      w.put("n", "Gather", {"size", "at"}).put("to", "Concat", {"n", "rest"}, {{"axis", int64_t{0}}});
      w.put("many", "Expand", {"token", "to"});
      token = "many";
    }
    w.put("j", "Concat", {token, "t"}, {{"axis", int64_t{1}}}).put("p", "Add", {"j", "rows"});
    w.put("y", "Gather", {"p", "first"}, {{"axis", int64_t{1}}});
    const ImportedModel in = imported(w.out("y"), noise({1, 3, 8, 8}, 9));
    EXPECT_EQ(types(in), (Types{"Conv2d", "Reshape", "Permute", "LearnedTokens", "LearnedPositions", "Select"}));
    EXPECT_EQ((*built(in))(noise({5, 3, 8, 8}, 1)).size(0), 5) << "any batch";
  }
}

TEST(OnnxImport, tokens_are_looked_up) {
  Written w({5}, true);
  w.constant("table", noise({11, 4}, 1)).constant("g", noise({4}, 2)).constant("b", noise({4}, 3));
  w.put("e", "Gather", {"table", "x"}).put("y", "LayerNormalization", {"e", "g", "b"});
  Tensor x = empty({2, 5}, DType::i64);
  for (int64_t i = 0; i < 10; ++i) x.data<int64_t>()[i] = i;
  EXPECT_EQ(types(imported(w.out("y"), x)), (Types{"Embedding", "LayerNorm"}));
}

TEST(OnnxImport, an_operator_without_a_layer_is_one_and_trains) {
  Written w({6});
  w.constant("scale", noise({6}, 1)).constant("two", scalar(2));
  w.put("a", "Mul", {"x", "scale"})
      .put("b", "Pow", {"a", "two"})
      .put("y", "ReduceSum", {"b"}, {{"keepdims", int64_t{1}}});
  w.constant("axis", whole({1}));
  w.m.graph.nodes.back().inputs.push_back("axis");
  const Tensor x = noise({2, 6}, 4);
  const ImportedModel in = imported(w.out("y"), x);
  EXPECT_EQ(types(in), (Types{"OnnxOp", "OnnxOp", "OnnxOp"}));
  ASSERT_EQ(in.weights.size(), 1u);
  auto module = built(in);
  module->requires_grad_();
  backward(sum((*module)(x)));
  // d/ds sum((x s)^2) = 2 s x^2, over the batch.
  const Tensor s = module->parameters()[0].tensor, want = mul(mul(detach(s), 2.0), sum(square(x), {0}));
  NoGrad off;
  EXPECT_LE(distance(grad_of(s), want), 1e-5);
}

TEST(OnnxImport, what_cannot_be_is_said_operator_by_operator) {
  using testing_words::message_of;
  Written w({6});
  w.put("a", "NonZero", {"x"})
      .put("b", "NonZero", {"x"}, {}, "/n/NonZero")
      .put("c", "Unheard", {"x"})
      .put("d", "Unread", {"x"})  // it makes nothing of the output
      .put("y", "Sum", {"a", "b", "c"});
  const std::string said = message_of([&] { import_model(w.out("y"), "model"); });
  EXPECT_SAYS(said, "NonZero and 1 more: no layer is made for it yet");
  EXPECT_SAYS(said, "Unheard");
  EXPECT_EQ(said.find("Unread"), std::string::npos);
  Written two({6});
  two.m.graph.inputs.push_back({"z", true, DType::f32, true, {{-1, "N"}, {6, ""}}});
  two.put("y", "Add", {"x", "z"});
  EXPECT_SAYS(message_of([&] { import_model(two.out("y"), "model"); }), "it has several inputs (x, z)");
  Written open({6});
  open.m.graph.inputs[0].shape[1] = {-1, "width"};
  open.put("y", "Relu", {"x"});
  EXPECT_SAYS(message_of([&] { import_model(open.out("y"), "model"); }), "leaves sizes of a sample open");
  EXPECT_EQ(types(import_model(open.out("y"), "model", {4})), Types{"ReLU"});
  // Written for one sample alone: the axis of the batch goes into another.
  Written fixed({6}, false, {1, ""});
  fixed.constant("to", whole({2, 3})).put("y", "Reshape", {"x", "to"});
  EXPECT_SAYS(message_of([&] { import_model(fixed.out("y"), "model"); }),
              "does not take a batch of another size than 1");
}

TEST(OnnxImport, a_node_without_inputs_may_stand_before_a_product) {
  Written w({6});
  w.put("c", "Constant", {}, {{"value", noise({6}, 1)}}).put("y", "Mul", {"x", "c"});
  EXPECT_EQ(types(imported(w.out("y"), noise({2, 6}, 2))), Types{"OnnxOp"});
}

TEST(OnnxImport, a_file_from_anywhere_is_refused_before_it_takes_the_memory) {
  using testing_words::message_of;
  Written w({6});
  w.constant("one", noise({1}, 1)).constant("to", whole({1 << 20, 1 << 20, 1 << 20})).put("c", "Expand", {"one", "to"});
  w.put("y", "Mul", {"x", "c"});
  EXPECT_SAYS(message_of([&] { import_model(w.out("y"), "model"); }), "Expand");
  const AllocationLimit bound(1 << 16);
  Written small({6});
  small.constant("to", whole({1 << 15})).put("c", "ConstantOfShape", {"to"}).put("y", "Mul", {"x", "c"});
  EXPECT_SAYS(message_of([&] { import_model(small.out("y"), "model"); }), "65536");
  Written half({6});
  EXPECT_SAYS(message_of([&] { import_model(half.put("y", "Mul", {"x"}).out("y"), "model"); }), "Mul");
}

TEST(OnnxImport, a_long_chain_takes_no_longer_than_its_length) {
  Written w({6});
  std::string last = "x";
  constexpr int kNodes = 3000;
  for (int i = 0; i < kNodes; ++i) {
    const std::string next = "v" + std::to_string(i);
    w.put(next, "Relu", {last}).put(next + "_unread", "Sigmoid", {last});
    last = next;
  }
  EXPECT_EQ(types(import_model(w.out(last), "model")).size(), static_cast<size_t>(kNodes));
}

// The ONNX project's own cases: each becomes layers that give what the model gives, or is refused with a reason.
TEST(OnnxImport, no_case_of_the_onnx_project_is_imported_wrong) {
  namespace fs = std::filesystem;
  const fs::path root = "/usr/share/libonnx-testdata/data";
  if (!fs::exists(root)) GTEST_SKIP() << root << " is not there (Debian: libonnx-testdata)";
  int right = 0, refused = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "model.onnx" || fs::file_size(entry.path()) > (8 << 20)) continue;
    SCOPED_TRACE(entry.path().parent_path().filename());
    NoGrad off;
    try {
      const OnnxModel m = load_onnx(entry.path().string());
      const ImportedModel in = import_model(m, "model");
      auto module = built(in);
      Shape size = module->input().shape;
      const OnnxValue& declared = m.graph.inputs[0];
      size.insert(0, declared.shape[0].value > 0 ? declared.shape[0].value : 2);
      const bool whole_numbers = module->input().dtype == DType::i64;
      const Tensor x = whole_numbers ? full(size, 1, DType::i64) : noise(size, 5);
      const Tensor ours = (*module)(x), theirs = run_onnx(m, {cast(x, declared.dtype)})[0];
      ASSERT_EQ(to_string(ours.size()), to_string(theirs.size()));
      const Tensor a = contiguous(cast(ours, DType::f64)), b = contiguous(cast(theirs, DType::f64));
      for (int64_t i = 0; i < a.numel(); ++i) {
        const double p = a.data<double>()[i], q = b.data<double>()[i];
        ASSERT_TRUE(p == q || (std::isnan(p) && std::isnan(q)) ||
                    std::abs(p - q) <= (in.widened ? 1e-2 : 1e-3) * std::max(1.0, std::abs(q)))
            << "element " << i << ": " << p << ", not " << q;
      }
      ++right;
    } catch (const Error& e) {
      EXPECT_FALSE(e.message().empty());
      ++refused;
    }
  }
  std::printf("%d cases imported, %d refused\n", right, refused);
  EXPECT_GT(right, 250);
}

TEST(OnnxImport, text_of_an_operator_reads_back_and_never_harms) {
  OnnxOpLayer l{
      {"n", "Slice", "", {"a", "b"}, {"y"}, {{"k", Ints{1, -2}}, {"f", 0.5}, {"s", std::string("q")}}}, 13, 0, {}};
  Tensor odd = full({3}, INFINITY, DType::f64);
  odd.data<double>()[1] = NAN;
  l.inputs = {{OnnxOpLayer::Input::Kind::wire},
              {OnnxOpLayer::Input::Kind::constant, whole({1, 2, 3})},
              {},
              {OnnxOpLayer::Input::Kind::parameter, empty({2, 3})},
              {OnnxOpLayer::Input::Kind::constant, odd}};
  const std::string text = l.text();
  EXPECT_EQ(OnnxOpLayer::parse(text).text(), text);
  const Philox random{11, 0};
  uint64_t drawn = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string broken = text;
    for (int k = 0; k < 3; ++k) {
      const uint64_t at = random.below(drawn++, broken.size());
      broken[at] = static_cast<char>(32 + random.below(drawn++, 95));
    }
    try {
      OnnxOpLayer::parse(broken);
    } catch (const Error&) {
    }
  }
}

// Every operator that may be a layer works its sizes out without values: with odd inputs it is refused, and reads no
// memory that is not there.
TEST(OnnxImport, names_and_texts_that_no_project_can_hold_are_refused) {
  const std::string bad = "\xff\xfe";
  Written name({4}), value({4}), attribute({4});
  name.put("y", "Relu", {"x"}, {}, bad);
  value.put(bad, "Relu", {"x"}).put("y", "Relu", {bad});
  attribute.put("y", "Elu", {"x"}, {{"alpha", 1.0}, {"why", bad}});
  for (Written* w : {&name, &value, &attribute}) {
    try {
      import_model(w->out("y"), "bad");
      ADD_FAILURE() << "it is taken";
    } catch (const OnnxUnsupported& e) {
      EXPECT_NE(std::string(e.what()).find("not UTF-8"), std::string::npos) << e.what();
    }
  }
}

TEST(OnnxImport, layers_of_operators_are_tried_without_values) {
  int fit = 0, refused = 0;
  for (const char* op : {"Add",
                         "Cast",
                         "Clip",
                         "Concat",
                         "Conv",
                         "CumSum",
                         "DepthToSpace",
                         "Einsum",
                         "Expand",
                         "Gather",
                         "GatherElements",
                         "Gemm",
                         "GroupNormalization",
                         "InstanceNormalization",
                         "LRN",
                         "MatMul",
                         "MaxPool",
                         "Max",
                         "Pad",
                         "PRelu",
                         "ReduceL2",
                         "ReduceSum",
                         "Reshape",
                         "Slice",
                         "Softmax",
                         "Split",
                         "Squeeze",
                         "Tile",
                         "Trilu",
                         "Unsqueeze",
                         "Where",
                         "BatchNormalization",
                         "LayerNormalization",
                         "ConvTranspose",
                         "AveragePool",
                         "LpNormalization",
                         "Not",
                         "Equal",
                         "Mod",
                         "Pow",
                         "Erf",
                         "Transpose",
                         "Flatten"}) {
    ASSERT_TRUE(may_be_layer({"", op, "", {}, {}, {}})) << op;
    for (int wires = 1; wires <= 5; ++wires)
      for (const Shape& size : {Shape{2, 4, 8, 8}, Shape{2, 4}, Shape{2, 1, 1}, Shape{}}) {
        OnnxOpLayer l{{"", op, "", {}, {"y"}, {}}, 17, 0, {}};
        std::vector<Tensor> in;
        for (int i = 0; i < wires; ++i) {
          l.inputs.push_back({OnnxOpLayer::Input::Kind::wire});
          in.push_back(empty(size, i % 2 ? DType::i64 : DType::f32, {DeviceType::meta}));
        }
        std::vector<Meta> metas;
        for (const Tensor& t : in) metas.push_back(t.meta());
        metas.resize(OnnxOpLayer::kWires);
        in.resize(OnnxOpLayer::kWires);
        try {
          (*make_layer({"l", "OnnxOp", {{"node", l.text()}}}, metas, {DeviceType::meta}))(in);
          ++fit;
        } catch (const Error&) {
          ++refused;
        }
      }
  }
  EXPECT_GT(fit, 60);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tenon::formats
