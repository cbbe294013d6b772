// SQL in the window: typed, completed, asked, stopped; rows that lead to what they are about; a chart; saved queries.
#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QCompleter>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QTest>
#include <QToolButton>
#include <QTreeWidget>

#include "tests/views/shell/drop.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/table_list.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

constexpr const char* kWithoutEnd =
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";

class QueryWindow : public testing::WindowTest {
 protected:
  void open_trace() {
    if (!window_) make_window();
    testing::drop_files(window_.get(), {QString::fromStdString(testing::small_trace(dir_.path().toStdString()))});
    settle();
    ASSERT_EQ(bench_->documents().size(), 1u);
    show();
  }
  void show() {
    ASSERT_TRUE(window_->commands().run("view.query"));
    settle();
  }
  QPlainTextEdit* editor() { return window_->findChild<QPlainTextEdit*>("query.sql"); }
  TableList* list() { return window_->findChild<TableList*>("query.table"); }
  QString said() { return window_->findChild<QLabel*>("query.said")->text(); }
  QAbstractItemView* words() { return editor()->findChild<QCompleter*>()->popup(); }
  void type(const QString& sql) {
    editor()->setFocus();
    QTest::keyClick(editor(), Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(editor(), sql);
    if (words()->isVisible()) QTest::keyClick(words(), Qt::Key_Escape);
  }
  void ask(const QString& sql) {
    type(sql);
    ASSERT_EQ(editor()->toPlainText(), sql);
    QTest::keyClick(editor(), Qt::Key_Return, Qt::ControlModifier);
  }
  void answer(const QString& sql) {
    ask(sql);
    settle();
  }
  void click_row(int row, int column = 0) {
    const QModelIndex at = list()->model()->index(row, column);
    list()->scrollTo(at);
    QTest::mouseClick(list()->viewport(), Qt::LeftButton, {}, list()->visualRect(at).center());
    settle();
  }
  QTreeWidgetItem* on_side(const QString& text) {
    const auto found =
        window_->findChild<QTreeWidget*>("query.list")->findItems(text, Qt::MatchExactly | Qt::MatchRecursive);
    return found.isEmpty() ? nullptr : found[0];
  }
  void click_side(const QString& text) {
    auto* side = window_->findChild<QTreeWidget*>("query.list");
    QTreeWidgetItem* item = on_side(text);
    ASSERT_NE(item, nullptr) << text.toStdString();
    side->scrollToItem(item);
    QTest::mouseClick(side->viewport(), Qt::LeftButton, {}, side->visualItemRect(item).center());
    settle();
  }
  bool asking() { return bench_->jobs.has("query"); }
};

TEST_F(QueryWindow, an_example_is_answered_at_once_and_rows_lead_to_events) {
  open_trace();
  EXPECT_FALSE(list()->table().rows.empty()) << said().toStdString();
  EXPECT_TRUE(said().contains("3 rows in")) << said().toStdString();
  answer("select id, name, dur from events where kind = 'kernel' order by start");
  ASSERT_EQ(list()->shown_rows(), 40);
  EXPECT_EQ(list()->table().columns[2].title, "dur, ns");
  EXPECT_EQ(list()->table().rows[0].cells[2].text, "160000");
  click_row(7, 1);
  const Selection chosen = bench_->bus.current();
  ASSERT_EQ(chosen.kind, Selection::Kind::event);
  EXPECT_EQ(std::to_string(chosen.id), list()->table().rows[7].cells[0].text);
  EXPECT_EQ(bench_->model<TimelineModel>().selected_event(), chosen.id);
  EXPECT_EQ(list()->currentIndex().row(), 7);
  // And the other way round: what is chosen elsewhere is marked here.
  const int64_t third = std::stoll(list()->table().rows[2].cells[0].text);
  bench_->select(Selection::event(bench_->documents()[0].id, third, "test"));
  settle();
  EXPECT_EQ(list()->selectionModel()->selectedRows().value(0).row(), 2);
}

TEST_F(QueryWindow, words_are_completed_as_one_types) {
  open_trace();
  type("");
  QTest::keyClicks(editor(), "sel");
  ASSERT_TRUE(words()->isVisible());
  QTest::keyClick(words(), Qt::Key_Tab);
  EXPECT_EQ(editor()->toPlainText(), QString("select"));
  QTest::keyClicks(editor(), " cate");
  ASSERT_TRUE(words()->isVisible());
  QTest::keyClick(words(), Qt::Key_Return);
  QTest::keyClicks(editor(), ", count(*) from eve");
  ASSERT_TRUE(words()->isVisible());
  QTest::keyClick(words(), Qt::Key_Tab);
  QTest::keyClicks(editor(), " group by 1");
  EXPECT_EQ(editor()->toPlainText(), "select category, count(*) from events group by 1");
  QTest::keyClick(editor(), Qt::Key_Return, Qt::ControlModifier);
  settle();
  EXPECT_EQ(list()->shown_rows(), 4) << said().toStdString();
  // In a text nothing is offered; Escape closes the list and leaves the words.
  type("select 'ev");
  EXPECT_FALSE(words()->isVisible());
  type("select du");
  QTest::keyClick(editor(), Qt::Key_Space, Qt::ControlModifier);
  ASSERT_TRUE(words()->isVisible());
  QTest::keyClick(words(), Qt::Key_Escape);
  EXPECT_FALSE(words()->isVisible());
  EXPECT_EQ(editor()->toPlainText(), "select du");
}

TEST_F(QueryWindow, what_is_wrong_is_said_and_the_last_answer_stays) {
  open_trace();
  answer("select name, dur from events limit 5");
  answer("select durr from events");
  EXPECT_TRUE(said().contains("no column durr in events")) << said().toStdString();
  EXPECT_TRUE(said().contains("did you mean dur?")) << said().toStdString();
  EXPECT_EQ(list()->shown_rows(), 5);
  answer("drop table events");
  EXPECT_FALSE(said().contains("rows in")) << said().toStdString();
  EXPECT_TRUE(problems_.empty()) << "it stands beside the query, not in a banner";
}

TEST_F(QueryWindow, escape_stops_what_has_no_end) {
  open_trace();
  ask(kWithoutEnd);
  until([this] { return asking(); });
  EXPECT_FALSE(window_->findChild<QToolButton*>("query.run")->isEnabled());
  QTest::keyClick(editor(), Qt::Key_Escape);
  EXPECT_FALSE(asking());
  settle();
  EXPECT_EQ(said(), "The query was stopped.");
  // Also where it is stopped among the jobs.
  ask(kWithoutEnd);
  until([this] { return asking(); });
  bench_->jobs.cancel_tag("query");
  settle();
  EXPECT_EQ(said(), "The query was stopped.");
  ask(kWithoutEnd);
  until([this] { return asking(); });
  press("query.stop");
  settle();
  answer("select 1 as x");
  EXPECT_TRUE(said().contains("1 row in")) << said().toStdString();
}

TEST_F(QueryWindow, what_is_asked_may_be_closed_meanwhile) {
  open_spirals();
  train(4);
  open_trace();
  ask(kWithoutEnd);
  until([this] { return asking(); });
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  EXPECT_FALSE(asking());
  EXPECT_TRUE(bench_->documents().empty());
  // The project is asked now; it may go too.
  show();
  EXPECT_TRUE(said().contains("1 row in")) << said().toStdString();
  ask(kWithoutEnd);
  until([this] { return asking(); });
  open(QString::fromStdString(testing::copy_of(testing::project_state("trained"), dir_.path().toStdString())));
  settle();
  EXPECT_FALSE(asking());
  show();
  EXPECT_TRUE(said().contains("2 rows in")) << said().toStdString();
  ask(kWithoutEnd);
  until([this] { return asking(); });
  close_window();
}

TEST_F(QueryWindow, a_document_and_the_project_each_keep_their_query) {
  open(QString::fromStdString(testing::copy_of(testing::project_state("trained"), dir_.path().toStdString())));
  show();
  answer("select run, step, value from metrics where metric = 'loss' and run = 2");
  EXPECT_EQ(list()->shown_rows(), 20);
  open_trace();
  EXPECT_TRUE(editor()->toPlainText().contains("events"));
  EXPECT_EQ(list()->shown_rows(), 3);
  bench_->select(Selection::run(bench_->contents().runs[0].id, "test"));
  settle();
  EXPECT_TRUE(editor()->toPlainText().startsWith("select run, step"));
  EXPECT_EQ(list()->shown_rows(), 20);
  // A row leads to its run, and once that is shown to its step.
  ASSERT_EQ(bench_->shown_run(), 1);
  click_row(4);
  EXPECT_EQ(bench_->shown_run(), 2);
  EXPECT_EQ(list()->currentIndex().row(), 4) << "of rows that lead to one run the one that was clicked stays chosen";
  click_row(6);
  EXPECT_TRUE(bench_->bus.current().same(Selection::step(std::stoll(list()->table().rows[6].cells[1].text))));
}

TEST_F(QueryWindow, an_answer_is_drawn_and_saved_as_a_table) {
  open_trace();
  answer("select name, sum(dur) from events where kind = 'kernel' group by name order by 2 desc");
  press("query.chart");
  settle();
  SceneCanvas* c = window_->view("query")->canvas();
  ASSERT_TRUE(c->isVisible());
  const auto texts = c->model().last().texts();
  EXPECT_NE(std::find(texts.begin(), texts.end(), "kernel0"), texts.end());
  EXPECT_NE(std::find(texts.begin(), texts.end(), "2.24 ms"), texts.end()) << c->model().last().dump();
  answer("select id, start, dur from events where category = 'kernel'");
  click(c, place(c, {1, 5}));
  settle();
  EXPECT_EQ(std::to_string(bench_->bus.current().id), list()->table().rows[5].cells[0].text);
  const auto table = window_->view("query")->shown_table();
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->rows.size(), 40u);
  press("query.chart");
  EXPECT_FALSE(c->isVisible());
}

TEST_F(QueryWindow, queries_are_saved_used_and_forgotten) {
  open(QString::fromStdString(testing::copy_of(testing::project_state("trained"), dir_.path().toStdString())));
  show();
  answer("select name from runs");
  auto* name = window_->findChild<QLineEdit*>("query.name");
  press("query.save");
  EXPECT_TRUE(name->hasFocus()) << "a name is wanted first";
  QTest::keyClicks(name, "names");
  press("query.save");
  settle();
  ASSERT_NE(on_side("names"), nullptr);
  click_side("How runs ended");
  EXPECT_TRUE(editor()->toPlainText().contains("status"));
  // It is in the project, also when the window is another one.
  const QString file = file_;
  close_window();
  open(file);
  show();
  click_side("names");
  EXPECT_EQ(editor()->toPlainText(), "select name from runs");
  EXPECT_EQ(list()->shown_rows(), 2);
  auto* side = window_->findChild<QTreeWidget*>("query.list");
  side->setCurrentItem(on_side("names"));
  side->setFocus();
  key(side, Qt::Key_Delete);
  settle();
  EXPECT_EQ(on_side("names"), nullptr);
  EXPECT_TRUE(bench_->project()->window_state("queries").empty());
  // The name of a column is written by Enter.
  type("select ");
  QTreeWidgetItem* seconds = nullptr;
  for (QTreeWidgetItem* i : side->findItems("seconds", Qt::MatchExactly | Qt::MatchRecursive)) seconds = i;
  ASSERT_NE(seconds, nullptr);
  side->setCurrentItem(seconds);
  side->setFocus();
  key(side, Qt::Key_Return);
  EXPECT_EQ(editor()->toPlainText(), "select seconds");
}

TEST_F(QueryWindow, without_anything_open_it_says_what_it_would_ask) {
  make_window();
  show();
  EXPECT_TRUE(window_->view("query")->empty());
  EXPECT_FALSE(window_->commands().action("query.run")->isEnabled());
}

}  // namespace
}  // namespace tenon::views
