#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/tensor.h"

namespace tenon::formats {

/// The integers that stand for numbers, as QuantizeLinear means it: x is about scale * (q - zero), q from lo to hi.
struct QuantGrid {
  float scale = 1;
  int32_t zero = 0;
  int32_t lo = -128, hi = 127;

  /// The nearest, of two the even one, within lo and hi.
  int32_t quantized(float x) const;
  float value(int32_t q) const { return scale * static_cast<float>(q - zero); }
};

/// From 0 to 2^bits - 1, over the range from `from` to `to` and 0: a 0 is met exactly. A range of nothing but 0 has the
/// scale 1.
QuantGrid asymmetric_grid(double from, double to, int bits);
/// From -(2^(bits - 1) - 1) to 2^(bits - 1) - 1 round the zero point 0, over -most to most.
QuantGrid symmetric_grid(double most, int bits);

/// A weight as integers, with one scale and zero point for all of it, for each slice of an axis, or for each group.
struct QuantizedWeight {
  Tensor values;  ///< i8 of symmetric grids, u8 of asymmetric ones
  Tensor scale;   ///< f32: [], [slices], or the weight's shape with the grouped axis divided by the group
  Tensor zero;    ///< of the type of the values and the shape of the scale; undefined: 0
};

/// 2 to 8 bits, symmetric; a grid for every slice of `axis` of the f32 tensor, for axis -1 one for all of it. Throws
/// Error for a weight that is not finite.
QuantizedWeight quantize_channels(const Tensor& weight, int axis, int bits = 8);
/// 4 bits, asymmetric; of an f32 matrix a grid for every `group` elements along `axis` (the last group may be shorter).
/// Each is the one of a few narrower and narrower grids that leaves the least squared error. Throws Error for a weight
/// that is not finite.
QuantizedWeight quantize_groups(const Tensor& weight, int axis, int64_t group);

/// What a run that quantizes while it trains has found: the bits, and between which values lies what a layer reads.
struct TrainedGrids {
  int weight_bits = 8, activation_bits = 8;
  std::map<std::string, std::pair<double, double>> inputs = {};  ///< by the name of the layer
};

}  // namespace tenon::formats
