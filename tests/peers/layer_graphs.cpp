#include "tests/peers/layer_graphs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/state.h"
#include "engine/formats/onnx/export.h"
#include "engine/formats/onnx/run.h"
#include "engine/graph/graph.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/spec/layer_registry.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

using nlohmann::json;

/// The layer's graph; nothing where ONNX has no words for it.
std::optional<formats::OnnxModel> graph_of(nn::Module& module, const std::vector<Tensor>& inputs,
                                           const std::vector<Tensor>& given) {
  std::vector<std::pair<std::string, Tensor>> named;
  for (const nn::Named& n : module.parameters()) named.emplace_back(n.name, n.tensor);
  for (const nn::Named& n : module.buffers()) named.emplace_back(n.name, n.tensor);
  try {
    return formats::to_onnx(trace_graph(
                                [&](const std::vector<Tensor>& args) {
                                  std::vector<Tensor> all = inputs;
                                  size_t k = 0;
                                  for (Tensor& t : all)
                                    if (t) t = args[k++];
                                  return std::vector<Tensor>{module(all)};
                                },
                                given, named),
                            "layer", {.recurrence = formats::Recurrence::steps});
  } catch (const Error&) {  // LayersOnnx tells of those
    return {};
  }
}

}  // namespace

std::vector<LayerGraph> layer_graphs() {
  const NoGrad off;
  std::vector<LayerGraph> all;
  size_t index = 0;
  for (const json& c : read_cases("layers.json")) {
    ++index;
    const LayerInfo* info = find_layer_type(c.at("layer").get<std::string>());
    if (!info || c.contains("parametrize")) continue;
    std::vector<Tensor> inputs, given;
    std::vector<Meta> metas;
    for (const json& j : c.at("inputs")) inputs.push_back(input_of(j, 100 * index + inputs.size()));
    inputs.resize(std::max(inputs.size(), static_cast<size_t>(info->inputs)));
    for (const Tensor& t : inputs) {
      metas.push_back(t ? t.meta() : Meta{});
      if (t) given.push_back(t);
    }
    const auto module = make_layer(spec_of(c), metas, {});
    module->initialize(1, "layer");
    module->eval();
    uint64_t stream = 100 * index + 50;
    for (nn::Named& p : module->parameters()) {
      const Tensor noise = random(p.tensor.size(), stream++, 0.1);
      for (int64_t i = 0; i < noise.numel(); ++i) p.tensor.data<float>()[i] += noise.data<float>()[i];
    }
    auto onnx = graph_of(*module, inputs, given);
    if (!onnx) continue;
    LayerGraph g{c.dump(), std::move(*onnx), {}, given, (*module)(inputs), given.at(0).ndim() ? given[0].size(0) : 1};
    for (const nn::Named& n : module->parameters()) g.state.parameters.emplace_back(n.name, n.tensor);
    for (const nn::Named& n : module->buffers()) g.state.buffers.emplace_back(n.name, n.tensor);
    all.push_back(std::move(g));
  }
  return all;
}

WrittenGraphs written_graphs(const TemporaryFolder& folder, const std::string& ending,
                             const std::function<void(const std::string& path, const LayerGraph& graph)>& write) {
  WrittenGraphs written{{}, json::array()};
  for (LayerGraph& layer : layer_graphs()) {
    SCOPED_TRACE(layer.what);
    const std::string path = folder / (std::to_string(written.graphs.size()) + "." + ending);
    try {
      write(path, layer);
    } catch (const formats::OnnxUnsupported& e) {
      ADD_FAILURE() << "it is refused: " << e.message();
      continue;
    }
    json inputs = json::array();
    for (const Tensor& t : layer.inputs) inputs.push_back(to_json(t));
    written.cases.push_back({{"path", path}, {"inputs", std::move(inputs)}});
    written.graphs.push_back(std::move(layer));
  }
  EXPECT_GT(written.graphs.size(), 150u);
  return written;
}

void expect_state(const LayerGraph& graph, const formats::NamedTensors& theirs, const std::string& prefix) {
  for (const auto* tensors : {&graph.state.parameters, &graph.state.buffers})
    for (const auto& [name, t] : *tensors) EXPECT_EQ(difference(t, find(theirs, prefix + name)), 0) << name;
}

void expect_outputs_of_pytorch(const formats::OnnxModel& model, const formats::NamedTensors& theirs,
                               const std::string& name, bool again) {
  const std::string which = again ? "again" : "output";
  const std::vector<Tensor> ours = formats::run_onnx(model, {find(theirs, name + (again ? " longer" : " input"))});
  ASSERT_FALSE(ours.empty());
  for (size_t k = 0; k < ours.size(); ++k) {
    SCOPED_TRACE(which + " " + std::to_string(k));
    const Tensor& other = find(theirs, name + " " + which + " " + std::to_string(k));
    ASSERT_EQ(ours[k].size(), other.size());
    EXPECT_EQ(ours[k].dtype(), other.dtype());
    EXPECT_LE(apart(ours[k], other), 1e-4);
  }
}

}  // namespace tenon::peers
