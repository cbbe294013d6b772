#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tenon::formats {
/// Names and versions of the libraries that formats and kernels stand on.
std::vector<std::pair<std::string, std::string>> library_versions();
}  // namespace tenon::formats
