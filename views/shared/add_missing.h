#pragma once
#include <algorithm>
#include <vector>

namespace tenon::views {

/// Adds what is not among `all` yet: the same things come from a file and from who writes it.
template <class T>
void add_missing(std::vector<T>& all, const std::vector<T>& more) {
  for (const T& one : more)
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
}

}  // namespace tenon::views
