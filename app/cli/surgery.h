#pragma once
#include <memory>

#include "app/cli/common.h"
#include "engine/spec/model_spec.h"

namespace tenon::app {

inline const Option kLayer = {"--layer", "LAYER.ATTRIBUTE=VALUE",
                              "of the model that the branch has: fc1.out_features=96, drop1.off=true; what goes "
                              "together gets as many channels; may be repeated"};
inline const Option kInsert = {"--insert", "LAYER=[NAME:]TYPE",
                               "a layer more behind that one, in the model that the branch has: fc1=more:Linear, then "
                               "--layer more.out_features=64; may be repeated"};
inline const Option kRemove = {"--remove", "LAYER", "a layer less: what fed it feeds what it fed; may be repeated"};
inline const Option kProjectModel = {"--project-model", "", "the branch has the model that the project has now"};

/// The model that --insert, --remove, --layer (in this order) and --project-model ask for; null where none is given.
std::shared_ptr<const ModelSpec> asked_model(const projects::Project& project, const Args& args, const RunStep& of);

}  // namespace tenon::app
