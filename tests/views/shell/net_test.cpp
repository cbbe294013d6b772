// What a handler throws ends nothing: Note [The net under the event loop].
#include <gtest/gtest.h>

#include <QDockWidget>
#include <QEventLoop>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPointer>
#include <QTest>
#include <QThread>
#include <QTimer>
#include <algorithm>
#include <new>
#include <stdexcept>

#include "core/error.h"
#include "tests/views/shell/window_fixture.h"
#include "views/jobs/jobs_view.h"

namespace tenon::views {
namespace {

/// Its timer turns a loop, as that of a text does whose words are dragged past its edge.
class TurningText : public QPlainTextEdit {
 public:
  int depth = 0, deepest = 0, turns = 0;

 protected:
  void timerEvent(QTimerEvent*) override {
    deepest = std::max(deepest, ++depth);
    ++turns;
    QEventLoop loop;
    QTimer::singleShot(40, &loop, &QEventLoop::quit);
    loop.exec();
    --depth;
  }
};

TEST(TextTimer, IsNotGivenToATextThatIsWithinOne) {
  TurningText text;
  text.startTimer(5);
  QTest::qWait(200);
  EXPECT_GT(text.turns, 1) << "it goes on once the loop has ended";
  EXPECT_EQ(text.deepest, 1);
}

class Net : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
  }
  /// The fault was told as it should be; it was meant, so it does not fail the test.
  void expect_told(const QString& message) {
    until([this] { return !thrown_.empty(); });
    EXPECT_EQ(thrown_.size(), 1u);
    EXPECT_TRUE(banner_shown());
    EXPECT_TRUE(banner().contains(message)) << banner().toStdString();
    EXPECT_TRUE(window_->view("log")->findChild<QPlainTextEdit*>()->toPlainText().contains(message));
    thrown_.clear();
  }
};

TEST_F(Net, a_throwing_handler_becomes_a_banner_and_a_line_in_the_log) {
  QTimer::singleShot(0, window_.get(), [] { throw Error("the seventh wheel came off", "Put it back."); });
  expect_told("the seventh wheel came off");
  EXPECT_TRUE(banner().contains("Put it back."));
  settle();
}

TEST_F(Net, memory_that_is_out_is_said_in_words) {
  QTimer::singleShot(0, window_.get(), [] { throw std::bad_alloc(); });
  expect_told("memory is out");
}

TEST_F(Net, what_is_no_exception_at_all_is_caught_too) {
  QTimer::singleShot(0, window_.get(), [] { throw 7; });
  expect_told("says nothing of itself");
}

TEST_F(Net, what_is_discarded_outlives_a_drag_that_began_in_it) {
  // Words dragged out of a label turn a loop of their own; in it the step that was waited for comes, and Details is
  // new.
  QPointer<QLabel> label = new QLabel("words", window_.get());
  QEventLoop drag, outer;
  QTimer::singleShot(0, label, [&] {
    QTimer::singleShot(0, label, [&] { discard(label); });
    QTimer::singleShot(300, &drag, &QEventLoop::quit);
    drag.exec();
    EXPECT_TRUE(label) << "the drag goes on with a label that is gone";
    outer.quit();
  });
  outer.exec();
  until([&] { return !label; });
  EXPECT_FALSE(label);
}

TEST_F(Net, a_throwing_command_leaves_the_palette_and_the_rest_alive) {
  window_->commands().add({"test.throws", "Saw at the branch", "", "", "", [] { throw std::runtime_error("crack"); }});
  key(window_.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  ASSERT_TRUE(window_->picker()->isVisible());
  QTest::keyClicks(window_->picker()->findChild<QWidget*>(), "saw");
  key(window_->picker()->findChild<QWidget*>(), Qt::Key_Return);
  expect_told("crack");
  settle();
  EXPECT_TRUE(window_->commands().run("layout.train"));
  settle();
}

TEST_F(Net, an_edit_of_that_moment_is_saved_and_training_goes_on) {
  bench_->train({.set = {{"epochs", "100000"}}});
  until([this] { return bench_->training() && bench_->status().step > 5; });
  const size_t layers = bench_->builder.spec().layers.size();
  ASSERT_TRUE(bench_->builder.insert_layer("Dropout"));
  QTimer::singleShot(0, window_.get(), [] { throw std::runtime_error("in the middle of an edit"); });
  until([this] { return !thrown_.empty(); });
  EXPECT_TRUE(bench_->files.has("save") || bench_->project()->model().layers.size() == layers + 1)
      << "saving does not wait for a quiet moment";
  EXPECT_TRUE(banner().contains("training goes on")) << banner().toStdString();
  expect_told("in the middle of an edit");
  const int64_t at = bench_->status().step;
  until([&] { return bench_->status().step > at + 50 && !bench_->files.has("save"); });
  EXPECT_EQ(bench_->project()->model().layers.size(), layers + 1);
  window_->commands().run("run.stop");
  until([this] { return !bench_->training(); });
  settle();
}

/// A picture that cannot be drawn.
class Torn : public CanvasModel {
 public:
  bool whole = false;

 protected:
  void draw(Scene& scene) override {
    scene.text({10, 10, 100, 20}, "half", Ink::text, Face::body);
    if (!whole) throw std::out_of_range("no such row");
  }
};
class TornView : public View {
 public:
  TornView(const ViewDef& def, Bench& bench, CanvasModel& model, QWidget* parent) : View(def, bench, parent) {
    set_content(make_canvas(model));
    set_empty(false);
  }
};

TEST_F(Net, a_picture_that_throws_while_it_is_drawn_shows_what_it_has) {
  Torn model;
  auto* dock = new QDockWidget(window_.get());
  const ViewDef def{.id = "torn", .title = "Torn picture", .icon = "log", .order = 1000};
  auto* view = new TornView(def, *bench_, model, dock);
  dock->setWidget(view);
  window_->addDockWidget(Qt::BottomDockWidgetArea, dock);
  dock->show();
  until([this] { return !thrown_.empty(); });
  EXPECT_NE(thrown_[0].find("the picture of Torn picture"), std::string::npos) << thrown_[0];
  settle();
  EXPECT_TRUE(banner().contains("no such row"));
  model.whole = true;
  thrown_.clear();
  view->canvas()->refresh();
  settle();
  EXPECT_TRUE(thrown_.empty());
  delete dock;
  EXPECT_TRUE(window_->commands().run("view.timeline"));
  settle();
}

TEST_F(Net, a_result_that_throws_while_it_is_taken_ends_only_itself) {
  bench_->jobs.start(
      "t", "Take a bad result", [](const Jobs::Report&, const std::atomic<bool>&) { return std::string("no number"); },
      [](const std::string& text) { (void)std::stoi(text); });
  expect_told("stoi");
  EXPECT_TRUE(bench_->jobs.idle());
}

TEST_F(Net, short_work_is_done_while_long_work_goes_on_and_one_of_a_kind_at_a_time) {
  std::atomic<bool> held{true};
  std::atomic<int> at_once{0}, most{0}, begun{0};
  auto hold = [&](const Jobs::Report&, const std::atomic<bool>&) {
    ++begun;
    most = std::max(most.load(), ++at_once);
    while (held) QThread::msleep(1);
    --at_once;
  };
  bool first = false, second = false, quick = false;
  bench_->jobs.start("long", "Replay a long run", hold, [&] { first = true; });
  until([&] { return begun == 1; });
  bench_->jobs.start("long", "Replay it again", hold, [&] { second = true; });
  bench_->jobs.start(
      "quick", "Ask", [](const Jobs::Report&, const std::atomic<bool>&) {}, [&] { quick = true; });
  until([&] { return quick; });
  EXPECT_EQ(begun, 1) << "the second of a kind waits for the first";
  EXPECT_FALSE(bench_->jobs.idle());
  held = false;
  until([&] { return second; });
  EXPECT_FALSE(first) << "the second took its place";
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(most, 1);
  settle();
  EXPECT_TRUE(bench_->jobs.idle());
}

TEST_F(Net, work_that_throws_anything_is_told_by_its_title) {
  bench_->jobs.start(
      "t", "Do the impossible", [](const Jobs::Report&, const std::atomic<bool>&) { throw 3; }, [] {});
  until([this] { return !problems_.empty(); });
  EXPECT_NE(problems_[0].find("Do the impossible"), std::string::npos);
  EXPECT_TRUE(bench_->jobs.idle());
}

}  // namespace
}  // namespace tenon::views
