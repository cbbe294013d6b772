#pragma once
#include <string>

#include "views/shared/canvas_model.h"
#include "views/shared/format.h"

namespace tenon::views {

/// A visible stretch of a number line and where it lies on the canvas. A plain value: every zoom and pan is arithmetic
/// on it.
struct Axis {
  double lo = 0, hi = 1;            ///< visible
  double full_lo = 0, full_hi = 1;  ///< all there is
  float x = 0, w = 1;               ///< pixels
  double min_span = 1;

  double span() const { return hi - lo; }
  float to_px(double v) const { return x + static_cast<float>((v - lo) / (hi - lo)) * w; }
  double to_value(float px) const { return lo + (px - x) / w * (hi - lo); }
  double per_pixel() const { return (hi - lo) / (w > 0 ? w : 1); }
  bool fitted() const { return lo == full_lo && hi == full_hi; }

  void set_full(double a, double b);
  void fit() { lo = full_lo, hi = full_hi; }
  void show(double a, double b);  ///< clamped to what there is
  void zoom(double at, double factor);
  void pan(double by) { show(lo + by, hi + by); }
  /// Scrolls as little as needed for [a, b] to be seen; zooms out where it does not fit.
  void reveal(double a, double b);
  /// W and S zoom, A and D pan, F fits all; true where the key was one of these.
  bool key(const KeyEvent& e);
  bool wheel(const WheelEvent& e);
};

/// An axis pulled by the hand: what was seen when the button went down, and where that was.
struct AxisPull {
  float x = 0;
  double lo = 0, hi = 1;
  void begin(const Axis& axis, float at) { x = at, lo = axis.lo, hi = axis.hi; }
  /// What was under the button is under it again.
  void to(Axis& axis, float at) const {
    const double by = (x - at) * (hi - lo) / axis.w;
    axis.show(lo + by, hi + by);
  }
};

/// Round numbers of bytes (1, 2 or 5 times a power of ten of the unit that suits) that cover [lo, hi].
Ticks byte_ticks(double lo, double hi, double most);

/// A number without the zeros behind its point that a round one does not need: "100 %" of "100.00 %".
std::string without_zeros(std::string number);

/// Gridlines and labels of a time axis in nanoseconds along the top of a box.
void draw_time_axis(Scene& scene, const Axis& axis, Box header, float bottom);

}  // namespace tenon::views
