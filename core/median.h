#pragma once
#include <algorithm>
#include <vector>

namespace tenon {

/// The middle one of `values`, which are not empty; of an even number the greater of the two in the middle.
template <class T>
T median_of(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<typename std::vector<T>::difference_type>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace tenon
