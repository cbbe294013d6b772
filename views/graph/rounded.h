#pragma once
#include <vector>

#include "views/shared/scene.h"

namespace tenon::views {

/// A line along points with its corners rounded.
std::vector<Point> rounded(const std::vector<Point>& way, float radius);

}  // namespace tenon::views
