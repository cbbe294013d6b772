#pragma once
#include "engine/formats/onnx/fold_constants.h"
#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// Makes one node of several, for a model that is run for its results: Note [Nodes fused]. No file can hold it.
void fuse_nodes(OnnxModel& model, const KnownSizes& sizes);

}  // namespace tenon::formats
