#pragma once
#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// Makes pools over an image or a line of those over a volume whose first axes are of size 1 and were put in for them
/// (Unsqueeze, pool, Squeeze): Tenon has one op for all of them. Values keep their names; nothing computes otherwise.
void flatten_pools(OnnxGraph& graph);

}  // namespace tenon::formats
