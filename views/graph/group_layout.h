#pragma once
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "views/graph/layered_layout.h"
#include "views/graph/scope_tree.h"

namespace tenon::views {

/// A graph whose nodes are the items of a tree of scopes.
struct GroupedGraph {
  struct Item {
    float w = 0, h = 0;
    int inputs = 1, outputs = 1;
  };
  struct Wire {
    int from = 0, from_port = 0, to = 0, to_port = 0;  ///< items
  };
  /// Ports that a scope shows as long as it is not open: which one stands for a port of an item in it.
  struct Ports {
    int inputs = 0, outputs = 0;
    std::map<std::pair<int, int>, int> in, out;  ///< by item and its port
  };
  std::vector<Item> items;  ///< as many as the tree has
  std::vector<Wire> wires;
  std::map<int, Ports> ports;  ///< by node of the tree; other scopes have a port for each value that crosses their edge
  float folded_w = 0, folded_h = 0;  ///< of a scope that is not open

  /// The port of a scope that a wire leads into, or out of; -1: the scope has none of its own.
  int port_into(int node, const Wire& wire) const;
  int port_out_of(int node, const Wire& wire) const;
};

/// Where the ports of a box stand, from its left edge: spread over its width.
float port_at(float width, int port, int count);

/// A graph laid out with each open scope as a frame round what it holds, and one that is not open as a box. A scope is
/// laid out by itself, so that no frame reaches into another; what leads into or out of it crosses the upper or lower
/// edge of its frame.
struct GroupLayout {
  struct Cell {
    int node = 0;  ///< of the tree: an item's leaf, or a scope that is not open
    Box box;
    int frame = -1;  ///< the innermost one around it
  };
  struct Frame {
    int node = 0;
    Box box;
    int around = -1, depth = 0;
  };
  struct Piece {
    int before = -1;
    int wire = 0;  ///< one of those that run through it
    std::vector<Point> points;
  };
  std::vector<Cell> cells;
  std::vector<Frame> frames;  ///< outer ones first
  std::vector<Piece> pieces;
  std::vector<int> last;      ///< by wire: the piece that ends at its target; -1: it is within a scope that is not open
  std::vector<int> cell_at;   ///< by node of the tree; -1: it has none
  std::vector<int> frame_at;  ///< the same
  float w = 0, h = 0;

  /// The cell of a node, or that of the scope around it which is seen; -1: it is an open scope.
  int cell_of(const ScopeTree& tree, int node) const;
};

/// A scope that is worth a frame or box of its own: one with a single item, and the inner one of two that hold the
/// same, are left out.
bool is_group(const ScopeTree& tree, int node);

GroupLayout group_layout(const GroupedGraph& graph, const ScopeTree& tree, const std::set<int>& open,
                         const LayeredOptions& options = {});

}  // namespace tenon::views
