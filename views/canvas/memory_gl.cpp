#include "views/canvas/memory_gl.h"

#include <QByteArray>
#include <QOffscreenSurface>
#include <QOpenGLContext>
#include <QOpenGLFramebufferObject>
#include <QOpenGLFunctions>
#include <algorithm>

namespace tenon::views {

struct MemoryGl::Context {
  Context() {
    surface.create();
    there = context.create() && surface.isValid();
  }
  bool make_current() { return there && context.makeCurrent(&surface); }
  QOffscreenSurface surface;
  QOpenGLContext context;
  bool there = false;
};

MemoryGl::MemoryGl() {
  static std::weak_ptr<Context> shared;
  context_ = shared.lock();
  if (!context_) shared = context_ = std::make_shared<Context>();
}

MemoryGl::~MemoryGl() {
  if (into_ && context_->make_current()) into_.reset();
}

bool MemoryGl::make_current() { return context_->make_current(); }

bool MemoryGl::begin(QSize pixels) {
  if (!context_->make_current()) return false;
  if (!into_ || into_->size() != pixels) into_ = std::make_unique<QOpenGLFramebufferObject>(pixels);
  if (!into_->isValid() || !into_->bind()) return false;
  context_->context.functions()->glViewport(0, 0, pixels.width(), pixels.height());
  return true;
}

void MemoryGl::take(QImage& into) {
  if (into.size() != into_->size() || into.format() != QImage::Format_RGB32 || !into.isDetached())
    into = QImage(into_->size(), QImage::Format_RGB32);
  context_->context.functions()->glReadPixels(0, 0, into.width(), into.height(), GL_BGRA, GL_UNSIGNED_BYTE,
                                              into.bits());
  into = std::move(into).mirrored();  // OpenGL's first row is the lowest
}

bool MemoryGl::is_software() {
  static const bool is = [] {
    MemoryGl gl;
    if (!gl.context_->make_current()) return false;
    const auto* text = reinterpret_cast<const char*>(gl.context_->context.functions()->glGetString(GL_RENDERER));
    const QByteArray renderer = QByteArray(text ? text : "").toLower();
    constexpr const char* kSoftware[] = {"llvmpipe", "softpipe", "swrast", "software", "swiftshader", "gdi generic"};
    return std::any_of(std::begin(kSoftware), std::end(kSoftware),
                       [&](const char* name) { return renderer.contains(name); });
  }();
  return is;
}

}  // namespace tenon::views
