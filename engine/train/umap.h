#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/train/principal_plane.h"

namespace tenon {

struct UmapOptions {
  int64_t neighbours = 15;  ///< of a row that it is held to; fewer where there are few rows
  double min_distance = 0.1;
  int epochs = 400;
};

/// Places rows in a plane so that the graph of their nearest neighbours is kept: UMAP (McInnes, Healy, Melville: UMAP:
/// Uniform Manifold Approximation and Projection, 2018), from their principal plane. More of how groups lie to each
/// other is kept than by t-SNE. The neighbours are exact, which takes time with the square of the number of rows; the
/// points move one after the other, so that the bits depend on the rows alone.
///
/// `rows` is [n, width], `start` their principal plane. One point a row about their mean; NaN of a row that holds no
/// number. `progress` is called with epochs; returning false throws Error "cancelled".
std::vector<std::array<double, 2>> umap(const std::vector<float>& rows, int64_t width, const PrincipalPlane& start,
                                        const UmapOptions& options = {},
                                        const std::function<bool(int64_t done, int64_t total)>& progress = {});

}  // namespace tenon
