#pragma once
#include <functional>

namespace tenon::views {
class MainWindow;
}

namespace tenon::app {

/// Throws Error where there is no display: Qt would end the process.
void need_display();
/// What has to be said before there is an application.
void before_application();
/// Runs the event loop, which sleeps while nothing happens, until it is so; false after ten minutes.
bool turn_until(const std::function<bool()>& what);
/// Runs the event loop until the window has nothing left to do; false after ten minutes.
bool settle(views::MainWindow& window);

}  // namespace tenon::app
