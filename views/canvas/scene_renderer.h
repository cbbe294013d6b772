#pragma once
#include <QSizeF>
#include <memory>

#include "views/canvas/scene_painter.h"

struct ImGuiContext;

namespace tenon::views {

/// Draws scenes with Dear ImGui into the OpenGL context that is current: ImGui's own context, its program and the
/// letters that it has drawn so far.
class SceneRenderer {
 public:
  SceneRenderer();
  /// Where it was started, shut_down() comes first.
  ~SceneRenderer();
  SceneRenderer(const SceneRenderer&) = delete;

  /// All with the OpenGL context current in which it draws.
  void start_up();
  void shut_down();
  bool started() const { return started_; }
  /// Draws the scene on the ground of the theme. `ring`: a frame round all of it. False: a letter was seen for the
  /// first time, the next picture has it.
  bool draw(const Scene& scene, QSizeF size, double dpr, ThemeName theme, bool ring);

  /// The one that all canvases drawn in memory share (note [Where a canvas is drawn]): ImGui's program and its letters
  /// are made for each renderer anew, which is most of what the first picture of a canvas costs. It stays until the
  /// application ends.
  static std::shared_ptr<SceneRenderer> in_memory();

 private:
  ScenePainter painter_;
  ImGuiContext* imgui_ = nullptr;
  bool started_ = false;
};

}  // namespace tenon::views
