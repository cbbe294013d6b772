#pragma once
#include <vector>

#include "engine/formats/model_file.h"
#include "engine/formats/torch/file.h"

namespace tenon::formats {

/// Adds what a file of torch.save holds to a model file, and a tensor for each entry: a window of the file, undefined
/// where there is a problem.
void add_torch(const TorchFile& t, ModelFile& m, std::vector<Tensor>& values);
/// The model file whose entries have these values.
ModelFile with_values(ModelFile m, std::vector<Tensor> values);

}  // namespace tenon::formats
