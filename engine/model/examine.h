#pragma once
#include <string>
#include <vector>

#include "engine/spec/model_spec.h"

namespace tenon {

/// What is known of one layer after trying the model on tensors without memory.
struct LayerReport {
  std::string layer;
  std::vector<std::string> inputs, outputs;  ///< "f32 [64, 32, 28, 28]" a port
  int64_t parameters = 0;
  std::vector<std::string> parameter_names;  ///< of the whole model: "conv1.weight"
  double flops = 0;                          ///< one forward pass at the given batch
  int64_t output_bytes = 0;
  std::string error, hint;  ///< empty where the layer fits
};

/// Builds the model on the meta device and runs it: shapes, counts and the errors of each layer. Never throws for a bad
/// model.
std::vector<LayerReport> examine(const ModelSpec& spec, int64_t batch);

}  // namespace tenon
