#pragma once
#include <string>
#include <vector>

#include "engine/formats/model_file.h"
#include "engine/formats/tensor_difference.h"

namespace tenon::formats {

/// A tensor of two model files that is one thing in both, or stands in one alone. See Note [Tensors that match].
struct TensorPair {
  enum class State : uint8_t {
    same,        ///< every bit
    changed,     ///< of one type and shape
    other_type,  ///< of one shape; what the values are is compared all the same
    transposed,  ///< a matrix, its rows the other's columns; compared so
    other_shape,
    only_a,
    only_b,
    unread  ///< the values of one cannot be read: `problem` says why
  };
  int a = -1, b = -1;  ///< indices into ModelFile::tensors; -1: there is none
  State state = State::same;
  TensorDifference difference = {};  ///< where the values were compared
  std::string problem = {};
  bool compared() const { return state <= State::transposed; }
};
/// "same", "other type", "only in A"
const char* name(TensorPair::State state);

/// An operation of two graphs that is one thing in both, or stands in one alone. See Note [Nodes that match].
struct NodePair {
  int a = -1, b = -1;
  std::string change = {};  ///< "pads: [1, 1] -> [0, 0]; other inputs"; empty: none, or it stands in one alone
  bool same() const { return a >= 0 && b >= 0 && change.empty(); }
};

struct ModelDifference {
  std::vector<TensorPair> tensors;   ///< those of A in its order, then what B has alone, in its order
  std::vector<NodePair> nodes;       ///< in the same order; none where neither file has a graph
  std::string dropped_a, dropped_b;  ///< what names of A (of B) begin with that was left out to match them: "module."
  size_t count(TensorPair::State state) const;
  /// Of all tensors that were compared, as of one long one.
  TensorDifference all() const;
};

/// What stands in two files and how it differs. Values are read piece by piece, so neither file needs to fit into
/// memory. `go_on` is told elements; throws Error "cancelled" once it returned false.
ModelDifference model_difference(const ModelFile& a, const ModelFile& b,
                                 const std::function<bool(int64_t done, int64_t total)>& go_on = {});
/// The graphs alone.
std::vector<NodePair> node_differences(const ModelFile& a, const ModelFile& b);

}  // namespace tenon::formats
