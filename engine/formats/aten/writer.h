#pragma once
#include <string>

#include "engine/formats/torchscript/script.h"

namespace tenon::formats {

struct OnnxModel;

/// Writes a .pt2 archive that torch.export.load opens and runs: the graph as operators of ATen, the state under its
/// names, further constants as tensors "constant_N". It serves any batch that the graph serves; `batch` is one. Throws
/// OnnxUnsupported naming the operator and node that no rule is for.
void save_exported(const std::string& path, const OnnxModel& model, const ScriptState& state, int64_t batch);

}  // namespace tenon::formats
