#pragma once
#include <set>
#include <string>
#include <vector>

#include "tracing/record/step_record.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// The autograd graph of a step, in the order in which backward runs: one node a row, the edges as lanes beside it (as
/// a commit graph draws branches), the leaves it feeds as chips. Readable at any depth, and a residual branch is a
/// second lane.
class AutogradModel : public StepModel {
 public:
  enum HitKind { none, node = 1, leaf, group };

  void set_step(const Links& links) override;
  void set_selection(const Selection& s) override;
  /// Folds or unfolds the nodes of one module into one row.
  void toggle(const std::string& module);
  void fold_all(bool folded);

  bool empty() const { return !links_ || links_.record()->grad_nodes.empty(); }
  bool loaded() const { return static_cast<bool>(links_); }
  size_t rows() const { return rows_.size(); }
  int selected() const { return selected_; }
  int64_t saved_bytes() const { return saved_; }
  /// One row a node.
  Table table() const;

  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  struct Row {
    int node = -1;           ///< the node, or the first of a folded module's
    std::vector<int> nodes;  ///< all that the row stands for
    std::vector<int> leaves;
    std::string module;
    bool folded = false, first_of_module = false;
    int lane = 0;
    int64_t saved = 0;
  };
  struct Wire {
    int from_row, to_row, from_lane, lane, to_lane;
  };
  void arrange();
  void order();
  void lay_lanes();
  void draw_row(Scene& scene, const Row& row, float y, float graph_w, float width);
  void draw_wires(Scene& scene, float graph_x);
  float row_y(int row) const;
  void reveal(int node);
  bool next_leaf(const Row& row, int direction);

  Links links_;
  std::vector<int> order_;                // non-leaf nodes, as backward runs
  std::vector<std::vector<int>> leaves_;  // by node: leaves that it feeds first
  std::vector<int> row_of_;               // by node
  std::vector<Row> rows_;
  std::vector<Wire> wires_;
  std::set<std::string> folded_;
  std::vector<bool> bad_;  // by node
  int lanes_ = 1, selected_ = -1;
  int64_t saved_ = 0, most_saved_ = 1;
  Selection selection_;
  float scroll_ = 0, height_ = 0;
  bool dragging_ = false, moved_ = false;
  float press_y_ = 0, drag_scroll_ = 0;
};

}  // namespace tenon::views
