// How a large file is met in the window: until it is seen, until it is whole, and how the picture follows the hand.

#include <QKeyEvent>
#include <QLineF>
#include <QToolButton>
#include <QWheelEvent>
#include <algorithm>
#include <functional>
#include <limits>

#include "app/window/jobs.h"
#include "app/window/measured_window.h"
#include "app/window/watchdog.h"
#include "core/error.h"
#include "core/machine_memory.h"
#include "engine/formats/model_file.h"
#include "views/frame/view_def.h"

namespace tenon::app {

using namespace views;

namespace {

/// Where the flight of a kind of file goes, and which keys a hand holds there while it turns the wheel.
struct Route {
  const char* view;
  const char* page = nullptr;    ///< a command that shows it
  const char* unfold = nullptr;  ///< a button that shows all of it
  bool zooms = true;
  bool aims = false;  ///< at what is drawn nearest to the middle: of a graph that is a thin line from afar
  Qt::KeyboardModifiers zoom = Qt::NoModifier, pan = Qt::ShiftModifier;
};

Route route_of(const Document& d) {
  if (d.trace) return {.view = "timeline"};
  if (d.snapshot) return {.view = "memory"};
  if (!d.model->nodes.empty())
    return {.view = "model_file",
            .page = "model_file.graph",
            .unfold = "model_file.unfold",
            .aims = true,
            .zoom = Qt::ControlModifier,
            .pan = Qt::NoModifier};
  return {.view = "model_file",
          .page = "model_file.tensors",
          .unfold = "model_file.unfold",
          .zooms = false,
          .pan = Qt::NoModifier};
}

const ViewDef& view_for(Document::Kind kind) {
  for (const ViewDef& def : view_defs())
    if (def.opens == kind) return def;
  throw Error(std::string("no view opens a ") + name(kind));
}

bool seen(const View* view) {
  return view->isVisible() && !view->empty() && view->idle() && !view->canvas()->model().last().prims().empty();
}

/// From the click to the picture, and to a window that has nothing left to do.
OpenTimes::Opening open_once(MeasuredWindow& m, const QString& file, Document::Kind kind) {
  const ViewDef& def = view_for(kind);
  const View* view = m.window.view(def.id);
  OpenTimes::Opening t;
  QElapsedTimer clock;
  clock.start();
  const int64_t before = processor_time();
  const auto worked = [before] { return static_cast<double>(processor_time() - before) / 1e6; };
  m.bench.open(file);
  const View* begun = m.window.view(kind == Document::Kind::snapshot ? "memory" : "timeline");
  m.turn_until([&] {
    if (t.beginning_ms == 0 && m.bench.beginning() && seen(begun)) t.beginning_ms = milliseconds(clock);
    return m.bench.shown_document() && seen(view);
  });
  t.first_ms = milliseconds(clock);
  t.first_work_ms = worked();
  int quiet = 0;
  m.turn_until([&] {
    if (quiet == 0) t.whole_ms = milliseconds(clock), t.whole_work_ms = worked();
    quiet = m.window.idle() ? quiet + 1 : 0;
    return quiet > 4;
  });
  return t;
}

/// Where the wheel is turned: over the middle of the picture, or what is nearest to it.
QPointF aim(SceneCanvas& canvas, bool at_things) {
  const QPointF middle(canvas.width() * 0.5, canvas.height() * 0.5);
  const auto away = [&](QPointF p) { return QLineF(p, middle).length(); };
  QPointF at = middle;
  double least = at_things ? std::numeric_limits<double>::max() : 0;
  for (const Scene::Prim& p : canvas.model().last().prims()) {
    const QPointF here(p.box.x + p.box.w / 2, p.box.y + p.box.h / 2);
    if (p.kind != Scene::Kind::rect || p.box.w > 200 || !canvas.rect().contains(here.toPoint()) || away(here) >= least)
      continue;
    at = here;
    least = away(here);
  }
  return at;
}

void turn_wheel(SceneCanvas* canvas, QPointF at, Qt::KeyboardModifiers held, int notches) {
  QWheelEvent e(at, canvas->mapToGlobal(at), {}, {0, 120 * notches}, Qt::NoButton, held, Qt::NoScrollPhase, false);
  QCoreApplication::sendEvent(canvas, &e);
}

/// The same for every file: from the whole of it four times twenty notches in, at each depth to one side and back, then
/// all the way out.
void fly(MeasuredWindow& m, const Route& route, OpenTimes& t) {
  constexpr int kDepths = 4, kNotches = 20, kAside = 15;
  SceneCanvas* canvas = m.window.view(route.view)->canvas();
  std::vector<double> frames, work;
  QKeyEvent whole(QEvent::KeyPress, Qt::Key_F, Qt::NoModifier, "f");
  QCoreApplication::sendEvent(canvas, &whole);
  std::string before = canvas->model().last().dump();
  const auto turns = [&](Qt::KeyboardModifiers held, int count, int notches) {
    const QPointF at = aim(*canvas, route.aims);
    for (int i = 0; i < count; ++i) {
      const int64_t worked = processor_time();
      frames.push_back(m.frame(canvas, [&] {
        turn_wheel(canvas, at, held, notches);
        canvas->refresh();
      }));
      work.push_back(static_cast<double>(processor_time() - worked) / 1e6);
      std::string now = canvas->model().last().dump();
      t.moved += now != before;
      before = std::move(now);
    }
  };
  for (int depth = 0; depth < kDepths; ++depth) {
    if (route.zooms) turns(route.zoom, kNotches, 1);
    turns(route.pan, kAside, -1);
    turns(route.pan, kAside, 1);
  }
  if (route.zooms) turns(route.zoom, kDepths * kNotches, -1);
  t.frames = static_cast<int>(frames.size());
  t.frame_ms = percentile(frames, 50);
  t.frame_p99_ms = percentile(frames, 99);
  t.frame_worst_ms = percentile(frames, 100);
  t.frame_work_ms = percentile(work, 50);
  t.frame_work_p99_ms = percentile(work, 99);
}

double peak_rss() { return static_cast<double>(peak_memory()); }

}  // namespace

OpenTimes measure_open(const std::string& file) {
  const Document::Kind kind = document_kind(file);
  if (kind == Document::Kind::project)
    throw Error::usage(file + " is no trace, memory snapshot or model file",
                       "tenon bench curves --project FILE measures the window on a project");
  OpenTimes t;
  MeasuredWindow m;
  Watchdog dog;
  const QString path = QString::fromStdString(file);
  t.rss_before = peak_rss();
  dog.begin("opening");
  t.openings.push_back(open_once(m, path, kind));
  t.rss_peak = peak_rss();
  const Route route = route_of(*m.bench.shown_document());
  dog.begin("main_view");
  QElapsedTimer clock;
  clock.start();
  m.window.show_view(route.view);
  if (route.page) m.window.commands().run(route.page);
  m.turn_until([&] { return seen(m.window.view(route.view)); });
  t.main_view_ms = milliseconds(clock);
  m.settle();
  if (route.unfold) {
    clock.restart();
    m.window.findChild<QToolButton*>(route.unfold)->click();
    m.settle();
    t.unfold_ms = milliseconds(clock);
  }
  dog.begin("flight");
  fly(m, route, t);
  t.rss_flown = peak_rss();
  dog.begin("closing");
  m.bench.close_document(m.bench.shown_document()->id);
  m.settle();
  dog.begin("second_opening");
  t.openings.push_back(open_once(m, path, kind));
  for (const Watchdog::Heard& h : dog.heard())
    t.deaf.push_back({h.during, h.p50_ms, h.p99_ms, h.worst_ms, h.work_p99_ms, h.work_worst_ms});
  return t;
}

}  // namespace tenon::app
