#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "engine/op/op.h"

namespace tenon {
namespace nn {
class Module;
}

/// The op graph of a model: what running its module tree under the tracer gives. Compile, export and the graph view all
/// read this.
struct Graph {
  struct Value {
    std::string name;  ///< "input", "features.0.weight", "conv2d_3"
    Meta meta;
    int producer = -1;  ///< node, or -1 for inputs and constants
    Tensor constant;    ///< parameters, buffers and numbers that the trace met; undefined for the rest
  };
  struct Node {
    const OpDef* op = nullptr;
    std::shared_ptr<void> attrs;
    std::vector<int> inputs;  ///< values; -1 where an optional input is absent
    std::vector<int> outputs;
    uint16_t module = 0;
    std::string attrs_text() const { return attrs ? op->attrs.text(attrs.get()) : std::string(); }
  };
  std::vector<Value> values;
  std::vector<Node> nodes;  ///< in an order in which every value is made before it is read
  std::vector<int> inputs, outputs;
};

/// Runs f on the inputs and records every op on the way to its results. `named` gives parameters and buffers their
/// names. Ops that do not lead to a result are left out. Inputs may be meta tensors: then nothing is computed.
Graph trace_graph(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                  const std::vector<Tensor>& inputs, const std::vector<std::pair<std::string, Tensor>>& named = {});

/// The graph of a module in evaluation mode on an input of the given size.
Graph trace_graph(nn::Module& module, const Meta& input);

}  // namespace tenon
