#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::views {

/// "layer1.0.conv1.weight" and "optimizer/state/0/exp_avg" as the parts of the way to it. Of a name with very many
/// parts the last holds the rest.
std::vector<std::string> scope_parts(std::string_view name);

/// Things of a file by the modules that their names lead through. Blocks that are built alike and numbered (layers.0 to
/// layers.11) stand in one node more, so that they can be folded into one row.
class ScopeTree {
 public:
  struct Item {
    std::string scope, name;  ///< "layer1.0.conv1" and "weight"; a name may have parts, too
    std::string form;         ///< what makes two alike: its type and shape
    int64_t elements = 0;
    uint64_t bytes = 0;
  };
  struct Node {
    std::string name;
    int parent = -1;
    int item = -1;    ///< of a leaf; scopes have none
    int repeats = 0;  ///< of a node that holds blocks built alike: how many
    int depth = 0;
    std::vector<int> children;
    // Of all below it.
    int items = 0;
    int64_t elements = 0;
    uint64_t bytes = 0;
    uint64_t form = 0;  ///< equal of two nodes that are built alike
    bool leaf() const { return item >= 0; }
  };
  static constexpr int kRoot = 0;

  ScopeTree() : nodes_(1) {}
  explicit ScopeTree(const std::vector<Item>& items);

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& at(int node) const { return nodes_[static_cast<size_t>(node)]; }
  int leaf_of(int item) const { return leaves_[static_cast<size_t>(item)]; }
  /// "layer1.0.conv1"; nothing of the root. Nodes of blocks built alike have no name in it.
  std::string path(int node) const;
  bool below(int node, int scope) const;

  /// The scopes that are open at first: as many levels as make no more than `rows` rows.
  std::set<int> first_open(int rows) const;
  /// The nodes that are seen, from top to bottom: the children of the root and of every open scope.
  std::vector<int> rows(const std::set<int>& open) const;
  /// Those that hold one of the items, all scopes open.
  std::vector<int> rows_with(const std::vector<bool>& items) const;
  /// The outermost scope around an item that is not open and holds more than it; its leaf where there is none.
  int seen(int item, const std::set<int>& open) const;

 private:
  int add(int parent, std::string name);
  void sum_up(int node);
  void sort_children(int node);
  void gather_repeats(int node);

  std::vector<Node> nodes_;
  std::vector<int> leaves_;  ///< by item
};

}  // namespace tenon::views
