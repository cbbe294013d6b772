#pragma once
#include <cstdint>
#include <vector>

namespace tenon {

/// A row beside another one.
struct Beside {
  float distance = 0;  ///< squared
  int32_t row = 0;
  bool operator<(const Beside& o) const { return distance != o.distance ? distance < o.distance : row < o.row; }
};

/// The `count` nearest other rows of each row of `width` numbers, the nearest first; of equally near ones the first.
/// There must be more than `count` rows. Takes time with the square of their number; the bits depend on the rows alone.
std::vector<std::vector<Beside>> nearest_rows(const std::vector<const float*>& rows, int64_t width, int64_t count);

}  // namespace tenon
