#pragma once
#include <string>
#include <vector>

#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// A layer of the type "OnnxOp": one operator of an imported model for which there is no layer of its own. What its
/// node says, and each of its inputs that is no wire, stand in the layer's attribute "node" as JSON.
struct OnnxOpLayer {
  static constexpr int kWires = 8;               ///< inputs at most that come by wire
  static constexpr int64_t kConstant = 1 << 16;  ///< elements at most of a constant, which stands in the text
  struct Input {
    enum class Kind : uint8_t { none, wire, constant, parameter };
    Kind kind = Kind::none;
    Tensor value = {};  ///< the constant; of a parameter its size and dtype
  };
  OnnxNode node;  ///< names of inputs and outputs do not matter, their numbers do
  int64_t opset = 17;
  size_t output = 0;  ///< the one of its outputs that goes on
  std::vector<Input> inputs;

  std::string text() const;
  /// Throws Error for what no text() is.
  static OnnxOpLayer parse(const std::string& text);
  /// Name of the parameter at an input: "input1".
  static std::string parameter_name(size_t input);
};

/// Whether the operator may be a layer: its shapes follow from shapes alone, so that a model is checked without values.
bool may_be_layer(const OnnxNode& node);

}  // namespace tenon::formats
