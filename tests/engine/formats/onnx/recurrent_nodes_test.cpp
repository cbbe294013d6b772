#include "engine/formats/onnx/recurrent_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/onnx/export.h"
#include "engine/formats/onnx/import.h"
#include "engine/formats/onnx/prepared.h"
#include "engine/formats/onnx/run.h"
#include "engine/model/graph_module.h"
#include "engine/nn/module.h"
#include "engine/nn/state_dict.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"
#include "tests/engine/normal_values.h"

namespace tenon::formats {
namespace {

constexpr double kAlike = 1e-5;
const std::vector<std::string> kRecurrent = {"LSTM", "GRU", "RNN"};

Tensor drawn(const Shape& size, uint64_t seed = 1) { return testing_values::normal_values(size, seed, 0); }
int64_t nodes_of(const OnnxModel& m, const std::string& type) {
  return std::ranges::count_if(m.graph.nodes, [&](const OnnxNode& n) { return n.op_type == type; });
}
void expect_alike(const Tensor& ours, const Tensor& theirs) {
  ASSERT_EQ(to_string(ours.size()), to_string(theirs.size()));
  const Tensor apart = contiguous(cast(amax(abs(sub(ours, theirs))), DType::f32));
  EXPECT_LT(item(apart), kAlike);
}
OnnxModel through_its_bytes(const OnnxModel& m) { return parse_onnx(onnx_bytes(m), "net"); }

/// A chain behind an input of [steps, 3].
ModelSpec chain(const std::string& type, std::vector<Attr> attrs, bool head) {
  ModelSpec spec;
  spec.name = "net";
  attrs.push_back({"hidden_size", int64_t{5}});
  spec.layers = {{"input", "Input", {{"shape", std::vector<int64_t>{6, 3}}}}, {"cells", type, attrs}};
  if (head) spec.layers.push_back({"head", "Linear", {{"out_features", int64_t{4}}}});
  spec.layers.push_back({"output", "Output", {}});
  for (size_t i = 1; i < spec.layers.size(); ++i)
    spec.wires.push_back({spec.layers[i - 1].name, 0, spec.layers[i].name, 0});
  return spec;
}

/// The module of a chain on so many steps, with the weights of another one of the same layers.
std::shared_ptr<GraphModule> on_steps(ModelSpec spec, int64_t steps, nn::Module* like = nullptr) {
  spec.layers[0].attrs = {{"shape", std::vector<int64_t>{steps, 3}}};
  auto module = std::make_shared<GraphModule>(spec);
  module->initialize(5);
  NamedTensors state;
  if (like)
    for (const nn::Named& n : like->state_dict()) state.emplace_back(n.name, n.tensor);
  if (like) nn::load_state_dict(*module, state);
  module->train(false);
  return module;
}

struct Ready {
  ModelSpec spec;
  std::shared_ptr<GraphModule> module;
  OnnxModel model;
  explicit Ready(const ModelSpec& given) : spec(given), module(on_steps(given, 6)) {
    const Graph longer = trace_graph(*on_steps(spec, 9, module.get()), {DType::f32, {}, {17, 9, 3}});
    model = through_its_bytes(to_onnx(trace_graph(*module, {DType::f32, {}, {17, 6, 3}}), "net", {.longer = &longer}));
  }
  Tensor run(const Tensor& x) { return (*on_steps(spec, x.size(1), module.get()))(x); }
};

TEST(RecurrentNodes, serve_any_length_and_batch_and_come_back_as_layers) {
  NoGrad off;
  for (const std::string& type : kRecurrent)
    for (const bool both : {false, true})
      for (const int64_t layers : {1, 2})
        for (const char* output : {"sequence", "last"}) {
          SCOPED_TRACE(type + (both ? " both" : " one") + " " + std::to_string(layers) + " " + output);
          Ready r(chain(type,
                        {{"bidirectional", both},
                         {"num_layers", layers},
                         {"output", std::string(output)},
                         {"bias", layers == 2 || !both}},
                        true));
          EXPECT_EQ(nodes_of(r.model, type), layers);
          EXPECT_EQ(nodes_of(r.model, "Sigmoid") + nodes_of(r.model, "Tanh"), 0) << "nothing is written step by step";
          ASSERT_EQ(r.model.graph.inputs[0].shape[1].name, "T");
          for (const auto& [batch, steps] : {std::pair<int64_t, int64_t>{1, 1}, {4, 6}, {3, 13}}) {
            const Tensor x = drawn({batch, steps, 3}), ours = r.run(x);
            expect_alike(ours, run_onnx(r.model, {x})[0]);
            expect_alike(ours, PreparedModel(r.model).run_tensors({x})[0]);
          }
          const ImportedModel back = import_model(r.model, "back", {6, 3});
          EXPECT_EQ(std::ranges::count_if(back.model.layers, [&](const LayerSpec& l) { return l.type == type; }),
                    layers);
          GraphModule again(back.model);
          nn::load_state_dict(again, back.weights);
          again.eval();
          const Tensor x = drawn({2, 6, 3}, 7);
          expect_alike(r.run(x), again(x));
        }
}

TEST(RecurrentNodes, of_relu_and_without_a_bias) {
  NoGrad off;
  Ready r(chain("RNN", {{"nonlinearity", std::string("relu")}, {"bidirectional", true}, {"bias", false}}, false));
  ASSERT_EQ(nodes_of(r.model, "RNN"), 1);
  const Tensor x = drawn({3, 11, 3});
  expect_alike(r.run(x), run_onnx(r.model, {x})[0]);
  const ImportedModel back = import_model(r.model, "back", {6, 3});
  GraphModule again(back.model);
  nn::load_state_dict(again, back.weights);
  again.eval();
  const Tensor six = drawn({3, 6, 3});
  expect_alike(r.run(six), again(six));
}

// Every input of the layers: states to begin with and lengths, steps first or the batch.
TEST(RecurrentNodes, take_states_and_lengths) {
  NoGrad off;
  for (const std::string& type : kRecurrent)
    for (const bool first : {false, true})
      for (const bool both : {false, true})
        for (const bool measured : {false, true}) {
          SCOPED_TRACE(type + (first ? " batch first" : " steps first") + (both ? " both" : " one") +
                       (measured ? " lengths" : ""));
          const int64_t layers = 2, ways = both ? 2 : 1, batch = 3, steps = 5;
          std::vector<Tensor> given = {drawn(first ? Shape{batch, steps, 4} : Shape{steps, batch, 4}, 1),
                                       drawn({layers * ways, batch, 6}, 2)};
          if (type == "LSTM") given.push_back(drawn({layers * ways, batch, 6}, 3));
          if (measured) {
            const Tensor lengths = empty({batch}, DType::i64);
            for (int64_t i = 0; i < batch; ++i) lengths.data<int64_t>()[i] = 1 + 2 * i;
            given.push_back(lengths);
          }
          std::vector<Meta> metas;
          for (const Tensor& t : given) metas.push_back(t.meta());
          metas.resize(type == "LSTM" ? 4 : 3);
          const LayerSpec spec{
              "layer",
              type,
              {{"hidden_size", int64_t{6}}, {"num_layers", layers}, {"bidirectional", both}, {"batch_first", first}}};
          const auto module = make_layer(spec, metas, {});
          module->initialize(1, "layer");
          module->eval();
          const auto f = [&](const std::vector<Tensor>& in) {
            std::vector<Tensor> all = in;
            all.resize(metas.size());
            return std::vector<Tensor>{(*module)(all)};
          };
          const OnnxModel m = through_its_bytes(to_onnx(trace_graph(f, given), "net"));
          EXPECT_EQ(nodes_of(m, type), layers);
          EXPECT_EQ(nodes_of(m, "Sigmoid") + nodes_of(m, "Tanh"), 0);
          expect_alike(f(given)[0], run_onnx(m, given)[0]);
          expect_alike(f(given)[0], PreparedModel(m).run_tensors(given)[0]);
        }
}

TEST(RecurrentNodes, cells_are_nodes_of_one_step) {
  NoGrad off;
  for (const std::string& type : kRecurrent) {
    const Tensor x = drawn({4, 3});
    const LayerSpec spec{"layer", type + "Cell", {{"hidden_size", int64_t{5}}}};
    std::vector<Meta> metas{x.meta(), {}};
    if (type == "LSTM") metas.push_back({});
    const auto module = make_layer(spec, metas, {});
    module->initialize(1, "layer");
    module->eval();
    const auto f = [&](const std::vector<Tensor>& in) {
      std::vector<Tensor> all(metas.size());
      all[0] = in[0];
      return std::vector<Tensor>{(*module)(all)};
    };
    const OnnxModel m = through_its_bytes(to_onnx(trace_graph(f, {x}), "net"));
    EXPECT_EQ(nodes_of(m, type), 1) << type;
    expect_alike(f({x})[0], run_onnx(m, {x})[0]);
  }
}

TEST(RecurrentNodes, a_model_whose_head_counts_the_steps_keeps_their_number) {
  NoGrad off;
  ModelSpec spec = chain("GRU", {}, false);
  spec.layers.insert(spec.layers.begin() + 2, {"flat", "Flatten", {}});
  spec.layers.insert(spec.layers.begin() + 3, {"head", "Linear", {{"out_features", int64_t{2}}}});
  spec.wires = {{"input", 0, "cells", 0}, {"cells", 0, "flat", 0}, {"flat", 0, "head", 0}, {"head", 0, "output", 0}};
  GraphModule module(spec);
  module.initialize(5);
  module.train(false);
  const OnnxModel m = to_onnx(trace_graph(module, {DType::f32, {}, {17, 6, 3}}), "net");
  EXPECT_EQ(nodes_of(m, "GRU"), 1);
  EXPECT_EQ(m.graph.inputs[0].shape[1].value, 6);
  EXPECT_THROW(trace_graph(module, {DType::f32, {}, {17, 9, 3}}), Error);
}

TEST(RecurrentNodes, are_steps_for_readers_of_plain_operators) {
  NoGrad off;
  Ready r(chain("LSTM", {}, true));
  const OnnxModel m =
      to_onnx(trace_graph(*r.module, {DType::f32, {}, {17, 6, 3}}), "net", {.recurrence = Recurrence::steps});
  EXPECT_EQ(nodes_of(m, "LSTM"), 0);
  const Tensor x = drawn({2, 6, 3});
  expect_alike(r.run(x), run_onnx(m, {x})[0]);
}

}  // namespace
}  // namespace tenon::formats
