#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "projects/distributions.h"
#include "views/shared/axis.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

using projects::Learning;
using projects::learning_of;
/// "moves fast", "hardly moves", "gradient all 0", "frozen", "not finite", to be given to tr(); empty where nothing is
/// to be said.
const char* learning_text(Learning l);

/// How weights, gradients and updates of a run's parameters are spread: all parameters as a table, and one of them as
/// three charts along the steps.
class DistributionsModel : public StepModel {
 public:
  enum HitKind { none, plot = 1, log_toggle };
  enum class Side : uint8_t { weights, gradients, updates };
  static constexpr std::array<Side, 3> kSides = {Side::weights, Side::gradients, Side::updates};
  using Shared = std::shared_ptr<const projects::Distributions>;

  /// Null: none. The parameter that was chosen stays so where the new ones have it.
  void set_distributions(Shared d);
  const Shared& distributions() const { return d_; }
  const std::string& chosen() const { return chosen_; }
  void choose(const std::string& parameter);
  /// The window's selection that a parameter is: its tensor in the step that is loaded, or else its module.
  Selection selection_of(const std::string& parameter) const;
  /// The parameter that a selection is about, the chosen one before others of its module; empty: none.
  std::string parameter_of(const Selection& s) const;

  /// A row a parameter at the end of the run. A row's selection is a module of the parameter's whole name, which tells
  /// weight and bias of a layer apart; selection_of() says what the window calls it.
  Table parameters() const;
  Table list() const;  ///< its first columns
  static Selection row_of(const std::string& parameter) { return Selection::module(parameter, "distributions"); }
  /// A row a step, of a parameter.
  Table points(const std::string& parameter) const;
  /// "first: weights after step 60, gradients and updates of step 51 · 7 points".
  std::string headline() const;

  const Axis& axis() const { return axis_; }
  /// Whether a chart's axis is symmetric-logarithmic: as told, or where few numbers lie far outside of the others.
  bool log(Side side) const;
  void set_log(Side side, bool on);
  void fit();

  void set_step(const Links& links) override { links_ = links; }
  void set_selection(const Selection& s) override;
  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

  std::function<void()> on_choose;  ///< another parameter was chosen

 protected:
  void draw(Scene& scene) override;

 private:
  /// What lies between the ends of an upright axis.
  struct Range {
    double lo = 0, hi = 1;  ///< as place() has them
    double linear = 0;      ///< below it a symmetric-logarithmic axis is linear; 0: all of it is
    double place(double v) const;
  };
  const projects::Distributions::Point* point_at(int64_t step) const;  ///< the nearest; null: none
  const projects::Spread& spread(const projects::Distributions::Point& p, Side side) const;
  /// The point that is read out: hovered, selected, or the last that has something to say.
  const projects::Distributions::Point* read_point(Side side) const;
  std::string read_out(Side side, int parts) const;
  bool choose_beside(int by);
  bool go(const std::string& key);
  // distributions_draw.cpp
  enum class Foot : uint8_t { bare, ticks, titled };  ///< what stands under a plot
  static float height_of(Foot foot);
  bool any(Side side) const;  ///< some point has numbers
  Range range(Side side) const;
  void draw_plot(Scene& scene, Side side, Box box, Foot foot);
  void draw_head(Scene& scene, Side side, Box box) const;
  void draw_y(Scene& scene, const Range& r, Box area) const;
  void draw_x(Scene& scene, Box area, Foot foot) const;
  void draw_spreads(Scene& scene, Side side, const Range& r, Box area) const;
  void draw_marks(Scene& scene, Side side, Box area) const;

  Shared d_;
  std::string chosen_;
  size_t at_ = 0;  ///< of the chosen parameter
  Links links_;
  std::array<std::optional<bool>, 3> log_;
  Axis axis_;
  int64_t hover_ = -1, selected_ = -1;  ///< steps
  bool dragging_ = false, moved_ = false;
  float press_x_ = 0, drag_x_ = 0;
};

}  // namespace tenon::views
