#pragma once
#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// Keeps one of several initializers of the same type, shape and bits, which is then read in the place of all: an
/// attention mask is written once for every block.
void merge_equal_constants(OnnxGraph& graph);

}  // namespace tenon::formats
