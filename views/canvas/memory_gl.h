#pragma once
#include <QImage>
#include <QSize>
#include <memory>

class QOpenGLFramebufferObject;

namespace tenon::views {

// Note [Where a canvas is drawn]
// Where a graphics card draws, a canvas is a QOpenGLWidget: its picture never leaves the card, and OpenGL puts the
// whole window together again for every change anywhere in it, which costs a card nothing. Where the processor computes
// OpenGL (a virtual machine, a remote or virtual display), that is most of a frame, and time that whoever reads a file
// beside it lacks. There the canvas alone is drawn, into memory, and the window remains one that Qt paints by regions.
// Both show the same pixels.

/// A picture that OpenGL draws into memory. All that are alive at a time share one context.
class MemoryGl {
 public:
  MemoryGl();
  ~MemoryGl();
  MemoryGl(const MemoryGl&) = delete;

  /// False: there is no OpenGL.
  bool make_current();
  /// Makes the context current, and what is drawn from now on go into a picture of that size. False: there is no
  /// OpenGL.
  bool begin(QSize pixels);
  /// What was drawn, the right way up. The context stays current.
  void take(QImage& into);

  /// Whether the processor computes OpenGL here. Asked of the driver once.
  static bool is_software();

 private:
  struct Context;
  std::shared_ptr<Context> context_;
  std::unique_ptr<QOpenGLFramebufferObject> into_;
};

}  // namespace tenon::views
