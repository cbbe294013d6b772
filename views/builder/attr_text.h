#pragma once
#include <string>

#include "engine/spec/model_spec.h"

namespace tenon::views {

/// "3, 3", "0.5", "true": an attribute's value as a person reads and types it.
std::string attr_text(const AttrValue& v);
/// The inverse for an attribute of the kind that `def` has; false with a reason that names the attribute and its
/// limits.
bool parse_attr(const AttrDef& def, const std::string& text, AttrValue& out, std::string& why);
/// The attributes of a layer that matter at a glance: "32, 3×3, padding 1".
std::string attr_summary(const LayerSpec& layer, const LayerInfo* info);

}  // namespace tenon::views
