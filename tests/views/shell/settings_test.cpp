// What holds for a person: the theme and the files of before. And a project that is closed.
#include "views/shared/settings.h"

#include <gtest/gtest.h>

#include <QLineEdit>
#include <QListWidget>
#include <QTest>
#include <algorithm>

#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

using Settings = testing::WindowTest;

TEST_F(Settings, a_theme_is_kept_for_every_project) {
  open_spirals();
  ASSERT_TRUE(window_->commands().run("theme.contrast"));
  EXPECT_EQ(settings::text("theme"), "contrast");
  close_window();
  // The window that comes back to the project does not change the theme it was given.
  make_window();
  const ThemeName given = window_->theme();
  open(file_);
  EXPECT_EQ(window_->theme(), given);
  settings::reset("theme");
}

TEST_F(Settings, files_of_before_are_opened_again) {
  const QString trace = QString::fromStdString(testing::small_trace(dir_.path().toStdString()));
  make_window();
  window_->remember_files();
  bench_->open(trace);
  settle();
  open_spirals();
  const auto recent = settings::recent();
  ASSERT_GE(recent.size(), 2u);
  EXPECT_EQ(recent[0].path, file_.toStdString());
  EXPECT_EQ(recent[0].kind, "project");
  EXPECT_EQ(recent[1].path, trace.toStdString());
  EXPECT_EQ(recent[1].kind, "trace");
  bench_->open(file_);
  settle();
  const auto again = settings::recent();
  EXPECT_EQ(std::count_if(again.begin(), again.end(), [&](const auto& f) { return f.path == file_.toStdString(); }), 1)
      << "once, however often it was opened";
  const int documents = static_cast<int>(bench_->documents().size());
  ASSERT_TRUE(window_->commands().run("file.recent"));
  auto* field = window_->picker()->findChild<QLineEdit*>();
  QTest::keyClicks(field, "small.json");
  QTest::keyClick(field, Qt::Key_Return);
  settle();
  EXPECT_EQ(static_cast<int>(bench_->documents().size()), documents + 1);
}

TEST_F(Settings, a_closed_project_leaves_an_empty_window_that_works) {
  open_spirals();
  window_->commands().run("layout.train");
  bench_->train({.set = {{"epochs", "100000"}}});
  until([this] { return bench_->training() && bench_->status().step > 5; });
  bench_->select(Selection::run(bench_->shown_run(), "test"));
  const QString file = file_;
  ASSERT_TRUE(window_->commands().run("file.close"));
  settle();
  EXPECT_FALSE(bench_->has_project());
  EXPECT_FALSE(bench_->training());
  EXPECT_EQ(window_->windowTitle(), "Tenon");
  EXPECT_TRUE(bench_->builder.spec().layers.empty());
  EXPECT_FALSE(bench_->bus.current());
  for (const char* command : {"run.train", "run.step", "file.close", "run.evaluate", "file.export", "recipe.edit"})
    EXPECT_FALSE(window_->commands().find(command)->enabled()) << command;
  for (const ViewDef& def : view_defs()) {
    window_->show_view(def.id);
    settle();
  }
  // Opened again it is as it was left, with its run.
  open(file);
  EXPECT_EQ(window_->layout_name(), "Train");
  ASSERT_EQ(bench_->contents().runs.size(), 1u);
  EXPECT_EQ(bench_->contents().runs[0].status, "stopped");
  EXPECT_GT(bench_->contents().runs[0].steps, 5);
  EXPECT_TRUE(problems_.empty()) << problems_[0];
}

TEST_F(Settings, a_trace_stays_when_the_project_is_closed) {
  open_spirals();
  bench_->open(QString::fromStdString(testing::small_trace(dir_.path().toStdString())));
  settle();
  bench_->select(Selection::module("layers.0", "test"));
  settle();
  ASSERT_TRUE(window_->commands().run("file.close"));
  settle();
  EXPECT_EQ(bench_->documents().size(), 1u);
  EXPECT_TRUE(bench_->model<TimelineModel>().shows_document());
  EXPECT_TRUE(window_->windowTitle().startsWith("small.json"));
}

TEST_F(Settings, nothing_of_a_project_stays_for_the_next_one) {
  open_spirals();
  train(5);
  load_step(3);
  Filter f = bench_->filter();
  f.name = "relu";
  bench_->set_filter(f);
  settle();
  // The same file again: its step can be asked for again, and nothing is filtered.
  bench_->open(file_);
  settle();
  EXPECT_FALSE(bench_->filter());
  EXPECT_FALSE(bench_->can_undo_filter());
  EXPECT_FALSE(bench_->links());
  while (bench_->bus.can_go_back()) {
    window_->commands().run("go.back");
    EXPECT_NE(bench_->bus.current().kind, Selection::Kind::step);
  }
  load_step(3);
  EXPECT_TRUE(bench_->links());
}

}  // namespace
}  // namespace tenon::views
