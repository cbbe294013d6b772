#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace tenon {

/// The two directions in which rows of numbers differ most, and where every row lies along them: principal component
/// analysis. Found by subspace iteration (Halko, Martinsson, Tropp: Finding Structure with Randomness, 2011) from a
/// fixed start, in double precision and in the order of the rows: the bits depend on the rows alone.
struct PrincipalPlane {
  std::vector<std::array<double, 2>> points;  ///< one a row, about their mean; NaN of a row that holds no number
  std::array<double, 2> share{};              ///< of the rows' variance that each direction has; 0 where there is none
};

/// `rows` is [n, width]. Each direction points where its largest component is positive.
PrincipalPlane principal_plane(const std::vector<float>& rows, int64_t width);

}  // namespace tenon
