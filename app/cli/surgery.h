#pragma once
#include <memory>

#include "app/cli/common.h"
#include "engine/spec/model_spec.h"

namespace tenon::app {

inline const Option kLayer = {"--layer", "LAYER.ATTRIBUTE=VALUE",
                              "of the model that the branch has: fc1.out_features=96, drop1.off=true; what goes "
                              "together gets as many channels; may be repeated"};
inline const Option kProjectModel = {"--project-model", "", "the branch has the model that the project has now"};

/// The model that --layer and --project-model ask for; null where neither is given.
std::shared_ptr<const ModelSpec> asked_model(const projects::Project& project, const Args& args, const RunStep& of);

}  // namespace tenon::app
