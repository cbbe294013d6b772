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
/// read this. Every value is made once. Where nodes write to memory that is there already (running statistics, an
/// optimizer's update), the order of the nodes of one memory is part of the meaning, and a constant is the memory that
/// is written to, not what it held before.
struct Graph {
  struct Value {
    std::string name;  ///< "input", "features.0.weight", "conv2d_3"
    Meta meta;
    int producer = -1;  ///< node, or -1 for inputs and constants
    /// Values of one number lie in the same memory: views, and what a write made of a value. -1 where nothing shares
    /// it.
    int memory = -1;
    Tensor constant;  ///< parameters, buffers and numbers that the trace met; undefined for the rest
  };
  /// A value whose memory a node writes to: what it was before, and what it is from then on.
  struct Write {
    int before, after;
  };
  struct Node {
    const OpDef* op = nullptr;
    std::shared_ptr<void> attrs;
    std::vector<int> inputs;  ///< values; -1 where an optional input is absent
    std::vector<int> outputs;
    std::vector<Write> writes;  ///< in-place forms write to their first input; `after` is then the first output
    uint16_t module = 0;
    std::string attrs_text() const { return attrs ? op->attrs.text(attrs.get()) : std::string(); }
  };
  std::vector<Value> values;
  std::vector<Node> nodes;  ///< in an order in which every value is made before it is read
  std::vector<int> inputs, outputs;
};

/// Runs f on the inputs and records every op on the way to its results. `named` gives parameters and buffers their
/// names. Ops that lead neither to a result nor to a write that can be seen from outside (of an input or a constant)
/// are left out. Inputs may be meta tensors: then nothing is computed. Throws Error for an op that runs others inside
/// its kernel.
Graph trace_graph(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                  const std::vector<Tensor>& inputs, const std::vector<std::pair<std::string, Tensor>>& named = {});

/// What runs a node: out[k] becomes its k-th output.
using NodeRunner =
    std::function<void(const Graph::Node& node, const std::vector<Tensor>& in, std::vector<Tensor>& out)>;
/// Its op, dispatched.
void run_node(const Graph::Node& node, const std::vector<Tensor>& in, std::vector<Tensor>& out);
/// What each value of the graph comes to on these inputs, which have the sizes it was traced with; undefined where
/// nothing makes it. Every node runs in its module's scope.
std::vector<Tensor> graph_values(const Graph& graph, const std::vector<Tensor>& inputs,
                                 const NodeRunner& run = run_node);

/// The graph of a module in evaluation mode on an input of the given size.
Graph trace_graph(nn::Module& module, const Meta& input);

}  // namespace tenon
