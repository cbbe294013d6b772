#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::views {

/// Whether words are read from their front, and lose their end where there is no room: more than four blanks outside of
/// brackets. (The blanks of a kernel's name stand between its template's arguments.)
bool is_sentence(std::string_view words);

/// Shortens names of one list so that they still differ: of "features.0.weight" and "features.3.weight" the parts that
/// many of the names share go first, not whatever stands in the middle. Parts end at a point or a stroke; the one
/// that fewest share stays.
class NameShortener {
 public:
  NameShortener() = default;
  explicit NameShortener(const std::vector<std::string>& names);
  /// The name where it fits; else without the parts that most of the names have at that place, "…" in their stead.
  /// What is left of it in the end may still not fit.
  std::string shorten(const std::string& name, const std::function<bool(const std::string&)>& fits) const;

 private:
  std::unordered_map<std::string, int> names_with_;  ///< names that have a part, by its place and its text
};

}  // namespace tenon::views
