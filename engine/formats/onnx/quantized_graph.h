#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/formats/onnx/quantization.h"
#include "engine/formats/onnx/value_flow.h"

namespace tenon::formats {

/// What of a node is quantized when it is, under int8_static: what a convolution makes, behind its ReLU where that
/// alone reads it, as runtimes want it for their integer kernels. Empty: nothing, as for an output of the model.
std::string quantized_output(const OnnxGraph& graph, const ValueFlow& flow, const WeightedNode& node);

/// A node without weights that makes a quantized value of quantized ones: a sum (a residual), a Concat, an average.
struct CarriedNode {
  size_t node;
  std::string made;  ///< what is quantized of it, behind its ReLU where that alone reads it
};
/// Those of a graph in which `made` are quantized where they are made and `read` where they are read, by the values'
/// roots: every input is one of those, or what such a node makes, and what it makes is read by one that is quantized.
std::vector<CarriedNode> carried_nodes(const OnnxGraph& graph, const ValueFlow& flow, std::set<std::string> made,
                                       std::set<std::string> read);

/// Note [What is quantized]: the model with these nodes quantized. `grids` are of the activations, by the names of
/// Quantizer::activations().
OnnxModel quantized_graph(const OnnxModel& model, const std::vector<WeightedNode>& nodes, const Quantization& how,
                          const std::map<std::string, QuantGrid>& grids);

}  // namespace tenon::formats
