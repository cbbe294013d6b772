#pragma once
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "engine/spec/view_chain.h"
#include "engine/spec/walk_cost.h"
#include "tracing/record/step_record.h"
#include "views/shared/step_cursor.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"
#include "views/shared/tensor_stats.h"

namespace tenon::views {

/// One tensor of a step: the values of a two-dimensional slice, where they lie in the storage, and their statistics.
class TensorModel : public StepModel {
 public:
  enum HitKind { none, cell = 1, storage_cell, axis, axis_down, axis_up, alias, writer };

  void set_step(const Links& links) override;
  void set_selection(const Selection& s) override;
  void show(int tensor);
  void set_stats(int tensor, const TensorStats& stats);
  /// Statistics are long work: the view is asked for them and hands them back through set_stats().
  std::function<void(int tensor)> on_need_stats;

  bool loaded() const { return static_cast<bool>(links_); }
  int tensor() const { return tensor_; }
  /// The tensor as it is shown: through the views that are tried.
  const tracing::TensorRecord* record() const;
  /// Its numbers as of the op one stands at; undefined where they were not kept.
  Tensor value() const;
  /// Tries views on the tensor, as ".permute(1, 0)[::2]" (view_chain()); none with an empty text. Nothing in the step
  /// changes. Throws Error (usage) for a text that is none, and shows what it showed.
  void try_views(const std::string& text);
  const std::string& views() const { return views_; }
  /// Why what is being typed is none; shown in the place of walk_text() until something is shown anew.
  void refuse_views(const std::string& why);
  /// "a view, nothing is copied · read in order 64 cache lines are fetched, 1.0 times what it fills"
  std::string walk_text() const;
  bool has_values() const;
  /// The op one stands at; 0: none.
  uint32_t as_of() const { return cursor_.seq(); }
  /// It is written over within the step, so what it holds depends on the op one stands at.
  bool changes() const { return source() && !source()->versions.empty(); }

  int row_axis() const { return row_axis_; }  ///< -1: the tensor has fewer than two dimensions
  int col_axis() const { return col_axis_; }
  void set_axes(int row, int col);
  void set_index(int axis, int64_t i);
  int64_t index(int axis) const { return index_[axis]; }
  /// The focused element, as a full index.
  Dims focus() const;
  void set_focus(int64_t row, int64_t col);
  int64_t focus_position() const;  ///< in the storage, in elements
  void set_heat(bool heat);
  bool heat() const { return heat_; }

  /// Every tensor of the step.
  Table list() const;
  /// The slice that is shown, as numbers.
  Table values() const;

  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  /// The tensor as the step has it.
  const tracing::TensorRecord* source() const;
  Tensor source_value() const;
  /// What is shown is another layout now: the slice, the statistics and the cost are worked out anew.
  void layout_changed();
  void look_again();
  int64_t rows() const;
  int64_t cols() const;
  Dims at(int64_t r, int64_t c) const;
  int64_t position(const Dims& index) const;
  void move_focus(int64_t dr, int64_t dc);
  void next_slice(int direction);
  void draw_head(Scene& scene, Box box);
  /// How much height they took.
  float draw_axes(Scene& scene, Box box);
  void draw_cells(Scene& scene, Box box);
  void draw_heat(Scene& scene, Box box);
  void draw_stats(Scene& scene, Box box);
  /// The ops that wrote over it in this step; how much height they took.
  float draw_writers(Scene& scene, Box box);
  void draw_storage(Scene& scene, Box box);
  float storage_height() const;
  /// The others in its memory, as many as are marked on the cells; none of a copy.
  std::vector<int> aliases() const;
  void draw_overview(Scene& scene, Box bar, int64_t storage_elements, int64_t window_a, int64_t window_b);
  double color_scale() const;
  /// Which cells of the slice lie at a storage position, and how many (zero and overlapping strides: more than one).
  void index_slice();

  Links links_;
  StepCursor cursor_;
  int tensor_ = -1, row_axis_ = -1, col_axis_ = -1;
  int64_t index_[kMaxDims] = {};
  int64_t focus_row_ = 0, focus_col_ = 0, top_ = 0, left_ = 0;
  int64_t visible_rows_ = 1, visible_cols_ = 1;
  bool heat_ = false;
  std::string views_, refusal_;
  std::vector<ViewStep> steps_;
  tracing::TensorRecord viewed_;  ///< where views are tried
  std::optional<WalkCost> cost_;
  std::optional<TensorStats> stats_;
  std::unordered_map<int64_t, std::pair<int64_t, int>> slice_;  // storage position -> (r * cols + c, how many)
  bool slice_stale_ = true;
};

}  // namespace tenon::views
