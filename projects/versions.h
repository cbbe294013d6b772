#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tenon::projects {
/// Names and versions of the libraries this room stands on.
std::vector<std::pair<std::string, std::string>> library_versions();
}  // namespace tenon::projects
