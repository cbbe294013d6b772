#pragma once
#include <cstddef>
#include <vector>

namespace tenon::views {

/// A picture of ranks one below the other, by rank from the top; a gap has the number of the rank below it.
struct TallPicture {
  std::vector<float> upto;         ///< by gap, and the end: how far down it is
  std::vector<float> left, right;  ///< by rank: how far it reaches
  std::vector<int> wires;          ///< by gap: how many lead through it; -1: it cannot be cut
  float aspect = 1.6f;             ///< of the canvas
  float gutter = 0;                ///< between two columns
};

/// The gaps at which it goes on in another column, so that it fits the canvas best: for each number of columns the
/// shortest that hold all. Another column has to be worth it, and so have the wires that lead into it.
std::vector<size_t> choose_cuts(const TallPicture& picture);

}  // namespace tenon::views
