#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/formats/onnx/calibration.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/quant_grid.h"

namespace tenon::formats {

// Note [What is quantized]
// Post-training quantization: weights become integers, and with them, as the precision says, what the nodes read.
//   int8_static   Activations are u8 on grids that calibration found, weights i8, biases i32, written as QuantizeLinear
//                 and DequantizeLinear round nodes that stay what they are (QDQ): a runtime that knows integer kernels
//                 fuses them, any other runs them in f32 with the same result but for rounding. A sum, a Concat or an
//                 average between quantized nodes has them round it, too.
//   int8_dynamic  A batch's own range is the grid (DynamicQuantizeLinear), products are MatMulInteger and ConvInteger
//                 of u8 with u8: the only kind that ONNX Runtime computes exactly on every processor.
//   int8_weights  Weights alone, i8, a grid a channel.
//   int4_weights  Weights alone, UINT4, a grid a group of elements; opset 21. Tables, which are looked up and not
//                 multiplied, are i8 as in int8_weights: they are the most sensitive, and seldom the most of a model.
// A node of another kind with weights (an embedding, an LSTM, a transposed convolution) has its weights alone quantized
// in every form. Norms behind convolutions are folded into them first. Nodes may be left in f32 at will: they compute
// what they did, on numbers that other nodes may have made coarser.

enum class Precision : uint8_t { f32, int8_static, int8_dynamic, int8_weights, int4_weights };
inline constexpr int kPrecisions = 5;
/// "f32", "int8-static", "int8-dynamic", "int8-weights", "int4-weights".
const char* name(Precision p);
/// Throws Error (usage) for another word.
Precision precision_named(const std::string& word);

struct Quantization {
  Precision precision = Precision::int8_static;
  std::string calibration = "mse";  ///< of int8_static: see calibrations()
  bool per_channel = true;          ///< of weights in 8 bits; false: one grid a tensor
  int64_t group = 32;               ///< of int4_weights; at least 16
  /// Of int8_static: the grids that training found, instead of a calibration. Layers that they do not name stay in f32,
  /// and fewer than 8 bits are integers of a smaller range in u8 and i8.
  std::optional<TrainedGrids> trained = {};
};

/// A node of a model that has weights.
struct WeightedNode {
  size_t node = 0;  ///< of the graph
  std::string op, output;
  std::vector<size_t> inputs;  ///< which of its inputs are weights
  int channel_axis = 0;        ///< of a weight: outputs of the node lie along it; -1: they do not lie along one axis
  int row_axes = 1;            ///< of a weight of more than two axes: the first ones, which are rows of it as a matrix
  bool table = false;          ///< rows are read by their number: an embedding
  bool integer = false;        ///< it can compute in integers (int8_static, int8_dynamic)
};
std::vector<WeightedNode> weighted_nodes(const OnnxGraph& graph);
/// What a node is quantized to where the model is asked for in `wanted`.
Precision quantized_as(const WeightedNode& node, Precision wanted);

/// The nodes that read weights of one module: several where an LSTM is written step by step.
struct WeightedLayer {
  std::string module;  ///< by the names of the weights: "features.0"
  std::string op;      ///< of the first node
  int64_t weights = 0;
  std::vector<size_t> nodes = {};  ///< places among the weighted nodes
};

/// Quantizes one model, all of its layers or some.
class Quantizer {
 public:
  /// A model of one input, whose opset is 17 or later. Throws Error (usage) for a setting that is none, and Error where
  /// the model has nothing to quantize.
  Quantizer(OnnxModel model, const Quantization& how);
  /// In f32, with norms folded: what is quantized.
  const OnnxModel& model() const { return model_; }
  const Quantization& how() const { return how_; }
  const std::vector<WeightedNode>& nodes() const { return nodes_; }
  const std::vector<WeightedLayer>& layers() const { return layers_; }
  /// Of int8_static: activations that need a grid; empty for others, and where training found them.
  std::vector<std::string> activations() const;
  /// Runs the model on the batches and chooses the grids: to be called first where there are activations().
  void calibrate(const std::vector<Tensor>& batches, const QuantProgress& progress = {});
  const std::map<std::string, QuantGrid>& grids() const { return grids_; }
  /// The layers chosen, by their place in layers(), are quantized; values keep their names. Throws Error for a weight
  /// that is not finite.
  OnnxModel quantized(const std::vector<bool>& chosen) const;

 private:
  void take_trained_grids();

  OnnxModel model_;
  Quantization how_;
  std::vector<WeightedNode> nodes_;
  std::vector<WeightedLayer> layers_;
  std::map<std::string, QuantGrid> grids_;
};

}  // namespace tenon::formats
