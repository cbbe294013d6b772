// The layers of layers.json as programs of TorchScript, run by PyTorch: what ONNX can express gives the same numbers
// there, under the same names.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/state.h"
#include "engine/formats/onnx/export.h"
#include "engine/formats/torchscript/script.h"
#include "engine/graph/graph.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/spec/layer_registry.h"
#include "tests/peers/cases.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

using nlohmann::json;

struct Program {
  std::string what;
  Tensor output;
  std::vector<nn::Named> state;
};

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
                            "layer");
  } catch (const Error&) {  // LayersOnnx tells of those
    return {};
  }
}

TEST(TorchScript, every_layer_in_pytorch) {
  TENON_NEEDS_TORCH();
  const NoGrad off;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tenon-scripts-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  json cases = json::array();
  std::vector<Program> programs;
  std::map<std::string, std::string> refused;
  size_t index = 0;
  for (const json& c : read_cases("layers.json")) {
    ++index;
    const LayerInfo* info = find_layer_type(c.at("layer").get<std::string>());
    if (!info || c.contains("parametrize")) continue;
    SCOPED_TRACE(c.dump());
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
    const auto onnx = graph_of(*module, inputs, given);
    if (!onnx) continue;
    formats::ScriptState state;
    for (const nn::Named& n : module->parameters()) state.parameters.emplace_back(n.name, n.tensor);
    for (const nn::Named& n : module->buffers()) state.buffers.emplace_back(n.name, n.tensor);
    const std::string path = (folder / (std::to_string(index) + ".torchscript")).string();
    try {
      formats::save_torchscript(path, *onnx, state, given.at(0).ndim() ? given[0].size(0) : 1);
    } catch (const formats::OnnxUnsupported& e) {
      refused[c.at("layer")] = e.message();
      continue;
    }
    json j = {{"path", path}, {"inputs", json::array()}};
    for (const Tensor& t : given) j["inputs"].push_back(to_json(t));
    cases.push_back(j);
    programs.push_back({c.dump(), (*module)(inputs), module->state_dict()});
  }
  std::string list;
  for (const auto& [type, why] : refused) list += "\n  " + type + ": " + why;
  if (std::getenv("TENON_LIST_REFUSED"))
    std::printf("%zu programs, %zu refused:%s\n", programs.size(), refused.size(), list.c_str());
  EXPECT_GT(programs.size(), 150u);
  EXPECT_TRUE(refused.empty()) << list;

  const auto theirs = run_torch("torchscript.py", cases);
  for (size_t i = 0; i < programs.size(); ++i) {
    SCOPED_TRACE(programs[i].what);
    for (const char* form : {"output", "frozen"}) {
      const Tensor& other = find(theirs, std::to_string(i) + " " + form);
      ASSERT_EQ(programs[i].output.size(), other.size());
      EXPECT_LE(apart(programs[i].output, other), 1e-5) << form;
    }
    for (const nn::Named& n : programs[i].state)
      EXPECT_EQ(difference(n.tensor, find(theirs, std::to_string(i) + " state " + n.name)), 0) << n.name;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tenon::peers
