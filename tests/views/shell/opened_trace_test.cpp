// A trace opened beside the project, or without one: dropped, chosen in the dialog, looked at, closed.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QProcess>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <fstream>

#include "tests/views/shell/drop.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

class OpenedTrace : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    trace_ = QString::fromStdString(testing::small_trace(dir_.path().toStdString()));
  }
  void drop(const QStringList& files) {
    testing::drop_files(window_.get(), files);
    settle();
  }
  TimelineModel& timeline() { return bench_->model<TimelineModel>(); }
  traces::EventId named(const std::string& name) {
    const traces::Trace& t = *bench_->documents().at(0).trace;
    for (traces::EventId e = 0; e < t.size(); ++e)
      if (t.event_name(e) == name) return e;
    ADD_FAILURE() << "no event " << name;
    return 0;
  }
  bool details_say(const QString& text) {
    for (QLabel* l : window_->view("details")->findChildren<QLabel*>())
      if (l->toolTip().contains(text) || l->accessibleName().contains(text)) return true;
    return false;
  }
  QString trace_;
};

TEST_F(OpenedTrace, dropped_it_is_in_overview_and_timeline_without_a_project) {
  make_window();
  drop({trace_});
  ASSERT_EQ(bench_->documents().size(), 1u);
  EXPECT_FALSE(bench_->has_project());
  EXPECT_TRUE(timeline().shows_document());
  EXPECT_FALSE(window_->view("overview")->visibleRegion().isEmpty()) << "the whole of it comes first";
  EXPECT_TRUE(window_->windowTitle().startsWith("small.json"));
  EXPECT_TRUE(details_say("small.json"));
  // A click tells what the event is; its arguments come from the file.
  SceneCanvas* c = canvas("timeline");
  c->setFocus();
  const auto kernel = named("training");
  click(c, place(c, {LaneModel::event, kernel}));
  settle();
  EXPECT_TRUE(bench_->bus.current().same(Selection::event(bench_->documents()[0].id, kernel)));
  EXPECT_TRUE(details_say("training"));
  EXPECT_TRUE(details_say("9.00 ms"));
  bench_->select(Selection::event(bench_->documents()[0].id, named("aten::op3"), "test"));
  settle();
  EXPECT_TRUE(details_say("External id"));
  // Keys and the wheel do what they do over a step.
  c->setFocus();
  key(c, Qt::Key_F);
  key(c, Qt::Key_W);
  EXPECT_FALSE(timeline().axis().fitted());
  const double lo = timeline().axis().lo;
  key(c, Qt::Key_D);
  EXPECT_GT(timeline().axis().lo, lo);
  QTest::keyClick(c, Qt::Key_Slash);
  auto* search = window_->findChild<QLineEdit*>("timeline.search");
  EXPECT_TRUE(search->hasFocus());
  QTest::keyClicks(search, "kernel1");
  key(search, Qt::Key_Return);
  settle();
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::event);
  EXPECT_EQ(timeline().trace()->event_name(timeline().selected_event()), "kernel1");
}

TEST_F(OpenedTrace, where_nothing_else_is_open_the_layout_is_that_of_its_kind) {
  make_window();
  EXPECT_EQ(window_->layout_name(), "Build");
  drop({trace_});
  EXPECT_EQ(window_->layout_name(), "Profile");
  EXPECT_TRUE(window_->findChild<QToolButton*>("layout.Profile")->isChecked());
  EXPECT_TRUE(window_->view("training")->visibleRegion().isEmpty()) << "no run is there to be shown";
  EXPECT_FALSE(window_->view("findings")->visibleRegion().isEmpty()) << "below is what shows the trace, too";
  // A project that comes to it is looked at as projects are, and a file that is opened beside it changes nothing.
  open_spirals();
  EXPECT_EQ(window_->layout_name(), "Build");
  drop({trace_});
  EXPECT_EQ(window_->layout_name(), "Build");
}

TEST_F(OpenedTrace, chosen_in_the_dialog_it_stands_beside_the_step) {
  open_spirals();
  train(5);
  load_step(3);
  QTimer::singleShot(0, window_.get(), [this] {
    auto* d = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    ASSERT_NE(d, nullptr);
    d->findChild<QLineEdit*>("fileNameEdit")->setText(trace_);
    QMetaObject::invokeMethod(d, "accept");
  });
  ASSERT_TRUE(window_->commands().run("file.open"));
  settle();
  ASSERT_EQ(bench_->documents().size(), 1u);
  EXPECT_TRUE(bench_->has_project()) << "the project stays open";
  EXPECT_TRUE(timeline().shows_document());
  const int id = bench_->documents()[0].id;
  // Back and forward go through documents, and the list in the timeline does.
  bench_->select(Selection::op(4, "test"));
  settle();
  EXPECT_FALSE(timeline().shows_document());
  EXPECT_EQ(timeline().selected(), 4u);
  ASSERT_TRUE(window_->commands().run("go.back"));
  settle();
  EXPECT_TRUE(timeline().shows_document());
  ASSERT_TRUE(window_->commands().run("go.forward"));
  settle();
  EXPECT_FALSE(timeline().shows_document());
  auto* box = window_->findChild<QComboBox*>("timeline.documents");
  ASSERT_NE(box, nullptr);
  window_->show_view("timeline");
  settle();
  ASSERT_EQ(box->count(), 2);
  box->setFocus();
  key(box, Qt::Key_Down);
  settle();
  EXPECT_TRUE(timeline().shows_document());
  EXPECT_TRUE(bench_->bus.current().same(Selection::of_document(id)));
  key(box, Qt::Key_Up);
  settle();
  EXPECT_FALSE(timeline().shows_document());
  // Closed, nothing leads back to it.
  bench_->select(Selection::event(id, 3, "test"));
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  EXPECT_TRUE(bench_->documents().empty());
  EXPECT_FALSE(timeline().shows_document());
  while (bench_->bus.can_go_back()) {
    window_->commands().run("go.back");
    EXPECT_EQ(bench_->bus.current().document, 0);
  }
  settle();
}

TEST_F(OpenedTrace, several_files_are_dropped_at_once) {
  make_window();
  const QString second = dir_.filePath("second.json");
  ASSERT_TRUE(QFile::copy(trace_, second));
  const std::string project = testing::copy_of(testing::project_state("trained"), dir_.path().toStdString());
  drop({trace_, QString::fromStdString(project), second});
  EXPECT_EQ(bench_->documents().size(), 2u);
  EXPECT_TRUE(bench_->has_project());
}

TEST_F(OpenedTrace, what_the_window_does_not_open_is_said_with_the_way) {
  make_window();
  auto file = [&](const char* name, const std::string& bytes) {
    const QString path = dir_.filePath(name);
    std::ofstream(path.toStdString(), std::ios::binary) << bytes;
    return path;
  };
  drop({file("s.pickle", std::string("\x80\x04}q\x00.", 6))});
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_NE(problems_[0].find("s.pickle is no memory snapshot"), std::string::npos) << problems_[0];
  EXPECT_TRUE(banner().contains("torch.cuda.memory._dump_snapshot()")) << banner().toStdString();
  drop({file("t.json", "{\"traceEvents\": 7}")});
  EXPECT_EQ(problems_.size(), 2u);
  drop({file("x.tenon", "no project")});
  EXPECT_EQ(problems_.size(), 3u);
  EXPECT_TRUE(bench_->documents().empty());
}

TEST_F(OpenedTrace, reading_can_be_cancelled) {
  make_window();
  bench_->open(trace_);
  until([this] { return !bench_->reading().isEmpty() || !bench_->documents().empty(); });
  for (const auto& job : bench_->jobs.list())
    if (Bench::reads_document(*job)) bench_->jobs.cancel(job->id);
  settle();
  EXPECT_TRUE(bench_->reading().isEmpty());
  EXPECT_TRUE(problems_.empty());
  bench_->open(trace_);
  settle();
  EXPECT_FALSE(bench_->documents().empty());
}

TEST_F(OpenedTrace, a_picture_of_it_is_made_without_a_hand) {
  const QString picture = dir_.filePath("trace.png");
  QProcess program;
  program.start(QString(TENON_BINARY_DIR) + "/bin/tenon",
                {"shot", trace_, "--view", "timeline", "--select", "event:3", "--size", "900x500", "-o", picture});
  ASSERT_TRUE(program.waitForFinished(120000));
  EXPECT_EQ(program.exitCode(), 0) << program.readAllStandardError().toStdString();
  EXPECT_EQ(QImage(picture).size(), QSize(900, 500));
}

}  // namespace
}  // namespace tenon::views
