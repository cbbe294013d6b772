#pragma once
#include <map>
#include <string>
#include <vector>

#include "engine/formats/onnx/model.h"
#include "engine/formats/tensor_difference.h"
#include "engine/graph/graph.h"

// Where a file computes something else than the model that it was made from.
namespace tenon::formats {

/// What a model makes of its inputs: its parameters and all values on the way, by the names that an export gives them.
struct ModelValues {
  std::vector<Tensor> inputs, outputs;
  std::map<std::string, Tensor> values;
};

/// What a graph in ONNX's terms (in_onnx_terms()) comes to on inputs of the sizes it was traced with. Of an op with
/// several outputs the first has the name: an export writes no other.
ModelValues model_values(const Graph& graph, const std::vector<Tensor>& inputs);

/// A node of a file beside the value of the model that has its name.
struct NodeDivergence {
  size_t node = 0;            ///< of the file's graph
  std::string name, op_type;  ///< the output's name
  /// Of what the node makes of the model's own values, and of what it comes to where the file computes all of it, each
  /// from the model's value. `carried` counts nothing where there is no such run.
  TensorDifference alone, carried;
  Shape size;
  std::string why;    ///< it gives nothing that could be compared: another size, or an error
  bool known = true;  ///< false: it could not be computed alone
};

struct Divergence {
  std::vector<NodeDivergence> nodes;  ///< those whose output the model has, in the file's order
  /// Index into nodes: the first that alone is beyond the tolerance, or else the first whose carried value is; -1:
  /// none.
  int64_t first = -1;
  size_t unmatched = 0;  ///< nodes of no value of the model
  std::string broken;    ///< why the file as a whole does not run; empty: it does
};

/// Computes each node of the file from the model's own values of its inputs (what the file holds as initializers is
/// the file's), so that a node answers for itself alone; and the whole file from the model's inputs. Inputs and
/// outputs belong together by their place, all else by name. `tolerance`: of TensorDifference::relative(); NaN where
/// the model has none is beyond any.
Divergence find_divergence(const OnnxModel& file, const ModelValues& own, double tolerance);

/// The names of the first outputs of all nodes, in their order.
std::vector<std::string> value_names(const OnnxGraph& graph);

}  // namespace tenon::formats
