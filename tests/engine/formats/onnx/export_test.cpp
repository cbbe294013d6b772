#include "engine/formats/onnx/export.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/formats/onnx/run.h"
#include "engine/model/graph_module.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon::formats {
namespace {

// A chain of one layer of every registered type that takes images or features.
ModelSpec with(const std::vector<std::pair<std::string, std::vector<Attr>>>& layers) {
  ModelSpec spec;
  spec.name = "net";
  spec.layers.push_back({"input", "Input", {{"shape", std::vector<int64_t>{3, 8, 8}}}});
  for (const auto& [type, attrs] : layers) {
    std::string name = "l" + std::to_string(spec.layers.size());
    spec.wires.push_back({spec.layers.back().name, 0, name, 0});
    spec.layers.push_back({name, type, attrs});
  }
  spec.wires.push_back({spec.layers.back().name, 0, "output", 0});
  spec.layers.push_back({"output", "Output", {}});
  return spec;
}

Tensor values(const Shape& size) {
  Tensor t = empty(size);
  Philox random{3, 4};
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<float>()[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)));
  return t;
}

void expect_same(const ModelSpec& spec) {
  GraphModule m(spec);
  m.initialize(5);
  NoGrad off;
  for (int i = 0; i < 3; ++i) m(values({4, 3, 8, 8}));  // batch normalisation has statistics of its own now
  m.train(false);
  OnnxModel model = parse_onnx(onnx_bytes(to_onnx(trace_graph(m, {DType::f32, {}, {2, 3, 8, 8}}), "net")), "net");
  for (int64_t batch : {int64_t{1}, int64_t{5}}) {  // the batch of the trace is not the model's
    Tensor x = values({batch, 3, 8, 8}), ours = contiguous(m(x)), theirs = contiguous(run_onnx(model, {x})[0]);
    ASSERT_EQ(to_string(ours.size()), to_string(theirs.size()));
    for (int64_t i = 0; i < ours.numel(); ++i)
      ASSERT_NEAR(ours.data<float>()[i], theirs.data<float>()[i], 1e-5 * (1 + std::abs(ours.data<float>()[i])));
  }
}

TEST(OnnxExport, NormalisationDropoutAndPooling) {
  expect_same(with({{"Conv2d", {{"out_channels", int64_t{4}}, {"kernel_size", std::vector<int64_t>{3, 3}}}},
                    {"BatchNorm2d", {}},
                    {"ReLU", {}},
                    {"MaxPool2d", {}},
                    {"Dropout", {}},
                    {"Flatten", {}},
                    {"Linear", {{"out_features", int64_t{6}}}},
                    {"Tanh", {}},
                    {"Linear", {{"out_features", int64_t{3}}}},
                    {"Softmax", {}}}));
}

// One op pools over lines, images and volumes; a file has the operator of the rank that the model has.
TEST(OnnxExport, PoolsHaveTheRankOfWhatTheyPool) {
  const ModelSpec spec = with({{"AvgPool2d", {{"kernel_size", std::vector<int64_t>{2, 2}}}},
                               {"MaxPool2d", {{"padding", std::vector<int64_t>{1, 1}}}},
                               {"Flatten", {}},
                               {"Reshape", {{"shape", std::vector<int64_t>{3, 9}}}},
                               {"AvgPool1d", {}},
                               {"MaxPool1d", {}}});
  expect_same(spec);
  GraphModule m(spec);
  m.initialize(3);
  m.train(false);
  const OnnxModel model = to_onnx(trace_graph(m, {DType::f32, {}, {2, 3, 8, 8}}), "net");
  std::vector<size_t> ranks;
  for (const OnnxNode& n : model.graph.nodes) {
    EXPECT_TRUE(n.op_type != "Unsqueeze" && n.op_type != "Squeeze") << n.name;
    if (n.op_type == "AveragePool" || n.op_type == "MaxPool") ranks.push_back(n.integers("kernel_shape").size());
  }
  EXPECT_EQ(ranks, (std::vector<size_t>{2, 2, 1, 1}));
}

TEST(OnnxExport, NormalisationWithoutScaleAndShift) {
  expect_same(with({{"BatchNorm2d", {{"affine", false}}}, {"ReLU", {}}}));
}

/// [batch, 13]: six steps of two features, and how many of the steps are a sample's own.
ModelSpec padded(const std::string& type, const std::string& output) {
  ModelSpec spec;
  spec.name = "padded";
  const Attr hidden{"hidden_size", int64_t{5}}, out{"output", output}, both{"bidirectional", true};
  spec.layers = {{"input", "Input", {{"shape", std::vector<int64_t>{13}}}},
                 {"values", "Narrow", {{"start", int64_t{0}}, {"length", int64_t{12}}}},
                 {"steps", "Reshape", {{"shape", std::vector<int64_t>{6, 2}}}},
                 {"length", "Select", {{"dim", int64_t{1}}, {"index", int64_t{12}}}},
                 {"whole", "Cast", {{"dtype", std::string("i64")}}},
                 {"cells", type, {hidden, out, both}},
                 {"output", "Output", {}}};
  spec.wires = {{"input", 0, "values", 0}, {"values", 0, "steps", 0}, {"input", 0, "length", 0},
                {"length", 0, "whole", 0}, {"steps", 0, "cells", 0},  {"whole", 0, "cells", type == "LSTM" ? 3 : 2},
                {"cells", 0, "output", 0}};
  return spec;
}

// Each sequence ends where its length says, also one that the trace (zeros) had not, at any batch.
TEST(OnnxExport, SequencesOfSeveralLengths) {
  NoGrad off;
  for (const char* type : {"LSTM", "GRU", "RNN"})
    for (const char* output : {"sequence", "last"}) {
      SCOPED_TRACE(std::string(type) + " " + output);
      GraphModule m(padded(type, output));
      m.initialize(5);
      m.train(false);
      const OnnxModel model = parse_onnx(onnx_bytes(to_onnx(trace_graph(m, {DType::f32, {}, {17, 13}}), "net")), "net");
      for (int64_t batch : {int64_t{1}, int64_t{7}}) {
        const Tensor x = values({batch, 13});
        for (int64_t i = 0; i < batch; ++i) x.data<float>()[13 * i + 12] = static_cast<float>((i + 3) % 7);
        const Tensor ours = contiguous(m(x)), theirs = contiguous(run_onnx(model, {x})[0]);
        ASSERT_EQ(to_string(ours.size()), to_string(theirs.size()));
        for (int64_t i = 0; i < ours.numel(); ++i)
          ASSERT_NEAR(ours.data<float>()[i], theirs.data<float>()[i], 1e-6) << i;
        // What lies beyond a sequence's length is nothing to it.
        const Tensor other = contiguous(mul(x, 1.0));
        for (int64_t i = 0; i < batch; ++i)
          for (int64_t k = 2 * ((i + 3) % 7); k < 12; ++k) other.data<float>()[13 * i + k] = 9;
        const Tensor same = contiguous(m(other));
        for (int64_t i = 0; i < ours.numel(); ++i) ASSERT_EQ(ours.data<float>()[i], same.data<float>()[i]) << i;
      }
    }
}

}  // namespace
}  // namespace tenon::formats
