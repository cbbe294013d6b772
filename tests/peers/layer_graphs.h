#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/temporary_folder.h"
#include "core/tensor.h"
#include "engine/formats/named_tensors.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/torchscript/script.h"
#include "tests/peers/cases.h"

namespace tenon::peers {

/// A layer of layers.json in evaluation, as the graph that exports are made of.
struct LayerGraph {
  std::string what;  ///< its case
  formats::OnnxModel onnx;
  formats::ScriptState state;
  std::vector<Tensor> inputs;
  Tensor output;
  int64_t batch = 1;
};
/// Of those that ONNX has words for; LayersOnnx tells of the others.
std::vector<LayerGraph> layer_graphs();

/// Those of them that a format has written, as files of the folder "0.pt2", "1.pt2", ...; their paths and inputs are
/// the cases of PyTorch's side. `write` refuses by OnnxUnsupported, which none may.
struct WrittenGraphs {
  std::vector<LayerGraph> graphs;
  nlohmann::json cases;
};
WrittenGraphs written_graphs(const TemporaryFolder& folder, const std::string& ending,
                             const std::function<void(const std::string& path, const LayerGraph& graph)>& write);
/// A state_dict that PyTorch read is to the bit what was written.
void expect_state(const LayerGraph& graph, const formats::NamedTensors& theirs, const std::string& prefix);

/// A model of a module of exported.py gives what PyTorch gave, on its input or on the longer one (`again`).
void expect_outputs_of_pytorch(const formats::OnnxModel& model, const formats::NamedTensors& theirs,
                               const std::string& name, bool again);

}  // namespace tenon::peers
