// What the timeline lays over an opened trace: its story, folds, arrows, bookmarks, and how all that is found again.
#include <gtest/gtest.h>

#include <QApplication>
#include <QContextMenuEvent>
#include <QLineEdit>
#include <QMenu>
#include <QTabWidget>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <fstream>

#include "tests/tracing/made_training.h"
#include "tests/views/shell/drop.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/analyses/trace_story.h"
#include "views/frame/table_list.h"
#include "views/frame/widgets.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

class TraceTimeline : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    trace_ = dir_.filePath("trained.json");
    std::ofstream(trace_.toStdString()) << tracing::train({.steps = 4, .op = 20000, .kernel = 9000, .stacks = true});
    make_window();
    open_trace();
  }
  void open_trace() {
    testing::drop_files(window_.get(), {trace_});
    settle();
    window_->show_view("timeline");
    settle();
    ASSERT_EQ(bench_->documents().size(), 1u);
  }
  TimelineModel& timeline() { return bench_->model<TimelineModel>(); }
  QString tab(const QString& begins) {
    auto* tabs = window_->view("timeline")->findChild<QTabWidget*>();
    for (int i = 0; i < tabs->count(); ++i)
      if (tabs->tabText(i).startsWith(begins)) return tabs->tabText(i);
    return {};
  }
  TableList* rows(const char* name) { return window_->findChild<TableList*>(name); }
  QString trace_;
};

TEST_F(TraceTimeline, a_gap_says_why_and_its_time_is_what_the_tables_hold) {
  until([this] { return timeline().story() != nullptr; });
  settle();
  const tracing::TraceStory expected = tracing::trace_story(*bench_->documents()[0].trace);
  EXPECT_EQ(timeline().story()->gaps.size(), expected.gaps.size());
  EXPECT_EQ(timeline().story()->path.size(), expected.path.size());
  size_t longest = 0;
  for (size_t i = 0; i < expected.gaps.size(); ++i)
    if (expected.gaps[i].to - expected.gaps[i].from > expected.gaps[longest].to - expected.gaps[longest].from)
      longest = i;
  SceneCanvas* c = canvas("timeline");
  const int all = rows("timeline.names")->shown_rows();
  click(c, place(c, {LaneModel::gap, static_cast<int64_t>(longest)}));
  settle();
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::range);
  EXPECT_TRUE(tab("Names").startsWith("Names within")) << tab("Names").toStdString();
  EXPECT_LT(rows("timeline.names")->shown_rows(), all);
  c->setFocus();
  key(c, Qt::Key_Escape);
  settle();
  EXPECT_EQ(tab("Names"), "Names");
  EXPECT_EQ(rows("timeline.names")->shown_rows(), all);
  // The path comes by its button, and a piece of it leads to its event.
  press("timeline.path");
  settle();
  size_t piece = 0;
  for (size_t i = 0; i < expected.path.size(); ++i)
    if (expected.path[i].event != traces::kNone &&
        expected.path[i].to - expected.path[i].from > expected.path[piece].to - expected.path[piece].from)
      piece = i;
  click(c, place(c, {LaneModel::piece, static_cast<int64_t>(piece)}));
  settle();
  EXPECT_TRUE(bench_->bus.current().same(Selection::event(bench_->documents()[0].id, expected.path[piece].event)));
  press("timeline.gaps");
  settle();
  EXPECT_FALSE(timeline().shows_gaps());
}

TEST_F(TraceTimeline, a_thread_folds_by_its_name_and_by_a_key) {
  SceneCanvas* c = canvas("timeline");
  size_t deep = 0;
  while (timeline().layout().bands()[deep].depths < 3) ++deep;
  click(c, place(c, {LaneModel::fold, static_cast<int64_t>(deep)}));
  settle();
  EXPECT_TRUE(timeline().layout().bands()[deep].folded);
  // What is selected elsewhere is unfolded to be seen.
  const auto lane = timeline().layout().bands()[deep].first + 2;
  const auto inner = timeline().trace()->lanes()[lane].begin;
  bench_->select(Selection::event(bench_->documents()[0].id, inner, "test"));
  settle();
  EXPECT_FALSE(timeline().layout().bands()[deep].folded);
  c->setFocus();
  key(c, Qt::Key_C);
  EXPECT_TRUE(timeline().layout().bands()[deep].folded);
  key(c, Qt::Key_C, Qt::ShiftModifier);
  EXPECT_FALSE(timeline().layout().any_unfolded());
  key(c, Qt::Key_C, Qt::ShiftModifier);
  EXPECT_TRUE(timeline().layout().any_unfolded());
}

TEST_F(TraceTimeline, a_bookmark_and_what_was_seen_are_there_when_it_is_opened_again) {
  const int id = bench_->documents()[0].id;
  const auto kernel = timeline().trace()->launches().front().to;
  bench_->select(Selection::event(id, kernel, "test"));
  settle();
  SceneCanvas* c = canvas("timeline");
  c->setFocus();
  key(c, Qt::Key_F);
  QTest::keyClick(c, Qt::Key_B);
  settle();
  EXPECT_EQ(tab("Bookmarks"), "Bookmarks (1)");
  auto* note = window_->findChild<QLineEdit*>("timeline.note");
  until([note] { return note->hasFocus(); });
  QTest::keyClicks(note, "look here");
  QTest::keyClick(note, Qt::Key_Return);
  settle();
  ASSERT_EQ(timeline().bookmarks().size(), 1u);
  EXPECT_EQ(timeline().bookmarks()[0].note, "look here");
  // A second one of another stretch; the list leads back to the first.
  c->setFocus();
  key(c, Qt::Key_F);
  key(c, Qt::Key_Escape);
  bench_->select(Selection::event(id, timeline().trace()->launches().back().to, "test"));
  settle();
  c->setFocus();
  key(c, Qt::Key_W);
  QTest::keyClick(c, Qt::Key_B);
  settle();
  ASSERT_EQ(rows("timeline.bookmarks")->shown_rows(), 2);
  const double lo = timeline().axis().lo, hi = timeline().axis().hi;
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  EXPECT_TRUE(timeline().bookmarks().empty());
  open_trace();
  EXPECT_DOUBLE_EQ(timeline().axis().lo, lo);
  EXPECT_DOUBLE_EQ(timeline().axis().hi, hi);
  ASSERT_EQ(timeline().bookmarks().size(), 2u);
  EXPECT_EQ(timeline().bookmarks()[0].note, "look here");
  timeline().fit();
  settle();
  // By the flag in the axis it is selected, and removed.
  c = canvas("timeline");
  click(c, place(c, {LaneModel::bookmark, 0}));
  settle();
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::range);
  window_->view("timeline")->findChild<QTabWidget*>()->setCurrentWidget(rows("timeline.bookmarks")->parentWidget());
  settle();
  press("timeline.unbookmark");
  settle();
  ASSERT_EQ(timeline().bookmarks().size(), 1u);
  EXPECT_NE(timeline().bookmarks()[0].note, "look here");
}

TEST_F(TraceTimeline, a_row_is_pinned_by_a_key_a_menu_and_the_list_and_stays_so_when_it_is_opened_again) {
  const auto& bands = timeline().layout().bands();
  auto pinned = [&] {
    std::vector<size_t> all;
    for (size_t b = 0; b < bands.size(); ++b)
      if (bands[b].pinned) all.push_back(b);
    return all;
  };
  const auto kernel = timeline().trace()->launches().front().to;
  bench_->select(Selection::event(bench_->documents()[0].id, kernel, "test"));
  settle();
  SceneCanvas* c = canvas("timeline");
  c->setFocus();
  const auto stream = static_cast<size_t>(timeline().chosen_band());
  key(c, Qt::Key_P);
  settle();
  EXPECT_EQ(pinned(), std::vector{stream});
  EXPECT_TRUE(window_->commands().find("timeline.pin")->checked());
  ASSERT_TRUE(window_->commands().run("timeline.pin"));
  settle();
  EXPECT_TRUE(pinned().empty()) << "the command takes it back";
  // By the other mouse button, over a thread's name.
  size_t deep = 0;
  while (bands[deep].depths < 3) ++deep;
  const auto& lane = timeline().trace()->lanes()[bands[deep].first];
  bench_->select(Selection::event(bench_->documents()[0].id, lane.begin, "test"));  // its row is seen then
  settle();
  auto menu_at = [&](size_t band) {
    const QPoint at = place(c, {LaneModel::fold, static_cast<int64_t>(band)});
    EXPECT_TRUE(c->rect().contains(at)) << at.y();
    QContextMenuEvent e(QContextMenuEvent::Mouse, at, c->mapToGlobal(at));
    QApplication::sendEvent(c, &e);
    QMenu* menu = nullptr;
    until([&] { return (menu = window_->findChild<QMenu*>("timeline.menu")) && menu->isVisible(); });
    return menu;
  };
  QMenu* menu = menu_at(deep);
  ASSERT_NE(menu, nullptr);
  ASSERT_TRUE(menu->actions()[0]->text().startsWith("Pin ")) << menu->actions()[0]->text().toStdString();
  click(menu, menu->actionGeometry(menu->actions()[0]).center());
  settle();
  EXPECT_EQ(pinned(), std::vector{deep});
  until([&] { return !window_->findChild<QMenu*>("timeline.menu"); });
  // By the list of all rows, with the keys alone.
  auto* rows = window_->findChild<QMenu*>("timeline.pinned");
  QTimer::singleShot(0, window_.get(), [&] {
    EXPECT_TRUE(rows->isVisible());
    QAction* wanted = nullptr;
    for (QAction* a : rows->actions())
      if (a->text().toStdString() == bands[stream].full_title) wanted = a;
    EXPECT_TRUE(wanted && wanted->isCheckable()) << bands[stream].full_title;
    for (qsizetype i = 0; i < rows->actions().size() && rows->activeAction() != wanted; ++i)
      QTest::keyClick(rows, Qt::Key_Down);
    EXPECT_EQ(rows->activeAction(), wanted);
    QTest::keyClick(rows, rows->activeAction() == wanted ? Qt::Key_Return : Qt::Key_Escape);
  });
  ASSERT_TRUE(window_->commands().run("timeline.pins"));
  settle();
  const auto both = pinned();
  EXPECT_EQ(both.size(), 2u);
  // Closed and opened again they are where they were; then all go back at once.
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  open_trace();
  EXPECT_EQ(pinned(), both);
  c = canvas("timeline");
  click(c, place(c, {LaneModel::pin, static_cast<int64_t>(both[0])}));
  settle();
  EXPECT_EQ(pinned(), std::vector{both[1]});
  ASSERT_TRUE(window_->commands().run("timeline.unpin_all"));
  EXPECT_TRUE(pinned().empty());
  EXPECT_FALSE(window_->commands().find("timeline.unpin_all")->enabled());
}

TEST_F(TraceTimeline, closed_while_its_story_is_worked_out_it_leaves_nothing) {
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  testing::drop_files(window_.get(), {trace_});
  until([this] { return !bench_->documents().empty(); });
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  EXPECT_TRUE(bench_->documents().empty());
  EXPECT_EQ(timeline().story(), nullptr);
  EXPECT_FALSE(timeline().shows_document());
}

}  // namespace
}  // namespace tenon::views
