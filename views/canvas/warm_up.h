#pragma once
#include <QTimer>
#include <QWidget>

namespace tenon::views {

/// What the first picture of a canvas costs before anything of it is drawn (letters; where the processor computes
/// OpenGL also its context, program and the code that the driver makes of it), done once in a process before there is a
/// canvas: in slices, so that the window hears in between.
class WarmUp : public QObject {
 public:
  /// For the screen that this widget is on.
  explicit WarmUp(QWidget& of);
  void begin() { timer_.start(); }
  bool under_way() const { return timer_.isActive(); }

 private:
  void go_on();
  void draw_one();

  QWidget& of_;
  QTimer timer_;
  int slice_ = 0;
};

}  // namespace tenon::views
