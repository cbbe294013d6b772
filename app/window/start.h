#pragma once

namespace tenon::views {
class MainWindow;
}

namespace tenon::app {

/// Throws Error where there is no display: Qt would end the process.
void need_display();
/// What has to be said before there is an application.
void before_application();
/// Runs the event loop until the window has nothing left to do; false after ten minutes.
bool settle(views::MainWindow& window);

}  // namespace tenon::app
