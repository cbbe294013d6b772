#pragma once
#include <functional>
#include <string>

#include "views/shared/scene.h"
#include "views/shared/selection.h"

namespace tenon::views {

enum class Button : uint8_t { none, left, middle, right };
struct Mods {
  bool shift = false, ctrl = false, alt = false;
};

struct PointerEvent {
  enum class Type : uint8_t { press, release, move, double_click, leave };
  Type type = Type::move;
  Button button = Button::none;  ///< that changed; for move: that is held
  float x = 0, y = 0;
  Mods mods;
};
struct WheelEvent {
  float x = 0, y = 0;
  float dx = 0, dy = 0;  ///< notches; up is positive
  Mods mods;
};
/// Keys by the name Qt's portable text has: "W", "Left", "Esc", "Delete", "F".
struct KeyEvent {
  std::string key;
  std::string text;  ///< what it types, if anything
  Mods mods;
};

/// The Qt-free half of a canvas: draws itself into a Scene and takes input as plain values. One frame is drawn after an
/// event for which a handler returned true, and after changed() was called; none otherwise.
class CanvasModel {
 public:
  virtual ~CanvasModel() = default;
  /// Draws the picture for a size and keeps it: handlers ask the last frame what lies under the pointer.
  const Scene& frame(Size size) {
    last_ = Scene(size);
    draw(last_);
    return last_;
  }
  const Scene& last() const { return last_; }
  virtual bool pointer(const PointerEvent&) { return false; }
  virtual bool wheel(const WheelEvent&) { return false; }
  virtual bool key(const KeyEvent&) { return false; }
  /// What a screen reader says of the canvas: its content in one line.
  virtual std::string summary() const { return {}; }

  /// Set by the canvas: asks for a frame.
  std::function<void()> on_change;
  /// Set by the shell: the model's choice of the window's selection.
  std::function<void(const Selection&)> on_select;

 protected:
  virtual void draw(Scene& scene) = 0;
  void changed() const {
    if (on_change) on_change();
  }
  void select(const Selection& s) const {
    if (on_select) on_select(s);
  }

  Scene last_;
};

}  // namespace tenon::views
