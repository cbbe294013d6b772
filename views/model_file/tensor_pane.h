#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/formats/model_file.h"
#include "views/model_file/value_slice.h"
#include "views/shared/canvas_model.h"
#include "views/shared/tensor_stats.h"

namespace tenon::views {

/// A tensor of a model file: what it is, a slice of it in colours, its statistics. Values are read elsewhere, when it
/// asks for them.
class TensorPane {
 public:
  enum HitKind { axis_down = 20, axis_up, cancel, read_again };

  using File = std::shared_ptr<const formats::ModelFile>;
  /// -1: none.
  void show(File file, int tensor);
  const File& file() const { return file_; }
  int tensor() const { return tensor_; }
  const formats::ModelFile::Entry* entry() const;

  int row_axis() const { return row_axis_; }
  int col_axis() const { return col_axis_; }
  const Dims& index() const { return index_; }
  /// To another slice along one of the axes that are not shown.
  bool step(int axis, int64_t by);
  /// Through all slices, the last axis first.
  bool next_slice(int direction);
  bool swap_axes();

  void set_slice(ValueSlice s) { slice_ = std::move(s); }
  const std::optional<ValueSlice>& slice() const { return slice_; }
  void set_stats(TensorStats stats);
  const std::optional<TensorStats>& stats() const { return stats_; }
  /// How far the reading of the statistics is, 0 to 1.
  void set_progress(double share) { share_ = share; }
  /// It was cancelled, or failed with these words.
  void stop(std::string why);
  bool waits() const { return entry() && entry()->problem.empty() && !stats_ && stopped_.empty(); }
  /// Asks again for what was cancelled.
  void read() {
    stopped_.clear();
    share_ = -1;
  }

  void draw(Scene& scene, Box box) const;
  std::string summary() const;

 private:
  float draw_axes(Scene& scene, Box box) const;
  float draw_slice(Scene& scene, Box box) const;
  void draw_stats(Scene& scene, Box box) const;

  File file_;
  int tensor_ = -1, row_axis_ = -1, col_axis_ = -1;
  Dims index_;
  std::optional<ValueSlice> slice_;
  std::optional<TensorStats> stats_;
  std::string stopped_;
  double share_ = -1;
};

}  // namespace tenon::views
