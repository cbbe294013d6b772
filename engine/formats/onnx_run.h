#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/formats/onnx.h"

namespace tenon::formats {

/// One ONNX operator as it is run: its node, and its inputs (undefined where left out).
struct OnnxCall {
  const OnnxNode& node;
  std::vector<Tensor> in;
  int64_t opset;
  const Tensor& input(size_t i) const;              ///< throws Error naming the node where it is missing
  bool has(size_t i) const { return i < in.size() && in[i].defined(); }
  /// An i64 list that is an input since some opset and was an attribute before.
  std::vector<int64_t> list(size_t input, const std::string& attribute, const std::vector<int64_t>& fallback = {}) const;
};
using OnnxOperator = std::function<std::vector<Tensor>(const OnnxCall&)>;

/// Puts an operator beside the pointwise ops, which run by the name in their OpInfo without an entry here.
bool register_onnx(const std::string& op_type, OnnxOperator run);
/// Empty where the operator can be run; why not otherwise.
std::string onnx_unsupported(const OnnxNode& node);

/// Runs a model. `inputs` in the order of its inputs (initializers left out). Throws Error naming the node that cannot be run.
std::vector<Tensor> run_onnx(const OnnxModel& model, const std::vector<Tensor>& inputs);

}  // namespace tenon::formats
