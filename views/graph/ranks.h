#pragma once
#include <vector>

#include "views/graph/layered_layout.h"

namespace tenon::views {

/// A graph in ranks, every line between two neighbouring ones: what spans several has a knot in each rank between.
struct Ranked {
  struct Vertex {
    int node = -1;  ///< -1: a knot of a wire
    int rank = 0;
    int order = 0;              ///< within its rank
    float half = 0;             ///< of its width
    std::vector<int> up, down;  ///< lines
    bool knot() const { return node < 0; }
  };
  /// From a vertex to one of the next rank.
  struct Line {
    int upper = 0, lower = 0;
    float upper_at = 0, lower_at = 0;  ///< where it is fixed, from the middle of each
    int net = 0;
  };
  /// All that leaves a port; what runs upwards is one of its own.
  struct Net {
    int from = 0, from_port = 0;
    std::vector<int> edges;
    bool back =
        false;  ///< one edge, from its source up to its target: its knots are in all ranks from one to the other
    bool beside = false;     ///< it would need too many knots: it runs beside the picture
    std::vector<int> knots;  ///< from the highest rank to the lowest
  };
  std::vector<Vertex> vertices;  ///< the nodes come first
  std::vector<Line> lines;
  std::vector<Net> nets;
  std::vector<std::vector<int>> ranks;  ///< vertices, in their order
};

/// Ranks and knots; the order within ranks is that in which a walk from the sources meets them.
Ranked rank(const LayeredGraph& graph);
/// Orders the ranks so that few lines cross.
void reduce_crossings(Ranked& ranked);
int64_t crossings(const Ranked& ranked);
/// The middle of each vertex along its rank, lines as straight as they can be; neighbours keep their distance.
std::vector<float> coordinates(const Ranked& ranked);
/// How far apart the edges of two neighbours of a rank are at least.
float least_gap(const Ranked::Vertex& a, const Ranked::Vertex& b);

}  // namespace tenon::views
