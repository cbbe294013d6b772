#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "projects/time_travel.h"

namespace tenon::projects {

/// What became of an ONNX model as a project.
struct ModelImport {
  std::string weights;  ///< the file beside the project that its runs begin with (init.from)
  int64_t nodes = 0, layers = 0, op_layers = 0;
  /// Largest distance between what the layers and what the ONNX model give for the same random batch, over the largest
  /// of those numbers.
  double difference = 0;
  std::vector<std::string> notes;
  /// "122 layers of 124 nodes, the same outputs within 3e-07".
  std::string text() const;
};

/// Makes the project `path` of an ONNX model: its layers on the canvas, its weights in NAME.safetensors beside it. Both
/// are run on a random batch first. `sample`: sizes of one sample where the file leaves them open; `settings`: keys of
/// the recipe as typed. Throws Error where the model has what no layer is for, or the two disagree; nothing is left
/// then.
ModelImport project_from_onnx(const std::string& path, const std::string& onnx, const std::vector<int64_t>& sample = {},
                              const std::vector<std::pair<std::string, std::string>>& settings = {},
                              const Progress& progress = {});

}  // namespace tenon::projects
