#include "views/canvas/scene_canvas.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QKeySequence>
#include <QMouseEvent>
#include <QOpenGLContext>
#include <QOpenGLFunctions>
#include <QOpenGLWidget>
#include <QPainter>
#include <QScrollArea>
#include <QToolTip>
#include <QWheelEvent>
#include <utility>

namespace tenon::views {

namespace {
Mods mods_of(Qt::KeyboardModifiers m) {
  return {m.testFlag(Qt::ShiftModifier), m.testFlag(Qt::ControlModifier), m.testFlag(Qt::AltModifier)};
}
Button button_of(Qt::MouseButton b) {
  return b == Qt::LeftButton     ? Button::left
         : b == Qt::MiddleButton ? Button::middle
         : b == Qt::RightButton  ? Button::right
                                 : Button::none;
}
Button held(Qt::MouseButtons b) {
  return b & Qt::LeftButton     ? Button::left
         : b & Qt::MiddleButton ? Button::middle
         : b & Qt::RightButton  ? Button::right
                                : Button::none;
}
/// What a screen reader is told of a canvas: its picture in one line, asked of the model at that moment.
class CanvasReader : public QAccessibleWidget {
 public:
  explicit CanvasReader(SceneCanvas* canvas) : QAccessibleWidget(canvas, QAccessible::Canvas), canvas_(canvas) {}
  QString text(QAccessible::Text t) const override {
    if (t == QAccessible::Description || t == QAccessible::Value)
      return QString::fromStdString(canvas_->model().summary());
    return QAccessibleWidget::text(t);
  }

 private:
  SceneCanvas* canvas_;
};
QAccessibleInterface* reader_of(const QString&, QObject* object) {
  auto* canvas = qobject_cast<SceneCanvas*>(object);
  return canvas ? new CanvasReader(canvas) : nullptr;
}
}  // namespace

class SceneCanvas::Screen : public QOpenGLWidget {
 public:
  explicit Screen(SceneCanvas* of) : QOpenGLWidget(of), of_(*of) { setAttribute(Qt::WA_TransparentForMouseEvents); }
  ~Screen() override { disconnect(gone_); }  // the context outlives this object's lambda otherwise

 protected:
  void initializeGL() override {
    // Floating a dock changes the top-level window and with it the GL context: the backend goes down with the old and
    // comes up with the new.
    disconnect(gone_);
    gone_ = connect(context(), &QOpenGLContext::aboutToBeDestroyed, this, [this] {
      makeCurrent();
      of_.renderer_->shut_down();
      doneCurrent();
    });
    of_.renderer_->start_up();
  }
  void paintGL() override { of_.draw(); }

 private:
  SceneCanvas& of_;
  QMetaObject::Connection gone_;
};

SceneCanvas::SceneCanvas(CanvasModel& model, QWidget* parent, Drawn drawn) : QWidget(parent), model_(model) {
  static const bool installed = (QAccessible::installFactory(reader_of), true);
  static_cast<void>(installed);
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  if (drawn == Drawn::on_screen) {
    renderer_ = std::make_shared<SceneRenderer>();
    screen_ = new Screen(this);
  } else {
    renderer_ = SceneRenderer::in_memory();
    memory_ = std::make_unique<MemoryGl>();
  }
  model_.on_change = [this] { refresh(); };
  measure_text_with([](const std::string& text, Face face) {
    auto glyphs = Glyphs::at_scale(1);
    float w = 0;
    for (char32_t c : letters(text)) w += glyphs->glyph(face, c).advance;
    return w + 1;
  });
}

SceneCanvas::~SceneCanvas() {
  model_.on_change = nullptr;
  if (screen_ && renderer_->started()) {
    screen_->makeCurrent();
    renderer_->shut_down();
    screen_->doneCurrent();
  }
  delete screen_;
}

void SceneCanvas::set_theme(ThemeName theme) {
  theme_ = theme;
  refresh();
}

void SceneCanvas::refresh() {
  dirty_ = true;
  screen_ ? screen_->update() : update();
}

void SceneCanvas::finish() {
  if (!screen_) return;  // a picture that was taken out of memory is done
  screen_->makeCurrent();
  screen_->context()->functions()->glFinish();
  screen_->doneCurrent();
}

void SceneCanvas::paintEvent(QPaintEvent*) {
  if (screen_) return;
  const double dpr = devicePixelRatioF();
  const QSize pixels = (QSizeF(size()) * dpr).toSize();
  const bool stale = dirty_ || picture_.size() != pixels || drawn_with_ != Glyphs::at_scale(dpr);
  if (stale && memory_->begin(pixels)) {
    renderer_->start_up();
    draw();
    memory_->take(picture_);
    picture_.setDevicePixelRatio(dpr);
  }
  QPainter(this).drawImage(QPoint(0, 0), picture_);
}

void SceneCanvas::resizeEvent(QResizeEvent* e) {
  if (screen_) screen_->setGeometry(rect());
  QWidget::resizeEvent(e);
}

/// With the context of the drawing current.
void SceneCanvas::draw() {
  if (!renderer_->started()) return;
  dirty_ = false;
  ++frames_;
  const double dpr = devicePixelRatioF();
  try {
    model_.frame({static_cast<float>(width()), static_cast<float>(height())});
    faulty_ = false;
  } catch (...) {
    if (!on_fault) throw;
    if (!std::exchange(faulty_, true)) on_fault();
  }
  drawn_with_ = Glyphs::at_scale(dpr);
  const bool complete = renderer_->draw(model_.last(), size(), dpr, theme_, keyboard_focus_);
  if (QAccessible::isActive()) tell_readers();
  if (!complete) refresh();
}

/// Only news: a reader says every one of these aloud.
void SceneCanvas::tell_readers() {
  std::string now = model_.summary();
  if (now == told_) return;
  told_ = std::move(now);
  QAccessibleEvent changed(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&changed);
}

bool SceneCanvas::event(QEvent* e) {
  if (e->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(e);
    const std::string& tip = model_.last().tip_at(help->pos().x(), help->pos().y());
    if (tip.empty())
      QToolTip::hideText();
    else
      QToolTip::showText(help->globalPos(), QString::fromStdString(tip), this);
    return true;
  }
  if (e->type() == QEvent::Resize || e->type() == QEvent::Show) dirty_ = true;
  return QWidget::event(e);
}

void SceneCanvas::update_cursor(float x, float y) {
  const Scene::Target* t = model_.last().target_at(x, y);
  Qt::CursorShape shape = Qt::ArrowCursor;
  switch (t ? t->cursor : Cursor::arrow) {
    case Cursor::arrow:
      break;
    case Cursor::hand:
      shape = Qt::PointingHandCursor;
      break;
    case Cursor::cross:
      shape = Qt::CrossCursor;
      break;
    case Cursor::move:
      shape = Qt::SizeAllCursor;
      break;
    case Cursor::resize_h:
      shape = Qt::SizeHorCursor;
      break;
    case Cursor::grab:
      shape = Qt::OpenHandCursor;
      break;
  }
  if (cursor().shape() != shape) setCursor(shape);
}

void SceneCanvas::hand_on(PointerEvent::Type type, QMouseEvent* e) {
  PointerEvent p;
  p.type = type;
  p.button = type == PointerEvent::Type::move ? held(e->buttons()) : button_of(e->button());
  p.x = static_cast<float>(e->position().x());
  p.y = static_cast<float>(e->position().y());
  p.mods = mods_of(e->modifiers());
  if (dirty_)
    model_.frame({static_cast<float>(width()), static_cast<float>(height())});  // hits are asked of what will be seen
  if (model_.pointer(p)) refresh();
  update_cursor(p.x, p.y);
}
void SceneCanvas::mousePressEvent(QMouseEvent* e) { hand_on(PointerEvent::Type::press, e); }
void SceneCanvas::mouseReleaseEvent(QMouseEvent* e) { hand_on(PointerEvent::Type::release, e); }
void SceneCanvas::mouseMoveEvent(QMouseEvent* e) { hand_on(PointerEvent::Type::move, e); }
void SceneCanvas::mouseDoubleClickEvent(QMouseEvent* e) { hand_on(PointerEvent::Type::double_click, e); }
void SceneCanvas::leaveEvent(QEvent* e) {
  PointerEvent p;
  p.type = PointerEvent::Type::leave;
  p.x = p.y = -1;
  if (model_.pointer(p)) refresh();
  QWidget::leaveEvent(e);
}

void SceneCanvas::wheelEvent(QWheelEvent* e) {
  WheelEvent w;
  w.x = static_cast<float>(e->position().x());
  w.y = static_cast<float>(e->position().y());
  QPointF notches = e->pixelDelta().isNull() ? QPointF(e->angleDelta()) / 120.0 : QPointF(e->pixelDelta()) / 40.0;
  w.dx = static_cast<float>(notches.x());
  w.dy = static_cast<float>(notches.y());
  w.mods = mods_of(e->modifiers());
  if (model_.wheel(w)) refresh();
  e->accept();
}

void SceneCanvas::keyPressEvent(QKeyEvent* e) {
  KeyEvent k;
  k.key = QKeySequence(e->key()).toString(QKeySequence::PortableText).toStdString();
  k.text = e->text().toStdString();
  k.mods = mods_of(e->modifiers());
  if (!model_.key(k)) return QWidget::keyPressEvent(e);
  refresh();
  bring_into_sight();
}

/// What a key moves is to be seen, and what is scrolled away is not drawn.
void SceneCanvas::bring_into_sight() {
  if (!visibleRegion().isEmpty()) return;
  for (QWidget* w = parentWidget(); w; w = w->parentWidget())
    if (auto* area = qobject_cast<QScrollArea*>(w)) area->ensureWidgetVisible(this);
}

void SceneCanvas::focusInEvent(QFocusEvent* e) {
  // A ring for those who came by keyboard; a mouse shows where it is.
  keyboard_focus_ = e->reason() == Qt::TabFocusReason || e->reason() == Qt::BacktabFocusReason ||
                    e->reason() == Qt::ShortcutFocusReason;
  if (keyboard_focus_) bring_into_sight();
  refresh();
  QWidget::focusInEvent(e);
}
void SceneCanvas::focusOutEvent(QFocusEvent* e) {
  keyboard_focus_ = false;
  refresh();
  QWidget::focusOutEvent(e);
}

}  // namespace tenon::views
