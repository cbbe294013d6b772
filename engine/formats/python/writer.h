#pragma once
#include <string>

#include "engine/spec/model_spec.h"

namespace tenon::python {

/// The model as PyTorch source that a person would write: a class for every group of layers with a forward of its own
/// (one for all that are alike), nn.Sequential for chains. Its state_dict has the names of Tenon's parameters.
/// As a program it runs the model once; `weights`: a file of its state_dict that it reads first, beside the source.
/// Throws Error for a model that does not fit together, and naming a layer that PyTorch has not.
std::string write_model(const ModelSpec& model, const std::string& weights = {});

}  // namespace tenon::python
