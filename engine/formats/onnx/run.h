#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "engine/formats/onnx/model.h"

namespace tenon {
struct OpDef;
}

namespace tenon::formats {

/// Bounds on what a model may ask for. A model from an unknown source can want any size and loop for ever.
struct OnnxLimits {
  size_t tensor_bytes = 0;  ///< of one tensor; 0: the machine's memory
  int64_t nodes = 0;        ///< that are run, those of loop bodies each time; 0: any number
  /// Told before each node, those of bodies too, of the place of the model's own node among all of them; false: the run
  /// ends with the Error "the run was stopped". Where a node fails, it is the one that was told last.
  std::function<bool(int64_t node, int64_t of)> go_on = {};
};

/// What a tensor may have in bytes while a model is at work.
size_t tensor_bound(const OnnxLimits& limits);

struct OnnxResult {
  std::vector<OnnxItem> outputs;
  bool random = false;  ///< random numbers were drawn: ONNX does not say which, so no other run need agree
};

class OnnxScope;

/// One ONNX operator as it is run: its node, and its inputs (undefined where left out, or no tensor: see items).
struct OnnxCall {
  const OnnxNode& node;
  std::vector<Tensor> in;
  int64_t opset;
  std::vector<OnnxItem> items;
  OnnxScope* scope = nullptr;
  const Tensor& input(size_t i) const;  ///< throws Error naming the node where it is missing
  bool has(size_t i) const { return i < in.size() && in[i].defined(); }
  /// All of them; throws Error where one is left out.
  const std::vector<Tensor>& inputs() const;
  /// An i64 list that is an input since some opset and was an attribute before.
  std::vector<int64_t> list(size_t input, const std::string& attribute,
                            const std::vector<int64_t>& fallback = {}) const;
  /// The one whole number that an input holds.
  int64_t whole(size_t input) const;
  /// Whether the node wants its k-th output.
  bool wants(size_t k) const { return k < node.outputs.size() && !node.outputs[k].empty(); }
  const std::vector<Tensor>& sequence(size_t i) const;
  /// Runs a body graph (an attribute), which sees the values around the node.
  std::vector<OnnxItem> run(const std::string& attribute, const std::vector<OnnxItem>& inputs) const;
  /// Says that the result is random.
  void draws_random() const;
};
using OnnxTensorOperator = std::function<std::vector<Tensor>(const OnnxCall&)>;

/// Puts an operator beside the pointwise ops, which run by the name in their OpInfo without an entry here. Operators of
/// other domains have it in front: "ai.onnx.preview.training.Adam".
bool register_onnx(const std::string& op_type, OnnxOperator run, Place place = Place::current());
bool register_onnx(const std::string& op_type, OnnxTensorOperator run, Place place = Place::current());
/// The pointwise op without attributes that a node is; null where it is another operator.
const OpDef* onnx_pointwise(const OnnxNode& node);
/// Empty where the operator can be run; why not otherwise.
std::string onnx_unsupported(const OnnxNode& node);

/// Runs one operator as ops: with gradients, where they are on, and on tensors without memory where it reads no values.
/// `inputs` by place, undefined where left out. Throws Error naming the node; for nodes with a body too, and where a
/// result has more bytes than allocation_limit() lets a tensor have.
std::vector<Tensor> run_onnx_node(const OnnxNode& node, const std::vector<Tensor>& inputs, int64_t opset);

/// Runs a model. `inputs` in the order of its inputs (initializers left out). Throws Error naming the node that cannot
/// be run; OnnxUnsupported where that is because Tenon lacks something.
OnnxResult run_onnx_items(const OnnxModel& model, const std::vector<OnnxItem>& inputs, const OnnxLimits& limits = {});
/// The same for models of tensors alone.
std::vector<Tensor> run_onnx(const OnnxModel& model, const std::vector<Tensor>& inputs, const OnnxLimits& limits = {});

}  // namespace tenon::formats
