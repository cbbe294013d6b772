#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/layout.h"
#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// A value of a StaticGraph.
struct StaticValue {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  Tensor constant;  ///< contiguous; undefined for what is known only at a run
  int64_t bytes() const { return shape.product() * static_cast<int64_t>(itemsize(dtype)); }
};

struct StaticNode {
  const OnnxNode* node = nullptr;
  std::vector<int> inputs;  ///< values; -1 where one is left out
  int output = -1;
  /// Where the result's elements lie in input 0, when they are a view of it (Reshape, Transpose, Slice).
  std::optional<Layout> view = {};
};

/// An ONNX model at one size of its inputs: every value has a size, and what does not depend on the
/// inputs has its value.
struct StaticGraph {
  std::vector<StaticValue> values;
  std::vector<StaticNode> nodes;  ///< in an order in which every value is made before it is read
  std::vector<int> inputs, outputs;
  int64_t opset = 17;
};

/// What becomes of a node whose inputs are all known: it is computed, or stays a node of its own.
enum class Folded : uint8_t { yes, no };

/// The sizes of the inputs at one batch. Throws OnnxUnsupported where a model leaves more open than its batch.
std::vector<Shape> sizes_at_batch(const OnnxModel& model, int64_t batch);

/// Runs the model once on zeros, and keeps the sizes. `sizes`: of the inputs that no initializer has a value for, in
/// order. The model must outlive the graph. Throws Error naming the node that cannot be run, has a body, or has more
/// than one result that is read.
StaticGraph static_graph(const OnnxModel& model, const std::vector<Shape>& sizes, Folded folded = Folded::yes);

}  // namespace tenon::formats
