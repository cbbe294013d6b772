#pragma once
#include <string>

#include "engine/formats/onnx/model.h"
#include "engine/graph/graph.h"

namespace tenon::formats {

/// The graph with ops that ONNX has no operator for in terms of others, where such terms are known: its values are
/// those that to_onnx() writes, by their names.
Graph in_onnx_terms(const Graph& graph);

/// The op graph as an ONNX model (opset 17). Each op says itself how it is written (OnnxOp); nothing here knows single
/// ops. The first axis of the input is exported as the free dimension "N". Throws Error naming the op and module that
/// ONNX cannot express.
OnnxModel to_onnx(const Graph& graph, const std::string& name);

}  // namespace tenon::formats
