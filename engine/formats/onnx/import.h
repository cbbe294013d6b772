#pragma once
#include <string>
#include <vector>

#include "engine/formats/named_tensors.h"
#include "engine/formats/onnx/model.h"
#include "engine/spec/model_spec.h"

namespace tenon::formats {

/// A model of the builder that was made from an ONNX model.
struct ImportedModel {
  ModelSpec model;
  NamedTensors weights;            ///< by the names of the model's parameters and buffers, all of them
  int64_t nodes = 0;               ///< of the ONNX model
  int64_t op_layers = 0;           ///< layers that are an ONNX operator (OnnxOp)
  bool widened = false;            ///< numbers of 16 bits are held in 32: what comes out is more exact than the file's
  std::vector<std::string> notes;  ///< what is not as in the file, in sentences
};

/// Layers and wires of an ONNX model with their weights, named as the file's weights and nodes are ("layer1.0.conv1").
/// Operators that fit a layer become one; of the others each that may be is an OnnxOp layer. `sample`: the sizes of one
/// sample, where the file leaves them open. Throws OnnxUnsupported that lists, operator by operator, what no layer is
/// for and why, and where the model has several inputs.
ImportedModel import_model(const OnnxModel& onnx, const std::string& name, const std::vector<int64_t>& sample = {});

}  // namespace tenon::formats
