#include "tests/views/shell/victim.h"

#include <QTest>
#include <cstdio>
#include <random>

#include "views/shell/main_window.h"

namespace tenon::views::testing {

int victim(const char* file, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  auto below = [&](int64_t n) { return n > 0 ? static_cast<int64_t>(random() % static_cast<uint64_t>(n)) : 0; };
  Workbench bench;
  MainWindow window(bench, ThemeName::dark);
  window.resize(900, 600);
  window.show();
  bench.open(file);
  bool told = false, started = false;
  for (;;) {
    QTest::qWait(static_cast<int>(5 + below(20)));
    if (!bench.has_project()) continue;
    if (!started) {
      started = true;
      if (bench.can_go_on(bench.shown_run()))
        bench.go_on(bench.shown_run());
      else
        bench.train();
    }
    if (!told && bench.status().step > 0) {
      told = true;
      std::puts("training");
      std::fflush(stdout);
    }
    const auto& layers = bench.builder.spec().layers;
    switch (below(8)) {
      case 0:
      case 1:
        bench.select(Selection::step(1 + below(bench.shown_steps()), "victim"));
        break;
      case 2:
        window.commands().run("run.checkpoint");
        break;
      case 3:
        if (!layers.empty())
          bench.builder.choose(layers[static_cast<size_t>(below(static_cast<int64_t>(layers.size())))].name);
        bench.builder.move_selected(8, 8);
        break;
      case 4:
        bench.builder.insert_layer("Dropout");
        break;
      case 5:
        window.commands().run("edit.undo");
        break;
      case 6:
        if (bench.training()) window.commands().run(below(2) ? "run.pause" : "run.train");
        break;
      default:
        window.commands().run(below(2) ? "view.training" : "view.timeline");
        break;
    }
  }
}

int second_window(const char* file) {
  if (qEnvironmentVariableIsEmpty("TENON_SECOND_WINDOW")) return 0;
  Workbench bench;
  MainWindow window(bench, ThemeName::dark);
  window.show();
  bench.open(file);
  auto seen = [&bench] { return bench.training_model.last_step(); };
  if (!QTest::qWaitFor([&] { return bench.shown() && seen() > 0; }, 60000)) return 1;
  const int64_t first = seen();
  if (!QTest::qWaitFor([&] { return seen() > first; }, 60000)) return 2;
  const QString note = QString("step %1, then %2").arg(first).arg(seen());
  bench.describe_run(bench.shown_run(), QString::fromStdString(bench.shown()->name), note, {});
  return QTest::qWaitFor([&] { return bench.idle(); }, 60000) ? 0 : 3;
}

}  // namespace tenon::views::testing
