#pragma once
#include <string>

#include "views/shared/tokens.h"

namespace tenon::views {

/// A quiet colour a family of layers, so that a network's rhythm is seen from afar.
Ink family_ink(const std::string& type);

/// How far in the canvas is: from here on all words stand on a layer, its ports are drawn, and names stand on it at
/// all.
inline constexpr float kWordsZoom = 0.8f, kPortsZoom = 0.36f, kTypesZoom = 0.5f, kNamesZoom = 0.3f;

}  // namespace tenon::views
