#pragma once
#include <QElapsedTimer>
#include <functional>

#include "views/frame/application.h"
#include "views/shell/main_window.h"

namespace tenon::app {

/// A real window of 1440x900, on the display that there is, whose work is timed. Throws Error where there is none.
class MeasuredWindow {
 public:
  MeasuredWindow();

 private:
  struct Display {
    Display();
  } display_;
  char name_[6] = "tenon";
  char* argv_[2] = {name_, nullptr};
  int argc_ = 1;
  views::Application app_{argc_, argv_};

 public:
  views::Workbench bench;
  views::MainWindow window{bench, views::ThemeName::dark};

  /// Turns the event loop. Throws Error where that takes more than ten minutes, or where the window tells a problem.
  void turn_until(const std::function<bool()>& what);
  /// Until the window has nothing left to do.
  void settle();
  /// A frame as it is seen: `act` asks for it; it is drawn, put together with the rest of the window, and finished by
  /// the driver. Milliseconds.
  double frame(views::SceneCanvas* canvas, const std::function<void()>& act);

 private:
  QString problem_, hint_;
};

double milliseconds(const QElapsedTimer& clock);

}  // namespace tenon::app
