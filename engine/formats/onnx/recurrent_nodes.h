#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/onnx/model.h"
#include "engine/graph/graph.h"

namespace tenon::formats {

// Note [Recurrent layers in ONNX]
// A layer of an Rnn is, in the graph, a product that makes what the inputs give to the gates, and rnn_sequence, once a
// direction. ONNX's LSTM, GRU and RNN do both, in one direction or two, for any number of steps, so the layer is one of
// them. Layout is always 0 (steps first): runtimes have no other; the Transposes of a batch-first layer stay round it.
// An rnn_sequence that the node cannot say is written step by step, as it decomposes, for the steps of the trace alone:
// one whose gates are no product with a constant, which the node takes as its weight W, and one whose cells of every
// step are read, of which the node gives the last alone.

/// Nodes of ONNX that stand for a recurrent layer of a graph.
struct RecurrentNodes {
  size_t at = 0;             ///< node of the graph in whose place they come: the last rnn_sequence of the layer
  std::set<size_t> instead;  ///< nodes of the graph that they make unneeded: rnn_sequence, and what is read of it
  std::vector<int> reads;    ///< values of the graph
  std::vector<OnnxNode> nodes;
  std::vector<std::pair<std::string, Tensor>> constants;
};

/// Every recurrent layer of the graph that is such a node.
std::vector<RecurrentNodes> recurrent_nodes(const Graph& graph);

}  // namespace tenon::formats
