#include "app/window/measured_window.h"

#include "app/window/start.h"
#include "core/error.h"

namespace tenon::app {

using namespace views;

namespace {
constexpr int kLongest = 600'000;
constexpr const char* kNotReady = "the window was not ready after ten minutes";
}  // namespace

double milliseconds(const QElapsedTimer& clock) { return static_cast<double>(clock.nsecsElapsed()) / 1e6; }

MeasuredWindow::Display::Display() {
  need_display();
  qputenv("QT_QPA_PLATFORM", "xcb");  // the offscreen platform cannot draw OpenGL widgets
  qputenv("QT_LOGGING_RULES", "qt.qpa.*=false");
  before_application();
}

MeasuredWindow::MeasuredWindow() {
  QObject::connect(&bench, &Workbench::problem, [this](const QString& title, const QString& message, const QString& h) {
    if (!problem_.isEmpty()) return;
    problem_ = title + ": " + message;
    hint_ = h;
  });
  window.setProperty("sizeFixed", true);
  window.resize(1440, 900);
  window.show();
  settle();
}

void MeasuredWindow::turn_until(const std::function<bool()>& what) {
  const bool turned = app::turn_until([&] { return !problem_.isEmpty() || what(); });
  if (!problem_.isEmpty()) throw Error(problem_.toStdString(), hint_.toStdString());
  if (!turned) throw Error(kNotReady);
}

void MeasuredWindow::settle() {
  if (!app::settle(window)) throw Error(kNotReady);
}

double MeasuredWindow::frame(SceneCanvas* canvas, const std::function<void()>& act) {
  QElapsedTimer clock;
  clock.start();
  const int64_t before = canvas->frames();
  act();
  while (canvas->frames() == before) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, 1);
    if (clock.elapsed() > kLongest) throw Error(kNotReady);
  }
  canvas->finish();
  return milliseconds(clock);
}

}  // namespace tenon::app
