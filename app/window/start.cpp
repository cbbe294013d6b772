#include "app/window/start.h"

#include <QApplication>
#include <QElapsedTimer>
#include <QGuiApplication>
#include <QSurfaceFormat>
#include <QTimer>

#include "core/error.h"
#include "views/shell/main_window.h"

namespace tenon::app {

void need_display() {
  if (qEnvironmentVariableIsEmpty("DISPLAY") && qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY"))
    throw Error(
        "there is no display (DISPLAY is not set)",
        "run it in a desktop session, or under a virtual display: xvfb-run -a -s '-screen 0 1600x1000x24' tenon ...");
}

void before_application() {
  QSurfaceFormat format;
  format.setVersion(3, 3);
  format.setProfile(QSurfaceFormat::CoreProfile);
  format.setSwapInterval(0);  // frames come from events; waiting for the screen would only hold the UI thread up
  QSurfaceFormat::setDefaultFormat(format);
  QCoreApplication::setAttribute(Qt::AA_ShareOpenGLContexts);
  QCoreApplication::setApplicationName("Tenon");
  QCoreApplication::setOrganizationName("Tenon");
  QGuiApplication::setDesktopFileName("tenon");  // by which a desktop finds its icon and name
}

bool turn_until(const std::function<bool()>& what) {
  QElapsedTimer clock;
  clock.start();
  while (!what()) {
    QTimer::singleShot(5, qApp, [] {});  // wakes it
    QCoreApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents);
    if (clock.elapsed() > 600000) return false;
  }
  return true;
}

bool settle(views::MainWindow& window) {
  int quiet = 0;
  return turn_until([&] {
    quiet = window.idle() ? quiet + 1 : 0;
    return quiet > 4;
  });
}

}  // namespace tenon::app
