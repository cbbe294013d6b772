#pragma once
#include <optional>
#include <string_view>

namespace tenon {

/// The number that a whole text is, blanks around it and a plus before it allowed; nothing where it is none, or none
/// that a double holds. A point is a point everywhere: a window takes over the desktop's locale, and in many of those
/// strtod and its kin stop at the point of 0.5.
std::optional<double> number_of(std::string_view text);

}  // namespace tenon
