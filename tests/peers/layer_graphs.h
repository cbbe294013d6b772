#pragma once
#include <string>
#include <vector>

#include "core/tensor.h"
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

}  // namespace tenon::peers
