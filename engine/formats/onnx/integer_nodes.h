#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/formats/onnx/model.h"

// What nodes of a quantized model run as where integers are multiplied: OnnxNode::compiled.
namespace tenon::formats {

/// A value as u8: scale * (q - zero).
struct U8Grid {
  float scale = 1;
  int32_t zero = 0;
  bool operator==(const U8Grid&) const = default;
};

/// A convolution, or a product of rows, of u8 by i8.
struct IntegerLayer {
  Tensor weights;             ///< i8, [out, in / groups, height, width], or without height; of a product [out, in]
  std::vector<float> scales;  ///< of the weights, one an output channel
  std::vector<int32_t> bias;  ///< in sums, one an output channel
  U8Grid from;
  std::optional<U8Grid> to;  ///< nothing: the result is f32
  bool relu = false;
};

/// A sum of two values as u8, as u8.
struct IntegerSum {
  U8Grid a, b, to;
  bool relu = false;
};

/// A Conv of one or two spatial axes, by the attributes of its node.
OnnxOperator integer_conv(const OnnxNode& node, const IntegerLayer& layer);
/// A Gemm or MatMul.
OnnxOperator integer_product(const IntegerLayer& layer);
/// An Add; inputs of different sizes are broadcast.
OnnxOperator integer_sum(const IntegerSum& sum);
/// A Concat of values of several grids, as u8 of one.
OnnxOperator integer_join(const std::vector<U8Grid>& from, const U8Grid& to);
/// Which axes an average is of: windows of an AveragePool, or all that lie behind the channels.
enum class AveragedOver : uint8_t { windows, all, all_and_drops_them };
/// An AveragePool, a GlobalAveragePool or a ReduceMean: sums of integers, rounded once. `axes`: of the input, behind
/// the channels.
OnnxOperator integer_average(const U8Grid& from, const U8Grid& to, AveragedOver over, int axes);
/// A MaxPool of u8 by the attributes of its node, over one axis or two, or three of which the first stays as it is.
OnnxOperator integer_max_pool();
OnnxOperator to_u8(const U8Grid& grid);
OnnxOperator from_u8(const U8Grid& grid);

}  // namespace tenon::formats
