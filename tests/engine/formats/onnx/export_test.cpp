#include "engine/formats/onnx/export.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "core/state.h"
#include "engine/formats/onnx/run.h"
#include "engine/model/graph_module.h"
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

TEST(OnnxExport, NormalisationWithoutScaleAndShift) {
  expect_same(with({{"BatchNorm2d", {{"affine", false}}}, {"ReLU", {}}}));
}

}  // namespace
}  // namespace tenon::formats
