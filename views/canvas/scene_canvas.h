#pragma once
#include <QOpenGLWidget>
#include <functional>
#include <memory>
#include <string>

#include "views/canvas/scene_painter.h"
#include "views/shared/canvas_model.h"

struct ImGuiContext;

namespace tenon::views {

/// Shows a CanvasModel: draws its scene with Dear ImGui and hands it Qt's events. A frame is drawn when something
/// changed and never else.
///
/// Events go straight from Qt to the model as values. ImGui 1.86 polls its input once a frame and loses a press and
/// release that fall between two frames; a model that is told of every edge cannot lose one, at any frame rate.
class SceneCanvas : public QOpenGLWidget {
  Q_OBJECT
 public:
  explicit SceneCanvas(CanvasModel& model, QWidget* parent = nullptr);
  ~SceneCanvas() override;

  void set_theme(ThemeName theme);
  /// Asks for one frame.
  void refresh();
  /// No frame is waiting to be drawn. (A tab behind another counts as visible for Qt, but is not drawn.)
  bool idle() const { return !dirty_ || !isVisible() || visibleRegion().isEmpty(); }
  int64_t frames() const { return frames_; }
  CanvasModel& model() { return model_; }
  /// Called within the catch block of what drawing threw, once until a frame succeeds; what was drawn until then is
  /// shown.
  std::function<void()> on_fault;
  QSize sizeHint() const override { return {640, 360}; }
  QSize minimumSizeHint() const override { return {160, 100}; }

 protected:
  void initializeGL() override;
  void paintGL() override;
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
  void shut_down();
  void tell_readers();
  void hand_on(PointerEvent::Type type, QMouseEvent* e);
  void update_cursor(float x, float y);

  CanvasModel& model_;
  ScenePainter painter_;
  ImGuiContext* imgui_ = nullptr;
  QMetaObject::Connection gone_;
  ThemeName theme_ = ThemeName::dark;
  bool ready_ = false, dirty_ = true, keyboard_focus_ = false, faulty_ = false;
  double atlas_dpr_ = 0;
  std::string told_;  ///< to screen readers, last
  int64_t frames_ = 0;
};

}  // namespace tenon::views
