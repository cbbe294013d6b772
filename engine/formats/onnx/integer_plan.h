#pragma once
#include <cstdint>
#include <string>

#include "engine/formats/onnx/model.h"

// Note [Integers multiplied]
// A model quantized with QuantizeLinear and DequantizeLinear (QDQ) says what may be computed in integers: a node that
// reads u8 activations and i8 weights through DequantizeLinear, whose result, behind a ReLU, goes to QuantizeLinear.
// integer_plan() makes one node of such a chain, which multiplies the integers, one of a sum of two such values that is
// rounded again (a residual), of a Concat and of an average between grids, and lets what passes numbers on between two
// QuantizeLinear of one grid (MaxPool, Reshape, ...) pass on the u8. The sums are exact; a result is at most one
// step of its grid from the one that is computed in f32. Where the processor lacks the instructions that make it exact
// and fast, the model stays what it was.
namespace tenon::formats {

struct IntegerPlan {
  OnnxModel model;       ///< to be run in the place of the one that was given; no file can hold it
  int64_t integer = 0;   ///< nodes that multiply integers
  int64_t sums = 0;      ///< nodes that add two values as integers
  int64_t joins = 0;     ///< Concats of integers
  int64_t averages = 0;  ///< averages of integers
  int64_t weighted = 0;  ///< convolutions and matrix products of the model
  std::string why;       ///< why none does; empty: some do
  /// "integer nodes: 4 of 4", "integer nodes: 20 of 21 and 8 sums, 1 average", "integer nodes: none of 4, the model is
  /// not quantized to u8 and i8 (QDQ)"
  std::string text() const;
};

IntegerPlan integer_plan(const OnnxModel& model);

}  // namespace tenon::formats
