#pragma once
#include <cstdint>
#include <vector>

#include "views/shared/scene.h"

namespace tenon::views {

/// A directed graph that is to be drawn from the top down. Lengths are in units of the picture at zoom 1.
struct LayeredGraph {
  enum class Rank : int8_t { any, first, last };
  struct Node {
    float w = 0, h = 0;
    std::vector<float> in, out;  ///< ports on the upper and the lower edge: how far from the left
    Rank rank = Rank::any;       ///< first: above all others, which then have a rank of their own, and last: below
  };
  struct Edge {
    int from = 0, from_port = 0, to = 0, to_port = 0;
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

/// Where its nodes stand and where its wires run. Wires are made of upright and level lines; none crosses a node. What
/// leaves a port runs in one line as far as it can and parts where it has to.
struct LayeredLayout {
  /// A part of a wire, from the source on. Those that go on from its end name it as `before`.
  struct Piece {
    int before = -1;
    int edge = 0;  ///< one of those that run through it
    std::vector<Point> points;
  };
  std::vector<Point> at;  ///< by node: its upper left corner
  std::vector<int> rank;  ///< by node; 0 is the uppermost
  std::vector<Piece> pieces;
  std::vector<int> last;  ///< by edge: the piece that ends at its target; -1 of one from a node to itself
  float w = 0, h = 0;     ///< of all of it; nothing has a coordinate below 0
};

struct LayeredOptions {
  /// A picture that is taller goes on in columns beside each other, as many as make it about so many times as wide as
  /// it is tall; 0: it is never parted.
  float aspect = 0;
  float least_height = 1000;  ///< below this it stays in one column
};

/// Places a graph in layers (Sugiyama, Tagawa and Toda, 1981): edges that close a circle are turned round, each node
/// stands a rank below the lowest that feeds it, nodes of a rank are ordered by sweeps of barycentres, and placed as in
/// Brandes and Köpf (2001), with ports as in Rüegg et al. (2015).
/// The same graph gives the same picture on any machine.
/// Time and memory grow with nodes and edges, also of graphs with very long edges: those that would need too many
/// places within ranks run beside the picture.
LayeredLayout layered_layout(const LayeredGraph& graph, const LayeredOptions& options = {});

}  // namespace tenon::views
