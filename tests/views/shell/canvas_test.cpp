// A scene on a real canvas: what ImGui makes of it.
#include <gtest/gtest.h>

#include <QDockWidget>
#include <cmath>

#include "tests/views/shell/window_fixture.h"

namespace tenon::views {
namespace {

/// Rectangles of every awkward size, round and outlined.
class Rectangles : public CanvasModel {
 protected:
  void draw(Scene& scene) override {
    for (float side : {0.f, 1e-6f, 1.f, 2.f, 2.5f, 3.f, 4.f, 9.f, 1e6f}) {
      for (int step = -4; step <= 4; ++step) {
        float w = side;
        for (int i = 0; i < std::abs(step); ++i) w = std::nextafter(w, step < 0 ? 0.f : 2e6f);
        for (float radius : {0.f, 1e-7f, 0.5f, 2.f, 3.f, 1e6f})
          for (const Box& box : {Box{0, 0, w, 20}, Box{0, 0, 20, w}, Box{0, 0, w, w}}) {
            scene.rect(box, Ink::accent, 1, radius);
            scene.outline(box, Ink::text, 2, radius);
            ++drawn;
          }
      }
    }
  }

 public:
  int drawn = 0;
};
class RectanglesView : public View {
 public:
  RectanglesView(const ViewDef& def, Bench& bench, CanvasModel& model, QWidget* parent) : View(def, bench, parent) {
    set_content(make_canvas(model));
    set_empty(false);
  }
};

using Canvas = testing::WindowTest;

TEST_F(Canvas, rectangles_of_every_size_are_drawn) {
  make_window();
  Rectangles model;
  auto* dock = new QDockWidget(window_.get());
  const ViewDef def{.id = "rectangles", .title = "Rectangles", .icon = "log", .order = 1000};
  auto* view = new RectanglesView(def, *bench_, model, dock);
  dock->setWidget(view);
  window_->addDockWidget(Qt::BottomDockWidgetArea, dock);
  dock->show();
  until([&] { return model.drawn > 0; });
  settle();
  EXPECT_GE(model.drawn, 9 * 9 * 6 * 3);
  delete dock;
  settle();
}

}  // namespace
}  // namespace tenon::views
