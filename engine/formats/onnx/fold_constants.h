#pragma once
#include <string>
#include <unordered_map>

#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// Types and sizes of the values of a model's own graph, as far as they follow from its declared inputs.
using KnownSizes = std::unordered_map<std::string, Meta>;

/// Computes what does not depend on the inputs' values, sizes that are declared among them, into initializers, takes
/// Identity out, and drops what nobody reads then. What would fail, draw numbers or run a body stays.
KnownSizes fold_constants(OnnxModel& model);

/// Whether tensors have the types and sizes that the model declares, where it leaves none of them open.
bool as_declared(const OnnxModel& model, const std::vector<OnnxItem>& inputs);

}  // namespace tenon::formats
