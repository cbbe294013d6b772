#pragma once
#include <map>
#include <string>
#include <vector>

#include "engine/formats/onnx/quantization.h"
#include "engine/formats/onnx/value_flow.h"

namespace tenon::formats {

/// What of a node is quantized when it is, under int8_static: what a convolution makes, behind its ReLU where that
/// alone reads it, as runtimes want it for their integer kernels. Empty: nothing, as for an output of the model.
std::string quantized_output(const OnnxGraph& graph, const ValueFlow& flow, const WeightedNode& node);

/// Note [What is quantized]: the model with these nodes quantized. `grids` are of the activations, by the names of
/// Quantizer::activations().
OnnxModel quantized_graph(const OnnxModel& model, const std::vector<WeightedNode>& nodes, const Quantization& how,
                          const std::map<std::string, QuantGrid>& grids);

}  // namespace tenon::formats
