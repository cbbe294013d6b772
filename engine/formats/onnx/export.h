#pragma once
#include <cstdint>
#include <string>

#include "engine/formats/onnx/model.h"
#include "engine/graph/graph.h"

namespace tenon::formats {

/// How recurrent layers are written: as the operators that ONNX has for them (Note [Recurrent layers in ONNX]), or step
/// by step, for readers of a model that know plain operators alone, as the writers of programs and C++ are.
enum class Recurrence : uint8_t { nodes, steps };

struct OnnxExport {
  Recurrence recurrence = Recurrence::nodes;
  /// The graph of the same model on a longer input: where all that changes are sizes that the nodes find out by
  /// themselves, the axis that grew is exported as the free dimension "T".
  const Graph* longer = nullptr;
};

/// The graph with ops that ONNX has no operator for in terms of others, where such terms are known: its values are
/// those that to_onnx() writes, by their names.
Graph in_onnx_terms(const Graph& graph, Recurrence recurrence = Recurrence::nodes);

/// The op graph as an ONNX model (opset 17). Each op says itself how it is written (OnnxOp); nothing here knows single
/// ops. The first axis of the input is exported as the free dimension "N". Throws Error naming the op and module that
/// ONNX cannot express.
OnnxModel to_onnx(const Graph& graph, const std::string& name, const OnnxExport& how = {});

}  // namespace tenon::formats
