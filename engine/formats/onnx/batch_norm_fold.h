#pragma once
#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// Multiplies every batch norm that alone reads a convolution into its weights and bias, computed in f64: the same
/// function in fewer nodes. A convolution takes the name of what the norm made. Weights that others read too are left.
void fold_batch_norms(OnnxGraph& graph);

}  // namespace tenon::formats
