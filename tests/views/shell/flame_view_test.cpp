// The flame graph in the window: of a trace, of a stretch of it, of a step, of a snapshot's moment; by mouse and keys.
#include <gtest/gtest.h>

#include <QLabel>
#include <QLineEdit>
#include <QTest>
#include <QToolButton>

#include "tests/views/shell/drop.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"
#include "tracing/snapshot/snapshot.h"
#include "views/memory/memory_model.h"
#include "views/shared/flame_model.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

class FlameGraph : public testing::WindowTest {
 protected:
  void open_file(const QString& file) {
    if (!window_) make_window();
    testing::drop_files(window_.get(), {file});
    settle();
    ASSERT_FALSE(bench_->documents().empty()) << (problems_.empty() ? "" : problems_.back());
    ASSERT_TRUE(window_->commands().run("view.flame"));
    until([this] { return model().flame() != nullptr; });
    settle();
  }
  FlameModel& model() { return bench_->model<FlameModel>(); }
  QString subject() { return window_->findChild<ElidedLabel*>("flame.subject")->toolTip(); }
  int64_t total() { return model().flame()->nodes()[0].total; }
};

TEST_F(FlameGraph, of_a_trace_a_box_leads_to_its_longest_event_and_a_stretch_to_less) {
  open_file(QString::fromStdString(testing::small_trace(dir_.path().toStdString())));
  const int64_t all = total();
  EXPECT_GT(all, 0);
  EXPECT_TRUE(subject().startsWith("small.json")) << subject().toStdString();
  EXPECT_FALSE(window_->findChild<QToolButton*>("flame.whole")->isVisible());
  SceneCanvas* c = canvas("flame");
  const auto& flame = *model().flame();
  uint32_t deepest = 1;
  for (uint32_t i = 1; i < flame.nodes().size(); ++i)
    if (flame.nodes()[i].longest != traces::kNone && flame.nodes()[i].total > flame.nodes()[deepest].total / 2)
      deepest = i;
  click(c, place(c, {FlameModel::box, deepest}));
  settle();
  EXPECT_EQ(model().chosen(), deepest);
  EXPECT_TRUE(bench_->bus.current().same(Selection::event(bench_->documents()[0].id, flame.nodes()[deepest].longest)));
  EXPECT_EQ(bench_->model<TimelineModel>().selected_event(), flame.nodes()[deepest].longest);
  // Half of the time is less; the button shows all of it again.
  const auto& trace = *bench_->documents()[0].trace;
  Selection range = Selection::range(0, static_cast<double>(trace.finish() - trace.begin()) / 2, "timeline");
  range.document = bench_->documents()[0].id;
  bench_->select(range);
  until([&] { return model().flame() && total() < all; });
  settle();
  EXPECT_TRUE(subject().contains(" to ")) << subject().toStdString();
  press("flame.whole");
  until([&] { return model().flame() && total() == all; });
  settle();
  EXPECT_FALSE(window_->findChild<QToolButton*>("flame.whole")->isVisible());
  c->setFocus();
  key(c, Qt::Key_Down);
  key(c, Qt::Key_Return);
  EXPECT_NE(model().root(), 0u);
  key(c, Qt::Key_Escape);
  EXPECT_EQ(model().root(), 0u);
}

TEST_F(FlameGraph, of_a_step_a_box_is_an_op) {
  open_spirals();
  train(20);
  ASSERT_TRUE(window_->commands().run("view.flame"));
  settle();
  EXPECT_EQ(model().flame(), nullptr) << "no step is loaded";
  load_step(20);
  ASSERT_TRUE(window_->commands().run("view.flame"));
  until([this] { return model().flame() != nullptr; });
  settle();
  EXPECT_TRUE(subject().startsWith("step 20")) << subject().toStdString();
  // The box of ops that takes most, whatever this machine takes longest for.
  const auto& flame = *model().flame();
  const auto& timeline = bench_->links().record()->timeline;
  uint32_t most = 0;
  for (uint32_t i = 1; i < flame.nodes().size(); ++i)
    if (const auto e = flame.nodes()[i].longest;
        e != traces::kNone && timeline.op(e).seq && (!most || flame.nodes()[i].total > flame.nodes()[most].total))
      most = i;
  ASSERT_NE(most, 0u);
  SceneCanvas* c = canvas("flame");
  click(c, place(c, {FlameModel::box, most}));
  settle();
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::op);
  EXPECT_EQ(bench_->bus.current().id, timeline.op(flame.nodes()[most].longest).seq);
}

TEST_F(FlameGraph, of_a_snapshot_what_was_alive_at_the_peak_and_at_a_moment) {
  open_file(TENON_SOURCE_DIR "/tests/tracing/data/snapshots/training-2.15.pickle.gz");
  const snapshot::Timeline& t = *bench_->documents()[0].timelines.at(0);
  EXPECT_EQ(total(), t.peak_bytes());
  const auto begin = static_cast<int64_t>(bench_->documents()[0].snapshot->traces[0].begin);
  bench_->select(Selection::event(bench_->documents()[0].id, begin + 10, "test"));
  until([&] { return model().flame() && total() == t.bytes(10); });
  settle();
  EXPECT_TRUE(subject().contains("after event 10")) << subject().toStdString();
  press("flame.whole");
  until([&] { return model().flame() && total() == t.peak_bytes(); });
  // From the picture of the memory over time to who held it then.
  ASSERT_TRUE(window_->commands().run("view.memory"));
  settle();
  SceneCanvas* memory = canvas("memory");
  memory->setFocus();
  for (int i = 0; i < 5; ++i) key(memory, Qt::Key_Left);
  settle();
  const size_t cursor = bench_->model<MemoryModel>().snapshot()->cursor();
  ASSERT_NE(cursor, t.peak());
  press("memory.who");
  until([&] { return model().flame() && total() == t.bytes(cursor); });
  settle();
  EXPECT_FALSE(window_->view("flame")->visibleRegion().isEmpty());
  bench_->set_filter({.name = "forward"});
  settle();
  EXPECT_TRUE(subject().contains("of it in “forward”")) << subject().toStdString();
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  EXPECT_EQ(model().flame(), nullptr);
}

}  // namespace
}  // namespace tenon::views
