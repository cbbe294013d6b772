#pragma once
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "tracing/record/step_record.h"
#include "views/shared/step_cursor.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"
#include "views/shared/tensor_stats.h"

namespace tenon::views {

/// One tensor of a step: the values of a two-dimensional slice, where they lie in the storage, and their statistics.
class TensorModel : public StepModel {
 public:
  enum HitKind { none, cell = 1, storage_cell, axis, axis_down, axis_up, alias };

  void set_step(const Links& links) override;
  void set_selection(const Selection& s) override;
  void show(int tensor);
  void set_stats(int tensor, const TensorStats& stats);
  /// Statistics are long work: the view is asked for them and hands them back through set_stats().
  std::function<void(int tensor)> on_need_stats;

  bool loaded() const { return static_cast<bool>(links_); }
  int tensor() const { return tensor_; }
  const tracing::TensorRecord* record() const;
  /// Its numbers as of the op one stands at; undefined where they were not kept.
  Tensor value() const;
  bool has_values() const;
  /// The op one stands at; 0: none.
  uint32_t as_of() const { return cursor_.seq(); }
  /// It is written over within the step, so what it holds depends on the op one stands at.
  bool changes() const { return record() && !record()->versions.empty(); }

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
  void draw_storage(Scene& scene, Box box);
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
  std::optional<TensorStats> stats_;
  std::unordered_map<int64_t, std::pair<int64_t, int>> slice_;  // storage position -> (r * cols + c, how many)
  bool slice_stale_ = true;
};

}  // namespace tenon::views
