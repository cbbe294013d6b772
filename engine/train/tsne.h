#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/train/principal_plane.h"

namespace tenon {

struct TsneOptions {
  double perplexity = 30;  ///< how many neighbours count for a row; fewer where there are few rows
  int iterations = 750;
};

/// Places rows in a plane so that those that are alike stand together: t-SNE (van der Maaten and Hinton: Visualizing
/// Data using t-SNE, JMLR 2008), from their principal plane, with the neighbours and the forces between all points
/// worked out exactly. Distances between groups, and their sizes, mean little. Takes time with the square of the number
/// of rows. The bits depend on the rows alone, not on the number of threads.
///
/// `rows` is [n, width], `start` their principal plane. One point a row about their mean; NaN of a row that holds no
/// number. `progress` is called with iterations; returning false throws Error "cancelled".
std::vector<std::array<double, 2>> tsne(const std::vector<float>& rows, int64_t width, const PrincipalPlane& start,
                                        const TsneOptions& options = {},
                                        const std::function<bool(int64_t done, int64_t total)>& progress = {});

}  // namespace tenon
