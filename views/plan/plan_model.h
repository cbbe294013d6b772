#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tracing/analyses/finding.h"
#include "tracing/ops/seen_plan.h"
#include "views/shared/axis.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// What a compiled step comes to: along, its kernels in their order, up, the arena; each value is a rectangle from the
/// kernel that computes it to the last that needs it. Of a step that is loaded each kernel selects its op, else its
/// module. The numbers of ops say nothing of that: a step that is recorded may do more of them, as its sums of
/// gradients do not share memory with what a record keeps.
class PlanModel : public StepModel {
 public:
  enum HitKind { none, kernel = 1, value = 2 };  ///< id: an index of plan()->kernels
  using Plan = std::shared_ptr<const tracing::SeenPlan>;

  PlanModel();
  void set_step(const Links& links) override;
  void set_selection(const Selection& s) override;
  /// Null: nothing was planned. One without kernels has the reasons.
  void set_plan(Plan plan);
  const Plan& plan() const { return plan_; }
  bool planned() const { return plan_ && plan_->planned(); }

  /// The sentence above the picture; of a step that has no plan why not.
  const std::string& headline() const { return page_.sentence; }
  /// The kernels in their order. A row's selection tells rows apart, for choose_row(), and is none of the window.
  Table table() const;
  static Selection row_of(size_t kernel) { return Selection::op(static_cast<int64_t>(kernel) + 1, "plan"); }
  void choose_row(const Selection& row);
  /// Its op in the step that is loaded, else its module; kind none where it has neither.
  Selection selection_of(size_t kernel) const;
  /// The kernels that the window's selection is, or has a part in, ascending.
  const std::vector<size_t>& marked() const { return marked_; }
  /// Of those, the one that was chosen here, else the first; -1: none.
  int chosen() const { return chosen_; }
  /// What is known of a kernel, a line each.
  std::string told_of(size_t kernel) const;
  const Axis& kernels_axis() const { return x_; }
  const Axis& bytes_axis() const { return y_; }
  /// Shows all.
  void fit();
  /// Selects the kernel beside which most is alive.
  void go_to_peak();

  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;
  /// Another kernel was chosen here.
  std::function<void()> on_choose;

 protected:
  void draw(Scene& scene) override;

 private:
  void link();
  void choose(size_t kernel);
  float up(double bytes) const { return y_.x + y_.w - (y_.to_px(bytes) - y_.x); }
  Box box_of(const tracing::ArenaPiece& p) const;
  void draw_bands(Scene& scene, Box bands, Box lane) const;
  void draw_chains(Scene& scene, Box lane) const;
  void draw_values(Scene& scene, Box plot) const;
  void draw_names(Scene& scene, Box plot) const;
  void draw_marked(Scene& scene, Box plot) const;
  void draw_axes(Scene& scene, Box plot) const;
  void draw_numbers(Scene& scene, Box plot) const;

  Links links_;
  std::vector<uint32_t> op_of_;    ///< by kernel: its op in the step that is loaded; 0: it has none there
  std::vector<int> kernel_of_op_;  ///< by number of the op; -1: none
  Plan plan_;
  tracing::Finding page_;
  std::vector<std::string> tips_;  ///< of the kernels: a frame has one or two of each
  Axis x_, y_;                     ///< kernels; bytes, from the bottom of the plot up
  Selection selection_;
  std::vector<size_t> marked_;
  int chosen_ = -1;
  Hit hover_, pressed_;
  bool held_ = false, pulling_ = false;
  Point held_at_;
  AxisPull pull_x_, pull_y_;
};

}  // namespace tenon::views
