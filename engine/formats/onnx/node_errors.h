#pragma once
#include <string>
#include <vector>

#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// The same model computed in f64: constants, casts and declared types of f32 are f64, and weights from the first node
/// that reads them to the last.
OnnxModel in_f64(const OnnxModel& model);

/// How far the first output of a node is from what it is in f64, where every node before it was computed so, too.
struct NodeError {
  size_t node = 0;   ///< of the graph
  std::string name;  ///< of the node, or of its output where it has none
  std::string op_type;
  double worst = 0;  ///< the largest difference over the largest number of the reference; infinite where one of the
                     ///< two is not finite
};
/// Of every node that makes floating numbers, in their order. `inputs` as of run_onnx(). Throws Error naming the node
/// that f64 has no kernel for.
std::vector<NodeError> node_errors(const OnnxModel& model, const std::vector<Tensor>& inputs);

}  // namespace tenon::formats
