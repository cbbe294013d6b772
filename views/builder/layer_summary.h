#pragma once
#include <string>

#include "engine/spec/model_spec.h"

namespace tenon::views {

/// The attributes of a layer that matter at a glance: "32, 3×3, padding 1".
std::string attr_summary(const LayerSpec& layer, const LayerInfo* info);

}  // namespace tenon::views
