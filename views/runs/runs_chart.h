#pragma once
#include <string>
#include <vector>

#include "views/runs/run_groups.h"
#include "views/shared/canvas_model.h"

namespace tenon::views {

/// Every run a point: one field against another, coloured by a third; or every run a line through many fields, each an
/// axis, to what came of it. A field of words, or of numbers and words, has a place for each of its values; numbers
/// that span more than two powers of ten stand on a logarithmic axis.
class RunsChart : public CanvasModel {
 public:
  enum HitKind { none, run = 1 };  ///< of a run: its id

  void set_rows(RunRows rows);
  void set_fields(const RunField& x, const RunField& y);
  /// Runs are lines through these, the field up the chart last; none: they are points.
  void set_axes(const std::vector<RunField>& axes);
  /// Nothing: every run has the same colour.
  void set_group(const std::optional<RunField>& group);
  void set_picked(const std::vector<int64_t>& runs);
  void set_selected(int64_t run);

  bool pointer(const PointerEvent& e) override;
  /// Left and Right go to the next run along the axis, Home and End to its ends.
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  struct Spot {
    const RunRow* row = nullptr;
    float x = 0, y = 0;  ///< along the axes, 0 to 1
    int group = -1;
  };
  /// What an axis shows.
  struct Scale {
    bool log = false;
    double lo = 0, hi = 1;
    std::vector<std::string> names;  ///< of the places of words; empty: numbers
    std::string metric;              ///< how its numbers are written
    std::optional<float> place(const RunValue& v) const;
    /// Where lines are drawn, with what they say.
    std::vector<std::pair<float, std::string>> marks(int most) const;
  };
  Scale scale_of(const RunField& field) const;
  void place();
  void draw_points(Scene& scene, Box area) const;
  void draw_lines(Scene& scene) const;
  void draw_line(Scene& scene, const Spot& s, const std::vector<float>& xs, Box area) const;
  void draw_axis(Scene& scene, float x, Box area, float room, const RunField& field, const Scale& scale) const;
  Ink ink_of(const Spot& s) const;
  std::string tip_of(const Spot& s) const;
  std::string none_said() const;
  void draw_axes(Scene& scene, Box area) const;
  void draw_means(Scene& scene, Box area) const;
  void draw_legend(Scene& scene, Box box) const;
  void choose(const RunRow& row);

  RunRows rows_;
  RunField x_, y_;
  std::vector<RunField> axes_;
  std::vector<Scale> scales_;  ///< of axes_
  std::optional<RunField> group_;
  std::vector<std::string> group_names_;
  std::vector<int64_t> picked_;
  int64_t selected_ = 0;
  Scale along_, up_;
  std::vector<Spot> spots_;  ///< from left to right; of lines by the field up the chart
};

}  // namespace tenon::views
