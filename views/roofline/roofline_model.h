#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tracing/ops/roofline.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// The ops of the step that is loaded under the roof of the processor, both axes logarithmic: a dot for each row of
/// tracing::Roofline, as large as its time. Ops without arithmetic have no place along the axis: they stand left of it,
/// as far below the roof as they are below the copy bandwidth.
class RooflineModel : public StepModel {
 public:
  enum HitKind { none, dot = 1 };  ///< id: a row of roofline()

  void set_step(const Links& links) override;
  void set_selection(const Selection& s) override;
  /// Nothing: they are not known.
  void set_ceilings(std::optional<kernels::Ceilings> ceilings);
  const std::optional<kernels::Ceilings>& ceilings() const { return ceilings_; }

  /// Nothing where no step is loaded, or the ceilings are not known.
  const std::optional<tracing::Roofline>& roofline() const { return roofline_; }
  /// The sentence above the picture.
  const std::string& headline() const { return page_.sentence; }
  /// The rows, each selecting the longest of its calls.
  Table table() const;
  Selection selection_of(size_t row) const;
  /// The rows that the window's selection is in, or has a part in.
  const std::vector<size_t>& marked() const { return marked_; }

  bool pointer(const PointerEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  /// Where a logarithmic axis begins and ends, as powers of ten, and where it lies.
  struct LogAxis {
    double lo = 0, hi = 1;
    float from = 0, to = 1;  ///< pixels of lo and hi
    float at(double value) const;
  };
  struct Plot {
    Box area, copies;  ///< the plot, and left of it the ops without arithmetic; no width: there are none
    LogAxis x, y;
  };
  void work_out();
  Plot lay_out(Size size) const;
  Point place_of(const tracing::RoofRow& row, const Plot& l) const;
  float radius_of(const tracing::RoofRow& row) const;
  std::string told_of(const tracing::RoofRow& row) const;
  void draw_axes(Scene& scene, const Plot& l) const;
  void draw_roof(Scene& scene, const Plot& l) const;
  void draw_dots(Scene& scene, const Plot& l, std::vector<Box>& taken) const;
  void draw_figures(Scene& scene, const Plot& l, std::vector<Box>& taken) const;
  void draw_names(Scene& scene, const Plot& l, std::vector<Box>& taken) const;
  void draw_legend(Scene& scene, Box row) const;
  bool has_copies() const;

  Links links_;
  std::optional<kernels::Ceilings> ceilings_;
  std::optional<tracing::Roofline> roofline_;
  tracing::Finding page_;
  std::vector<int> row_of_;  ///< by sequence number; -1: of no row
  Selection selection_;
  std::vector<size_t> marked_;
  Hit hover_, pressed_;
};

}  // namespace tenon::views
