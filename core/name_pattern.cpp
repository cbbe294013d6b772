#include "core/name_pattern.h"

#include <algorithm>

namespace tenon {

bool fits_pattern(std::string_view pattern, std::string_view text, std::vector<std::string_view>* stars) {
  // Only the last star passed may still grow: what stands before it fits as far to the left as it can.
  constexpr size_t none = std::string_view::npos;
  size_t p = 0, t = 0, star = none, begin = 0;
  if (stars) stars->clear();
  while (t < text.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      if (stars) stars->push_back(text.substr(t, 0));
      star = p++;
      begin = t;
    } else if (p < pattern.size() && t < text.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != none && begin < text.size()) {
      // One character more for the star, and what follows it from there again.
      if (stars) {
        std::string_view& last = stars->back();
        last = text.substr(static_cast<size_t>(last.data() - text.data()), last.size() + 1);
      }
      t = ++begin;
      p = star + 1;
    } else {
      return false;
    }
  }
  return true;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    std::string_view part = text.substr(at, end - at);
    const size_t from = part.find_first_not_of(" \t\n");
    if (from != part.npos) parts.emplace_back(part.substr(from, part.find_last_not_of(" \t\n") - from + 1));
    at = end + 1;
  }
  return parts;
}

}  // namespace tenon
