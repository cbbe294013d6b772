// A scene on a real canvas: what ImGui makes of it.
#include <gtest/gtest.h>

#include <QAccessible>
#include <QApplication>
#include <QDialog>
#include <QDockWidget>
#include <QFile>
#include <QTest>
#include <QTimer>
#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "projects/quantize_plan.h"
#include "tests/views/model_files.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"

namespace tenon::views {
namespace {

/// Rectangles of every awkward size, round and outlined.
class Rectangles : public CanvasModel {
 protected:
  void draw(Scene& scene) override {
    for (float side : {0.f, 1e-6f, 1.f, 2.f, 2.5f, 3.f, 4.f, 9.f, 1e6f}) {
      for (int step = -4; step <= 4; ++step) {
        float w = side;
        for (int i = 0; i < std::abs(step); ++i) w = std::nextafter(w, step < 0 ? 0.f : 2e6f);
        for (float radius : {0.f, 1e-7f, 0.5f, 2.f, 3.f, 1e6f})
          for (const Box& box : {Box{0, 0, w, 20}, Box{0, 0, 20, w}, Box{0, 0, w, w}}) {
            scene.rect(box, Ink::accent, 1, radius);
            scene.outline(box, Ink::text, 2, radius);
            ++drawn;
          }
      }
    }
  }

 public:
  int drawn = 0;
};
class RectanglesView : public View {
 public:
  RectanglesView(const ViewDef& def, Bench& bench, CanvasModel& model, QWidget* parent) : View(def, bench, parent) {
    set_content(make_canvas(model));
    set_empty(false);
  }
};

using Canvas = testing::WindowTest;

TEST_F(Canvas, rectangles_of_every_size_are_drawn) {
  make_window();
  Rectangles model;
  auto* dock = new QDockWidget(window_.get());
  const ViewDef def{.id = "rectangles", .title = "Rectangles", .icon = "log", .order = 1000};
  auto* view = new RectanglesView(def, *bench_, model, dock);
  dock->setWidget(view);
  window_->addDockWidget(Qt::BottomDockWidgetArea, dock);
  dock->show();
  until([&] { return model.drawn > 0; });
  settle();
  EXPECT_GE(model.drawn, 9 * 9 * 6 * 3);
  delete dock;
  settle();
}

/// Text, lines, colours and edges.
class Mixture : public CanvasModel {
 protected:
  void draw(Scene& scene) override {
    for (int i = 0; i < 12; ++i) {
      const auto at = static_cast<float>(i) * 9;
      scene.rect({at, at, 40, 11}, static_cast<Ink>(2 + i), 0.7f, 3);
      scene.line({0, at}, {200, 2 * at}, Ink::text, 1.5f);
      scene.text({60, at, 120, 16}, "conv2d " + std::to_string(i), Ink::text, Face::body);
    }
  }
};

/// Note [Where a canvas is drawn].
TEST_F(Canvas, drawn_in_memory_is_the_picture_that_the_screen_has) {
  Mixture model;
  QImage pictures[2];
  for (const auto drawn : {SceneCanvas::Drawn::on_screen, SceneCanvas::Drawn::in_memory}) {
    SceneCanvas canvas(model, nullptr, drawn);
    canvas.resize(260, 180);
    canvas.show();
    until([&] { return canvas.frames() > 0 && canvas.idle(); });
    pictures[static_cast<int>(drawn)] = canvas.grab().toImage().convertToFormat(QImage::Format_RGB32);
    canvas.resize(200, 140);  // and anew where its size is another
    until([&] { return canvas.idle(); });
    EXPECT_EQ(canvas.grab().toImage().size() / canvas.devicePixelRatioF(), QSize(200, 140));
    const int64_t frames = canvas.frames();
    QTest::mouseMove(&canvas, {100, 70});
    QTest::qWait(20);
    EXPECT_EQ(canvas.frames(), frames) << "nothing has changed";
  }
  EXPECT_EQ(pictures[0], pictures[1]);
  std::set<QRgb> colours;
  for (int y = 0; y < pictures[0].height(); ++y)
    for (int x = 0; x < pictures[0].width(); ++x) colours.insert(pictures[0].pixel(x, y));
  EXPECT_GT(colours.size(), 50u);
}

/// Each letter is drawn where it is first seen, whichever of the canvases shows it, and both have the size of the
/// letters that holds.
TEST_F(Canvas, two_in_memory_share_their_letters) {
  class Word : public CanvasModel {
   public:
    explicit Word(std::string w) : word(std::move(w)) {}
    std::string word;

   protected:
    void draw(Scene& scene) override { scene.text({4, 4, 150, 30}, word, Ink::text, Face::title); }
  };
  Word latin("loss"), greek("λΛ");
  SceneCanvas first(latin, nullptr, SceneCanvas::Drawn::in_memory),
      second(greek, nullptr, SceneCanvas::Drawn::in_memory);
  for (SceneCanvas* c : {&first, &second}) {
    c->resize(160, 40);
    c->show();
  }
  const auto settled = [&] { return first.frames() && second.frames() && first.idle() && second.idle(); };
  until(settled);
  const auto inked = [](SceneCanvas& c) {
    const QImage picture = c.grab().toImage();
    int n = 0;
    for (int y = 0; y < picture.height(); ++y)
      for (int x = 0; x < picture.width(); ++x) n += picture.pixel(x, y) != picture.pixel(0, 0);
    return n;
  };
  const int before[] = {inked(first), inked(second)};
  EXPECT_GT(before[0], 50);
  EXPECT_GT(before[1], 50);
  latin.word = "λΛ";  // drawn for the other one
  first.refresh();
  until(settled);
  EXPECT_EQ(inked(first), before[1]);
  set_text_size(text_size() + 4);
  for (SceneCanvas* c : {&first, &second}) c->repaint();
  until(settled);
  EXPECT_GT(inked(first), before[1]);
  EXPECT_EQ(inked(first), inked(second));
  set_text_size(text_size() - 4);
}

TEST_F(Canvas, what_the_first_picture_costs_is_done_before_there_is_one) {
  make_window();
  settle();
  for (const ViewDef& def : view_defs())
    if (SceneCanvas* c = window_->view(def.id)->canvas()) {
      EXPECT_EQ(c->frames(), 0) << def.id;
    }
  EXPECT_EQ(SceneRenderer::in_memory()->started(), MemoryGl::is_software());
}

/// By keyboard alone, and with eyes closed: every view that has a canvas, over a step in which something went wrong.
TEST_F(Canvas, every_one_is_reached_moved_through_and_read_by_keys) {
  open_spirals();
  const QString file = dir_.filePath("blocks.onnx");
  formats::save_onnx(file.toStdString(), testing::blocks_model(4));
  bench_->open(file);
  settle();
  const QString trace = QString::fromStdString(testing::small_trace(dir_.path().toStdString()));
  for (const char* name : {"a.json", "b.json"}) {
    ASSERT_TRUE(QFile::copy(trace, dir_.filePath(name)));
    bench_->open(dir_.filePath(name));
    settle();
  }
  train(4, {{"data.nan_sample", "3"}, {"data.shuffle", "false"}});
  ASSERT_TRUE(window_->commands().run("run.nan"));
  settle();
  ASSERT_TRUE(static_cast<bool>(bench_->links()));
  ASSERT_TRUE(bench_->links().record()->nan);
  // What two of them show is made by other means than a step.
  Recipe clean = bench_->recipe();
  clean.set("max_steps", "3");
  bench_->set_recipe(clean);
  settle();
  bench_->begin_sweep("s", {{"optimizer.lr", "0.1,0.01"}}, {{"runs", int64_t{2}}});
  until([&] { return !bench_->contents().sweeps.empty() && !bench_->sweeping() && !bench_->training(); });
  bench_->evaluate(bench_->contents().runs.back().id, 3);
  until([&] { return bench_->results() != nullptr; });
  int canvases = 0;
  for (const ViewDef& def : view_defs()) {
    View* view = window_->view(def.id);
    SceneCanvas* c = view->canvas();
    if (!c) continue;
    SCOPED_TRACE(def.id);
    ++canvases;
    if (!bench_->links()) {  // a key in the view before has led to another run
      bench_->select(Selection::run(bench_->contents().runs.front().id, "test"));
      settle();
      ASSERT_TRUE(window_->commands().run("run.nan"));
      settle();
      ASSERT_TRUE(bench_->links() && bench_->links().record()->nan);
    }
    if (bench_->shown_document()) bench_->select(Selection::step(bench_->links().record()->step, "test"));
    ASSERT_TRUE(window_->show_view(def.id));
    settle();
    if (QString(def.id) == "tensor") {  // one with places to go to: the one of before may be the loss alone
      const auto& tensors = bench_->links().record()->tensors;
      const auto large = std::find_if(tensors.begin(), tensors.end(),
                                      [](const auto& t) { return t.value.defined() && t.layout.size.product() > 1; });
      ASSERT_NE(large, tensors.end());
      bench_->select(Selection::tensor(large - tensors.begin(), "test"));
    }
    if (QString(def.id) == "compare") {
      ASSERT_TRUE(window_->commands().run("compare.flame"));
    }
    if (QString(def.id) == "numbers") {
      ASSERT_TRUE(window_->commands().run("numbers.compare"));
      until([&] { return !bench_->jobs.has("numbers"); });
    }
    if (QString(def.id) == "roofline") {
      ASSERT_TRUE(window_->commands().run("roofline.measure"));
      until([&] { return view->idle(); });
    }
    if (QString(def.id) == "plan") {
      ASSERT_TRUE(window_->commands().run("plan.show"));
      until([&] { return view->idle(); });
    }
    if (QString(def.id) == "quantization") {
      bench_->plan_quantization(bench_->contents().runs.back().id, 3);
      until([&] { return bench_->quantize_plan() && bench_->quantize_plan()->complete; });
    }
    settle();
    if (!c->isVisible()) press(QString(def.id) + ".chart");  // the runs' stands open on demand
    settle();
    EXPECT_TRUE(c->focusPolicy() & Qt::TabFocus);
    c->setFocus(Qt::TabFocusReason);
    EXPECT_TRUE(c->hasFocus());
    QAccessibleInterface* reader = QAccessible::queryAccessibleInterface(c);
    ASSERT_NE(reader, nullptr);
    EXPECT_EQ(reader->role(), QAccessible::Canvas);
    EXPECT_EQ(reader->text(QAccessible::Name).toStdString(), def.title);
    std::set<std::string> told;
    bool moved = false;  // by one of the two at least: there may be nothing more to the right
    for (Qt::Key k : {Qt::Key_Right, Qt::Key_Right, Qt::Key_Down, Qt::Key_Left, Qt::Key_Up, Qt::Key_Return}) {
      const std::string text = reader->text(QAccessible::Description).toStdString();
      EXPECT_EQ(text, c->model().summary());
      EXPECT_GT(text.size(), 10u);
      told.insert(text);
      const int64_t frames = c->frames();
      if (!c->hasFocus()) c->setFocus(Qt::TabFocusReason);           // Enter leads to what was chosen
      if (k == Qt::Key_Return && QString(def.id) == "quantization")  // it asks where the file goes
        QTimer::singleShot(0, window_.get(), [] {
          if (auto* d = qobject_cast<QDialog*>(QApplication::activeModalWidget())) d->reject();
        });
      QTest::keyClick(c, k);
      settle();
      moved |= k == Qt::Key_Right && c->frames() > frames;
    }
    EXPECT_TRUE(moved) << "the keys show nothing";
    EXPECT_GE(told.size(), 2u) << "what is said does not follow the keys: " << *told.begin();
  }
  EXPECT_GE(canvases, 8);
}

}  // namespace
}  // namespace tenon::views
