#pragma once
#include <string>

#include "engine/formats/named_tensors.h"

namespace tenon::formats {

struct OnnxModel;

/// Whose values the tensors of a model are: its state_dict, by names as "features.0.weight".
struct ScriptState {
  NamedTensors parameters, buffers;
};

/// Writes a TorchScript archive that torch.jit.load opens and runs: the graph as one forward(), the state as attributes
/// of modules named as its paths, so that state_dict() has the model's names. It serves any batch that the graph
/// serves; `batch` is one. Further constants of the graph are buffers "constant_N" of the outermost module. Throws
/// OnnxUnsupported naming the operator and node that no rule is for.
void save_torchscript(const std::string& path, const OnnxModel& model, const ScriptState& state, int64_t batch);

}  // namespace tenon::formats
