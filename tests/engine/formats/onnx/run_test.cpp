#include "engine/formats/onnx/run.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "engine/ops/create.h"
#include "tests/messages.h"

namespace tenon::formats {
namespace {

using testing_words::has;
using testing_words::message_of;

Tensor numbers(std::initializer_list<int64_t> list) {
  Tensor t = empty({static_cast<int64_t>(list.size())}, DType::i64);
  std::copy(list.begin(), list.end(), t.data<int64_t>());
  return t;
}
OnnxValue value(const char* name, DType t = DType::f32) { return {name, true, t, false, {}}; }

/// y = Op(x, ...) with constants behind x.
OnnxModel one(const std::string& op, std::vector<Tensor> constants = {}, std::vector<OnnxAttribute> attributes = {}) {
  OnnxModel m;
  m.graph.inputs = {value("x")};
  m.graph.outputs = {value("y")};
  OnnxNode n{"n", op, "", {"x"}, {"y"}, std::move(attributes)};
  for (size_t i = 0; i < constants.size(); ++i) {
    m.graph.initializers.emplace_back("c" + std::to_string(i), constants[i]);
    n.inputs.push_back("c" + std::to_string(i));
  }
  m.graph.nodes = {n};
  return m;
}

// Sizes are a model's to choose; what they cost is not.
TEST(OnnxRun, absurd_sizes_are_errors) {
  const int64_t huge = int64_t{1} << 31;
  OnnxModel m = one("Expand", {numbers({huge, huge})});
  EXPECT_NE(message_of([&] { run_onnx(m, {scalar(1)}, {.tensor_bytes = 1 << 20}); }), "no error");
  m = one("ConstantOfShape");
  EXPECT_NE(message_of([&] { run_onnx(m, {numbers({huge, huge})}); }), "no error");
  EXPECT_TRUE(has(message_of([&] { run_onnx(m, {numbers({huge})}, {.tensor_bytes = 1 << 20}); }), "bytes"));
  m = one("Pad", {numbers({huge, huge})});
  EXPECT_TRUE(has(message_of([&] { run_onnx(m, {full({2}, 1)}, {.tensor_bytes = 1 << 20}); }), "bytes"));
  m = one("Tile", {numbers({huge})});
  EXPECT_TRUE(has(message_of([&] { run_onnx(m, {full({2}, 1)}, {.tensor_bytes = 1 << 20}); }), "bytes"));
  m = one("Relu");
  EXPECT_EQ(run_onnx(m, {full({1 << 18}, -1)}, {.tensor_bytes = 1 << 20})[0].numel(), 1 << 18) << "what fits is run";
}

TEST(OnnxRun, an_axis_may_be_resized_to_nothing) {
  const Tensor scales = full({4}, 1);
  scales.data<float>()[3] = 0.1f;
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    OnnxModel m = one("Upsample", {scales}, {{"mode", std::string(mode)}});
    m.opset = 9;
    EXPECT_EQ(to_string(run_onnx(m, {full({1, 1, 2, 4}, 1)})[0].size()), "[1, 1, 2, 0]") << mode;
  }
}

TEST(OnnxRun, a_block_whose_square_is_no_number_is_an_error) {
  const OnnxModel m = one("DepthToSpace", {}, {{"blocksize", int64_t{1} << 32}});
  EXPECT_TRUE(has(message_of([&] { run_onnx(m, {full({1, 4, 2, 2}, 1)}); }), "blocks of 4294967296 do not fit"));
}

TEST(OnnxRun, an_input_left_out_is_named) {
  for (const char* op : {"Concat", "Einsum", "SequenceConstruct"}) {
    OnnxModel m = one(op, {}, {{"axis", int64_t{0}}, {"equation", std::string("i,i->i")}});
    m.graph.nodes[0].inputs.push_back("");
    EXPECT_TRUE(has(message_of([&] { run_onnx(m, {full({2}, 1)}); }), "input 1 is missing")) << op;
  }
}

TEST(OnnxRun, a_scalar_has_no_axis_to_squeeze) {
  const OnnxModel m = one("Squeeze", {numbers({0})});
  full({1}, 1);  // behind a scalar's sizes stands what was there before: of this one a size of 1
  EXPECT_TRUE(has(message_of([&] { run_onnx(m, {scalar(1)}); }), "axis 0 of [] has not size 1"));
}

OnnxModel counting_loop() {
  auto body = std::make_shared<OnnxGraph>();
  body->inputs = {value("i", DType::i64), value("go", DType::boolean), value("sum")};
  body->outputs = {value("on", DType::boolean), value("next"), value("seen")};
  body->nodes = {{"", "Identity", "", {"go"}, {"on"}, {}},
                 {"", "Add", "", {"sum", "x"}, {"next"}, {}},
                 {"", "Identity", "", {"sum"}, {"seen"}, {}}};
  OnnxModel m;
  m.graph.inputs = {value("x"), value("trips", DType::i64)};
  m.graph.outputs = {value("last"), value("all")};
  m.graph.nodes = {{"loop", "Loop", "", {"trips", "", "x"}, {"last", "all"}, {{"body", body}}}};
  return m;
}

TEST(OnnxRun, a_loop_carries_and_collects) {
  const OnnxModel m = counting_loop();
  const std::vector<Tensor> out = run_onnx(m, {scalar(2), scalar(3, DType::i64)});
  EXPECT_EQ(item(out[0]), 8);
  ASSERT_EQ(to_string(out[1].size()), "[3]");
  EXPECT_EQ(value_at(out[1], {2}), 6);
  EXPECT_EQ(run_onnx(m, {scalar(2), scalar(0, DType::i64)})[1].numel(), 0);
}

TEST(OnnxRun, a_loop_without_end_is_an_error) {
  const std::string message = message_of([] {
    run_onnx(counting_loop(), {scalar(2), scalar(9e15, DType::i64)}, {.nodes = 1000});
  });
  EXPECT_TRUE(has(message, "more than 1000 nodes")) << message;
}

TEST(OnnxRun, errors_name_the_node_and_what_is_missing) {
  EXPECT_TRUE(has(message_of([] { run_onnx(one("Nonsense"), {scalar(1)}); }),
                  "Nonsense 'n': operator Nonsense is not supported"));
  EXPECT_THROW(run_onnx(one("Nonsense"), {scalar(1)}), OnnxUnsupported);
  EXPECT_TRUE(has(message_of([] { run_onnx(one("Gather"), {full({2}, 1)}); }), "Gather 'n'"));
  const std::string message = message_of([] { run_onnx(one("Gather", {numbers({5})}), {full({2}, 1)}); });
  EXPECT_TRUE(has(message, "index 5 is out of range for axis 0 of size 2")) << message;
  EXPECT_TRUE(has(message_of([] { run_onnx(one("Relu"), {}); }), "needs a value for its input 'x'"));
}

}  // namespace
}  // namespace tenon::formats
