#include "views/canvas/warm_up.h"

#include "views/canvas/glyphs.h"
#include "views/canvas/memory_gl.h"
#include "views/canvas/scene_renderer.h"

namespace tenon::views {

WarmUp::WarmUp(QWidget& of) : of_(of) {
  timer_.setInterval(0);
  connect(&timer_, &QTimer::timeout, this, &WarmUp::go_on);
}

void WarmUp::go_on() {
  const int slice = slice_++;
  if (slice < kFaces) {
    const auto glyphs = Glyphs::at_scale(of_.devicePixelRatioF());
    for (char32_t c : usual_letters()) glyphs->glyph(static_cast<Face>(slice), c);
  } else if (slice == kFaces && MemoryGl::is_software()) {
    SceneRenderer::in_memory();
  } else {
    timer_.stop();
    if (slice > kFaces) draw_one();
  }
}

/// Whatever a scene has is drawn by the one program of ImGui: letters and a rectangle have the driver make all of it.
void WarmUp::draw_one() {
  MemoryGl gl;
  constexpr int kSide = 64;
  if (!gl.begin({kSide, kSide})) return;
  Scene scene;
  scene.rect({4, 4, 40, 20}, Ink::accent, 1, 3);
  scene.text({4, 4, 40, 20}, "a", Ink::text);
  const auto renderer = SceneRenderer::in_memory();
  renderer->start_up();
  renderer->draw(scene, {kSide, kSide}, of_.devicePixelRatioF(), ThemeName::dark, false);
  QImage picture;
  gl.take(picture);
}

}  // namespace tenon::views
