#pragma once
#include <QImage>
#include <QWidget>
#include <functional>
#include <memory>
#include <string>

#include "views/canvas/memory_gl.h"
#include "views/canvas/scene_renderer.h"
#include "views/shared/canvas_model.h"

namespace tenon::views {

/// Shows a CanvasModel: draws its scene with Dear ImGui and hands it Qt's events. A frame is drawn when something
/// changed and never else.
///
/// Events go straight from Qt to the model as values. ImGui 1.86 polls its input once a frame and loses a press and
/// release that fall between two frames; a model that is told of every edge cannot lose one, at any frame rate.
class SceneCanvas : public QWidget {
  Q_OBJECT
 public:
  /// Note [Where a canvas is drawn].
  enum class Drawn : uint8_t { on_screen, in_memory };
  static Drawn drawn_here() { return MemoryGl::is_software() ? Drawn::in_memory : Drawn::on_screen; }

  explicit SceneCanvas(CanvasModel& model, QWidget* parent = nullptr, Drawn drawn = drawn_here());
  ~SceneCanvas() override;

  void set_theme(ThemeName theme);
  /// Asks for one frame.
  void refresh();
  /// No frame is waiting to be drawn. (A tab behind another counts as visible for Qt, but is not drawn.)
  bool idle() const { return !dirty_ || !isVisible() || visibleRegion().isEmpty(); }
  int64_t frames() const { return frames_; }
  /// Waits until the driver is done with what was asked of it.
  void finish();
  CanvasModel& model() { return model_; }
  /// Called within the catch block of what drawing threw, once until a frame succeeds; what was drawn until then is
  /// shown.
  std::function<void()> on_fault;
  QSize sizeHint() const override { return {640, 360}; }
  QSize minimumSizeHint() const override { return {160, 100}; }

 protected:
  void paintEvent(QPaintEvent* e) override;
  void resizeEvent(QResizeEvent* e) override;
  bool event(QEvent* e) override;
  void mousePressEvent(QMouseEvent* e) override;
  void mouseReleaseEvent(QMouseEvent* e) override;
  void mouseMoveEvent(QMouseEvent* e) override;
  void mouseDoubleClickEvent(QMouseEvent* e) override;
  void wheelEvent(QWheelEvent* e) override;
  void keyPressEvent(QKeyEvent* e) override;
  void leaveEvent(QEvent* e) override;
  void focusInEvent(QFocusEvent* e) override;
  void focusOutEvent(QFocusEvent* e) override;

 private:
  class Screen;
  void draw();
  void tell_readers();
  void hand_on(PointerEvent::Type type, QMouseEvent* e);
  void update_cursor(float x, float y);
  void bring_into_sight();

  CanvasModel& model_;
  std::shared_ptr<SceneRenderer> renderer_;
  Screen* screen_ = nullptr;          ///< drawn on the screen: what lies over all of this
  std::unique_ptr<MemoryGl> memory_;  ///< drawn in memory
  QImage picture_;                    ///< what memory_ drew last
  std::shared_ptr<Glyphs> drawn_with_;
  ThemeName theme_ = ThemeName::dark;
  bool dirty_ = true, keyboard_focus_ = false, faulty_ = false;
  std::string told_;  ///< to screen readers, last
  int64_t frames_ = 0;
};

}  // namespace tenon::views
