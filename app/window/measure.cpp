// How long the window takes with a large project.
#include <QApplication>
#include <QElapsedTimer>
#include <QLineEdit>
#include <QOpenGLContext>
#include <QOpenGLFunctions>
#include <algorithm>

#include "app/window/start.h"
#include "app/window/window.h"
#include "core/error.h"
#include "views/frame/application.h"
#include "views/shell/main_window.h"

namespace tenon::app {

using namespace views;

namespace {
constexpr int kFrames = 40;

void turn_until(const std::function<bool()>& what) {
  QElapsedTimer clock;
  clock.start();
  while (!what()) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, 2);
    if (clock.elapsed() > 600000) throw Error("the window was not ready after ten minutes");
  }
}

double milliseconds(const QElapsedTimer& clock) { return static_cast<double>(clock.nsecsElapsed()) / 1e6; }

void wait_for(MainWindow& window) {
  if (!settle(window)) throw Error("the window was not ready after ten minutes");
}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

/// A frame as it is seen: drawn, put together with the rest of the window, and finished by the driver.
double frame_of(SceneCanvas* canvas, QOpenGLFunctions* gl) {
  QElapsedTimer clock;
  clock.start();
  const int64_t before = canvas->frames();
  canvas->refresh();
  while (canvas->frames() == before) QCoreApplication::processEvents(QEventLoop::AllEvents, 1);
  canvas->makeCurrent();
  gl->glFinish();
  canvas->doneCurrent();
  return milliseconds(clock);
}
}  // namespace

CurveTimes measure_curves(const std::string& file, int runs) {
  need_display();
  qputenv("QT_QPA_PLATFORM", "xcb");
  qputenv("QT_LOGGING_RULES", "qt.qpa.*=false");
  before_application();
  char name[] = "tenon";
  char* argv[] = {name, nullptr};
  int argc = 1;
  Application app(argc, argv);
  Workbench bench;
  MainWindow window(bench, ThemeName::dark);
  window.setProperty("sizeFixed", true);
  window.resize(1440, 900);
  window.show();
  window.show_view("runs");
  wait_for(window);
  auto* table = window.findChild<TableList*>("runs.table");
  auto* filter = window.findChild<QLineEdit*>("runs.filter");
  CurveTimes t;
  QElapsedTimer clock;
  clock.start();
  bench.open(QString::fromStdString(file));
  turn_until([&] {
    return !bench.contents().runs.empty() && table->shown_rows() == static_cast<int>(bench.contents().runs.size());
  });
  table->viewport()->repaint();
  t.open_ms = milliseconds(clock);
  wait_for(window);
  window.show_view("runs");
  wait_for(window);
  for (const char* words :
       {"lr > 0.001", "lr > 0.001 and best.accuracy >= 0.8", "name ~ 42", "loss < 0.5", "steps > 0"}) {
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) {
      filter->setText("name = nobody");
      clock.restart();
      filter->setText(words);
      table->viewport()->repaint();
      times.push_back(milliseconds(clock));
    }
    wait_for(window);
    t.filter_ms = std::max(t.filter_ms, median(times));
  }
  window.commands().run("layout.train");
  window.show_view("training");
  bench.show_run(bench.contents().runs.front().id);
  wait_for(window);
  std::vector<int64_t> ids;
  for (const auto& r : bench.contents().runs)
    if (static_cast<int>(ids.size()) < runs) ids.push_back(r.id);
  SceneCanvas* canvas = window.view("training")->canvas();
  QOpenGLFunctions* gl = canvas->context()->functions();
  const auto frames_of = [&] {
    std::vector<double> frames;
    for (int i = 0; i < kFrames; ++i) frames.push_back(frame_of(canvas, gl));
    return frames;
  };
  t.alone_ms = median(frames_of());
  clock.restart();
  bench.pick(ids);
  turn_until([&] { return bench.training_model.compared().size() == ids.size(); });
  wait_for(window);
  t.compare_ms = milliseconds(clock);
  t.overlaid = static_cast<int>(ids.size());
  const std::vector<double> frames = frames_of();
  t.frame_ms = median(frames);
  t.worst_frame_ms = *std::max_element(frames.begin(), frames.end());
  clock.restart();
  for (int i = 0; i < kFrames; ++i)
    bench.training_model.frame({static_cast<float>(canvas->width()), static_cast<float>(canvas->height())});
  t.scene_ms = milliseconds(clock) / kFrames;
  return t;
}

}  // namespace tenon::app
