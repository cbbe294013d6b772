#pragma once
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/model_file.h"
#include "views/graph/layered_layout.h"
#include "views/graph/scope_tree.h"
#include "views/shared/scene.h"

namespace tenon::views {

/// The graph of a model file: its nodes, then its inputs, then its outputs, and who gives whom a value.
struct OpGraph {
  std::shared_ptr<const formats::ModelFile> file;
  ScopeTree tree;                          ///< its items are the graph's, by their scopes
  std::vector<std::pair<int, int>> edges;  ///< from item to item, each once
  std::vector<std::vector<int>> weights;   ///< by node: the tensors of the file that it reads

  explicit OpGraph(std::shared_ptr<const formats::ModelFile> of);
  int nodes() const { return static_cast<int>(file->nodes.size()); }
  int items() const { return nodes() + static_cast<int>(file->inputs.size() + file->outputs.size()); }
  bool is_input(int item) const { return item >= nodes() && item < nodes() + static_cast<int>(file->inputs.size()); }
  bool is_output(int item) const { return item >= nodes() + static_cast<int>(file->inputs.size()); }
  /// "Conv", "input", "output"
  std::string op(int item) const;
  /// The name of a node, input or output; of a node without one, that of what it makes.
  std::string name(int item) const;
};

/// The graph laid out from the top down, scopes that are not open as one box each; one that is tall goes on in columns.
/// In units of the picture at zoom 1.
struct GraphLayout {
  static constexpr float kBoxW = 176, kBoxH = 44;
  struct Cell {
    int node = 0;  ///< of the tree: a leaf, or a scope that is not open
    int layer = 0;
    float x = 0, y = 0;         ///< the middle of its upper edge
    std::vector<int> from, to;  ///< cells, each once
  };
  struct Wire {
    int from = 0, to = 0;  ///< cells
    bool back = false;     ///< from a scope into one that it also reads from: it runs upwards
    int last = -1;         ///< the piece that ends at its target
  };
  std::vector<Cell> cells;  ///< layer by layer, from left to right
  std::vector<Wire> wires;
  std::vector<LayeredLayout::Piece> pieces;  ///< of the wires, by whose number they go
  std::vector<int> layers;                   ///< the first cell of each, and then their number
  std::vector<int> cell_at;                  ///< by node of the tree; -1: it is not shown by itself
  float left = 0, right = 0, bottom = 0;

  /// The cell of a node of the tree, or of the scope around it that is shown; -1: none.
  int cell_of(const OpGraph& g, int node) const;
};
/// `open`: scopes of the tree.
GraphLayout lay_out(const OpGraph& graph, const std::set<int>& open);

}  // namespace tenon::views
