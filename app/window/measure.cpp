// How long the window takes with a large project.
#include <QLineEdit>
#include <algorithm>

#include "app/window/jobs.h"
#include "app/window/measured_window.h"
#include "app/window/watchdog.h"
#include "core/median.h"
#include "views/frame/table_list.h"

namespace tenon::app {

using namespace views;

namespace {
constexpr int kFrames = 40;

}  // namespace

CurveTimes measure_curves(const std::string& file, int runs) {
  MeasuredWindow measured;
  Workbench& bench = measured.bench;
  MainWindow& window = measured.window;
  window.show_view("runs");
  measured.settle();
  auto* table = window.findChild<TableList*>("runs.table");
  auto* filter = window.findChild<QLineEdit*>("runs.filter");
  CurveTimes t;
  QElapsedTimer clock;
  clock.start();
  int64_t worked = processor_time();
  const auto work_ms = [&] { return static_cast<double>(processor_time() - worked) / 1e6; };
  bench.open(QString::fromStdString(file));
  measured.turn_until([&] {
    return !bench.contents().runs.empty() && table->shown_rows() == static_cast<int>(bench.contents().runs.size());
  });
  table->viewport()->repaint();
  t.open_ms = milliseconds(clock);
  t.open_work_ms = work_ms();
  measured.settle();
  window.show_view("runs");
  measured.settle();
  for (const char* words :
       {"lr > 0.001", "lr > 0.001 and best.accuracy >= 0.8", "name ~ 42", "loss < 0.5", "steps > 0"}) {
    std::vector<double> times, work;
    for (int i = 0; i < 5; ++i) {
      filter->setText("name = nobody");
      clock.restart();
      worked = processor_time();
      filter->setText(words);
      table->viewport()->repaint();
      times.push_back(milliseconds(clock));
      work.push_back(work_ms());
    }
    measured.settle();
    t.filter_ms = std::max(t.filter_ms, median_of(times));
    t.filter_work_ms = std::max(t.filter_work_ms, median_of(work));
  }
  window.commands().run("layout.train");
  window.show_view("training");
  bench.show_run(bench.contents().runs.front().id);
  measured.settle();
  std::vector<int64_t> ids;
  for (const auto& r : bench.contents().runs)
    if (static_cast<int>(ids.size()) < runs) ids.push_back(r.id);
  SceneCanvas* canvas = window.view("training")->canvas();
  const auto frames_of = [&] {
    std::vector<double> frames;
    for (int i = 0; i < kFrames; ++i) frames.push_back(measured.frame(canvas, [&] { canvas->refresh(); }));
    return frames;
  };
  worked = processor_time();
  t.alone_ms = median_of(frames_of());
  t.alone_work_ms = work_ms() / kFrames;
  clock.restart();
  bench.pick(ids);
  measured.turn_until([&] { return bench.training_model.compared().size() == ids.size(); });
  measured.settle();
  t.compare_ms = milliseconds(clock);
  t.overlaid = static_cast<int>(ids.size());
  worked = processor_time();
  const std::vector<double> frames = frames_of();
  t.frame_work_ms = work_ms() / kFrames;
  t.frame_ms = median_of(frames);
  t.worst_frame_ms = *std::max_element(frames.begin(), frames.end());
  clock.restart();
  worked = processor_time();
  for (int i = 0; i < kFrames; ++i)
    bench.training_model.frame({static_cast<float>(canvas->width()), static_cast<float>(canvas->height())});
  t.scene_ms = milliseconds(clock) / kFrames;
  t.scene_work_ms = work_ms() / kFrames;
  return t;
}

}  // namespace tenon::app
