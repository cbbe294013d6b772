// The layers of layers.json as programs of TorchScript, run by PyTorch: what ONNX can express gives the same numbers
// there, under the same names.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "core/error.h"
#include "core/temporary_folder.h"
#include "engine/formats/torchscript/script.h"
#include "tests/peers/layer_graphs.h"
#include "tests/peers/torch.h"

namespace tenon::peers {
namespace {

using nlohmann::json;

TEST(TorchScript, every_layer_in_pytorch) {
  TENON_NEEDS_TORCH();
  const TemporaryFolder folder("tenon-scripts");
  json cases = json::array();
  std::vector<LayerGraph> programs;
  std::map<std::string, std::string> refused;
  for (LayerGraph& layer : layer_graphs()) {
    SCOPED_TRACE(layer.what);
    const std::string path = folder / (std::to_string(cases.size()) + ".torchscript");
    try {
      formats::save_torchscript(path, layer.onnx, layer.state, layer.batch);
    } catch (const formats::OnnxUnsupported& e) {
      refused[layer.what] = e.message();
      continue;
    }
    json j = {{"path", path}, {"inputs", json::array()}};
    for (const Tensor& t : layer.inputs) j["inputs"].push_back(to_json(t));
    cases.push_back(j);
    programs.push_back(std::move(layer));
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
    for (const auto* tensors : {&programs[i].state.parameters, &programs[i].state.buffers})
      for (const auto& [name, t] : *tensors)
        EXPECT_EQ(difference(t, find(theirs, std::to_string(i) + " state " + name)), 0) << name;
  }
}

}  // namespace
}  // namespace tenon::peers
