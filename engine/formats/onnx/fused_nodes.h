#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/formats/onnx/model.h"
#include "engine/op/pointwise_chain.h"

// What nodes of a model run as where several of them are one: OnnxNode::compiled. The first input of such a node is the
// value that the first of its nodes reads, and the arrays that its chain reads beside it follow.
namespace tenon::formats {

/// Nodes that became one, as they were. Where tensors come that the one cannot take (of another type, of sizes that
/// broadcast), they run one by one.
struct FusedNodes {
  std::vector<OnnxNode> nodes;
  std::unordered_map<std::string, Tensor> constants;  ///< that they read
  PointwiseChain chain;                               ///< of all that are no product
  int channel = -1;  ///< the axis, from the last, along which the chain's numbers repeat; -1: none do
};

/// A Conv of two spatial axes by constant weights of f32.
OnnxOperator fused_conv(FusedNodes fused, const Tensor& weights, const Tensor& bias);
/// A ConvTranspose of two spatial axes whose windows lie side by side: its strides are its kernel.
OnnxOperator fused_upsampling(FusedNodes fused, const Tensor& weights, const Tensor& bias);
/// A MatMul or Gemm by a constant matrix of f32, [k, n], or [n, k] where it is `turned`.
OnnxOperator fused_product(FusedNodes fused, const Tensor& matrix, bool turned, const Tensor& bias);
OnnxOperator fused_pointwise(FusedNodes fused);
/// Whether an LSTM, GRU or RNN by these constants, [directions, ...] each (no bias: undefined), is one that
/// fused_recurrent() knows.
bool fuses_recurrent(const OnnxNode& node, const Tensor& w, const Tensor& r, const Tensor& bias);
/// Its inputs are the values and, where they are there, the states (of an LSTM two).
OnnxOperator fused_recurrent(FusedNodes fused, const Tensor& w, const Tensor& r, const Tensor& bias);
/// Images of f32 with their channels innermost; themselves where they lie so.
Tensor with_channels_innermost(const Tensor& images);

// Nodes that leave channels innermost, where their images lie so; what they cannot take runs as the node was.
OnnxOperator max_pool_of_channels(const OnnxNode& node);
OnnxOperator average_pool_of_channels(const OnnxNode& node);
/// A GlobalAveragePool, or a ReduceMean over both spatial axes.
OnnxOperator image_means(const OnnxNode& node, bool keep);
/// A Concat of images along their channels.
OnnxOperator join_of_channels(const OnnxNode& node);
/// A Reshape, a Transpose and a Reshape that exchange groups and their channels.
OnnxOperator shuffle_of_channels(FusedNodes fused, int64_t groups);
/// A LayerNormalization over the last axis.
OnnxOperator row_norm(const OnnxNode& node, const Tensor& scale, const Tensor& shift);

}  // namespace tenon::formats
