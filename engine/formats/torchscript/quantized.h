#pragma once
#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// A model with QuantizeLinear and DequantizeLinear in operators that programs of PyTorch have without further
/// libraries: integers become f32, less their zero point, times their scale; an activation is rounded on its grid in
/// f32. Weights stay integers: i8, and those of 4 bits two a byte, the first one in its lower half. Throws
/// OnnxUnsupported naming a node that multiplies integers (int8-dynamic): PyTorch has no such operator for them.
OnnxModel in_plain_operators(const OnnxModel& quantized);

}  // namespace tenon::formats
