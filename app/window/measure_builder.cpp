// How long the builder takes with a model of very many layers.
#include <QMouseEvent>
#include <QWheelEvent>

#include "app/window/jobs.h"
#include "app/window/measured_window.h"
#include "app/window/watchdog.h"
#include "core/median.h"

namespace tenon::app {

using namespace views;

namespace {

void send_wheel(SceneCanvas* canvas, Qt::KeyboardModifiers held, int notches) {
  const QPointF at(canvas->width() * 0.5, canvas->height() * 0.5);
  QWheelEvent e(at, canvas->mapToGlobal(at), {}, {0, 120 * notches}, Qt::NoButton, held, Qt::NoScrollPhase, false);
  QCoreApplication::sendEvent(canvas, &e);
}
void send_mouse(SceneCanvas* canvas, QEvent::Type type, QPointF at, bool down) {
  const Qt::MouseButton button = type == QEvent::MouseMove ? Qt::NoButton : Qt::LeftButton;
  QMouseEvent e(type, at, canvas->mapToGlobal(at), button, down ? Qt::LeftButton : Qt::NoButton, Qt::NoModifier);
  QCoreApplication::sendEvent(canvas, &e);
}

class BuilderHand {
  static constexpr float kBoxes = 0.3f;  // from this zoom on each of very many layers can be taken hold of
  static constexpr size_t kMany = 3000;

 public:
  BuilderHand(MeasuredWindow& m, BuilderTimes& t, std::string state)
      : m_(m), t_(t), state_(std::move(state)), canvas_(m.window.view("builder")->canvas()) {}

  void all() {
    key(Qt::Key_F, "f");
    act("zoom", 30, [&](int i) { send_wheel(canvas_, Qt::ControlModifier, i < 15 ? 1 : -1); });
    act("pan", 30, [&](int i) { send_wheel(canvas_, Qt::NoModifier, i < 15 ? 1 : -1); });
    act("hover", 40, [&](int i) { send_mouse(canvas_, QEvent::MouseMove, along(i, 40), false); });
    act("click", 20, [&](int i) {
      send_mouse(canvas_, QEvent::MouseButtonPress, along(i, 20), true);
      send_mouse(canvas_, QEvent::MouseButtonRelease, along(i, 20), false);
    });
    const QPointF corner(8, canvas_->height() - 40);
    send_mouse(canvas_, QEvent::MouseButtonPress, corner, true);
    act("band", 30, [&](int i) { send_mouse(canvas_, QEvent::MouseMove, along(i, 30), true); });
    send_mouse(canvas_, QEvent::MouseButtonRelease, along(29, 30), false);
    key(Qt::Key_Escape, "");
    drag();
  }

 private:
  QPointF along(int i, int n) const {
    const double s = (i + 1.0) / (n + 1);
    return {canvas_->width() * s, canvas_->height() * (0.15 + 0.7 * s)};
  }
  /// A layer or group that is seen, to one side and back; let go, it is an edit.
  void drag() {
    const BuilderModel& model = m_.bench.builder;
    if (model.layout().picture().cells.size() > kMany) {  // where one can be taken hold of
      while (model.zoom() < kBoxes) send_wheel(canvas_, Qt::ControlModifier, 1);
      m_.bench.builder.reveal(model.spec().layers[model.spec().layers.size() / 2].name);
      m_.settle();
    }
    for (const LayerSpec& l : model.spec().layers) {
      const Box b = model.box_of(l);
      const QPointF from(b.x + b.w / 2, b.y + b.h / 2);
      if (b.w <= 0 || !QRectF(40, 40, canvas_->width() - 80, canvas_->height() - 160).contains(from)) continue;
      send_mouse(canvas_, QEvent::MouseButtonPress, from, true);
      act("drag", 30,
          [&](int i) { send_mouse(canvas_, QEvent::MouseMove, from + QPointF(i < 15 ? 3 * i : 90 - 3 * i, 5), true); });
      act("drop", 1, [&](int) { send_mouse(canvas_, QEvent::MouseButtonRelease, from + QPointF(0, 5), false); });
      m_.settle();
      m_.window.commands().run("edit.undo");  // what is measured next is laid out by the program
      m_.settle();
      return;
    }
  }
  void key(int code, const char* text) {
    QKeyEvent e(QEvent::KeyPress, code, Qt::NoModifier, text);
    QCoreApplication::sendEvent(canvas_, &e);
    m_.settle();
  }
  void act(const char* name, int count, const std::function<void(int)>& hand) {
    std::vector<double> frames, work;
    for (int i = 0; i < count; ++i) {
      const int64_t before = processor_time();
      frames.push_back(m_.frame(canvas_, [&] {
        hand(i);
        canvas_->refresh();
      }));
      work.push_back(static_cast<double>(processor_time() - before) / 1e6);
    }
    t_.hands.push_back({state_ + "_" + name, median_of(frames), *std::max_element(frames.begin(), frames.end()),
                        median_of(work), *std::max_element(work.begin(), work.end())});
  }

  MeasuredWindow& m_;
  BuilderTimes& t_;
  std::string state_;
  SceneCanvas* canvas_;
};

}  // namespace

BuilderTimes measure_builder(const std::string& file) {
  MeasuredWindow m;
  m.window.show_view("builder");
  m.settle();
  BuilderTimes t;
  QElapsedTimer clock;
  int64_t began = 0;
  const auto start = [&] {
    clock.restart();
    began = processor_time();
  };
  const auto stop = [&](const char* name) {
    SceneCanvas* canvas = m.window.view("builder")->canvas();
    m.frame(canvas, [&] { canvas->refresh(); });
    t.waits.push_back({name, milliseconds(clock), static_cast<double>(processor_time() - began) / 1e6});
  };
  start();
  m.bench.open(QString::fromStdString(file));
  m.turn_until([&] { return m.bench.has_project() && !m.bench.builder.spec().layers.empty(); });
  m.window.show_view("builder");
  stop("open");
  m.settle();
  BuilderHand(m, t, "folded").all();
  start();
  m.window.commands().run("builder.opened");
  stop("unfold");
  m.settle();
  BuilderHand(m, t, "unfolded").all();
  start();
  m.window.commands().run("model.arrange");
  stop("arrange");
  m.settle();
  return t;
}

}  // namespace tenon::app
