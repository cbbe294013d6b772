// Findings in the window: of a trace without a project and of a step; rows lead to the timeline; filters go back.
#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QTabWidget>
#include <QTest>
#include <QToolButton>
#include <QToolTip>
#include <algorithm>
#include <fstream>

#include "tests/views/shell/drop.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/analyses/trace_analysis.h"
#include "views/findings/findings_view.h"
#include "views/frame/table_list.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

class Findings : public testing::WindowTest {
 protected:
  void open_trace() {
    make_window();
    testing::drop_files(window_.get(), {QString::fromStdString(testing::small_trace(dir_.path().toStdString()))});
    settle();
    ASSERT_EQ(bench_->documents().size(), 1u);
  }
  FindingsView* view() { return qobject_cast<FindingsView*>(window_->view("findings")); }
  QString sentence() { return window_->findChild<QLabel*>("findings.sentence")->text(); }
  TableList* table(const QString& title) {
    auto* tabs = window_->findChild<QTabWidget*>("findings.tables");
    for (int i = 0; i < tabs->count(); ++i)
      if (tabs->tabText(i) == title) {
        tabs->setCurrentIndex(i);
        return static_cast<TableList*>(tabs->widget(i));
      }
    return nullptr;
  }
  void choose(const QString& analysis) {
    auto* list = window_->findChild<QListWidget*>("findings.analyses");
    const auto items = list->findItems(analysis, Qt::MatchExactly);
    ASSERT_EQ(items.size(), 1);
    list->scrollToItem(items[0]);
    QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, list->visualItemRect(items[0]).center());
    settle();
  }
  TimelineModel& timeline() { return bench_->model<TimelineModel>(); }
  QToolButton* chip(const QString& text) {
    for (QWidget* bar : window_->findChildren<QWidget*>("filter"))
      for (QToolButton* b : bar->findChildren<QToolButton*>())
        if (b->isVisible() && b->text().startsWith(text)) return b;
    return nullptr;
  }
};

TEST_F(Findings, every_analysis_of_a_trace_is_a_page_that_says_what_the_command_line_says) {
  open_trace();
  ASSERT_TRUE(window_->commands().run("view.findings"));
  settle();
  const auto trace = bench_->documents()[0].trace;
  int pages = 0;
  for (const tracing::TraceAnalysis& a : tracing::trace_analyses()) {
    if (a.min_traces > 1) continue;
    choose(QString::fromStdString(a.name));
    const tracing::Finding expected = a.run({{trace}, 200, -1});
    EXPECT_EQ(sentence().toStdString(), expected.sentence) << a.name;
    ASSERT_NE(view()->page(), nullptr) << a.name;
    EXPECT_EQ(view()->page()->ok, expected.ok);
    EXPECT_EQ(view()->page()->tables.size(), expected.tables.size());
    pages += expected.ok;
  }
  EXPECT_GE(pages, 6);
}

TEST_F(Findings, what_a_table_cuts_of_its_sentences_stands_under_it) {
  open_trace();
  ASSERT_TRUE(window_->commands().run("view.findings"));
  settle();
  choose("why");
  const auto expected = tracing::trace_analyses().at("why").run({{bench_->documents()[0].trace}, 200, -1});
  const auto tried = [&](size_t row) { return std::get<std::string>(expected.tables.at(0).rows.at(row).at(4)); };
  view()->resize(view()->width(), 600);
  settle();
  const auto* told = window_->findChild<QLabel*>("findings.told");
  EXPECT_TRUE(told->isVisibleTo(view()));
  EXPECT_TRUE(told->text().endsWith("\nTry: " + QString::fromStdString(tried(0)))) << told->text().toStdString();
  TableList* causes = table("Causes");
  ASSERT_NE(causes, nullptr);
  EXPECT_LE(causes->horizontalHeader()->length(), causes->viewport()->width()) << "nothing is to be scrolled to";
  const QPoint second = causes->visualRect(causes->model()->index(1, 1)).center();
  QTest::mouseClick(causes->viewport(), Qt::LeftButton, {}, second);
  settle();
  EXPECT_TRUE(told->text().endsWith("\nTry: " + QString::fromStdString(tried(1)))) << told->text().toStdString();
  choose("steps");
  EXPECT_FALSE(told->isVisibleTo(view())) << "numbers alone";
}

TEST_F(Findings, a_name_that_looks_like_a_page_is_a_name) {
  make_window();
  const QString file = dir_.filePath("named.json");
  std::ofstream(file.toStdString()) << R"({"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"<h1>large</h1><img src='/x.png'>","pid":1,"tid":1,"ts":0,"dur":90},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":100,"dur":5}]})";
  testing::drop_files(window_.get(), {file});
  settle();
  ASSERT_EQ(bench_->documents().size(), 1u) << (problems_.empty() ? "" : problems_.back());
  ASSERT_TRUE(window_->commands().run("view.findings"));
  settle();
  choose("ops");
  const auto* label = window_->findChild<QLabel*>("findings.sentence");
  EXPECT_TRUE(label->text().contains("<h1>large</h1>")) << label->text().toStdString();
  EXPECT_EQ(label->textFormat(), Qt::PlainText);
  QToolTip::showText({9, 9}, "<h1>large</h1>", window_.get());
  const auto tops = QApplication::topLevelWidgets();
  const auto tip = std::find_if(tops.begin(), tops.end(), [](QWidget* w) { return w->inherits("QTipLabel"); });
  ASSERT_NE(tip, tops.end());
  EXPECT_EQ(qobject_cast<QLabel*>(*tip)->textFormat(), Qt::PlainText);
  QToolTip::hideText();
}

TEST_F(Findings, a_row_leads_to_its_event_in_the_timeline) {
  open_trace();
  ASSERT_TRUE(window_->commands().run("view.findings"));
  settle();
  choose("kernels");
  TableList* kernels = table("Kernels");
  ASSERT_NE(kernels, nullptr);
  ASSERT_EQ(kernels->shown_rows(), 3);
  QTest::mouseClick(kernels->viewport(), Qt::LeftButton, {},
                    kernels->visualRect(kernels->model()->index(1, 0)).center());
  settle();
  const Selection chosen = bench_->bus.current();
  ASSERT_EQ(chosen.kind, Selection::Kind::event);
  EXPECT_EQ(chosen.document, bench_->documents()[0].id);
  EXPECT_EQ(timeline().selected_event(), chosen.id);
  EXPECT_EQ(timeline().trace()->event_name(timeline().selected_event()), kernels->table().rows[1].cells[0].text);
  // A step of an analysis of time is a stretch; nothing is lost on the way back.
  choose("idle");
  TableList* steps = table("Steps");
  ASSERT_NE(steps, nullptr);
  QTest::mouseClick(steps->viewport(), Qt::LeftButton, {}, steps->visualRect(steps->model()->index(0, 0)).center());
  settle();
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::range);
  ASSERT_TRUE(window_->commands().run("go.back"));
  settle();
  EXPECT_TRUE(bench_->bus.current().same(chosen));
}

TEST_F(Findings, a_filter_is_shared_and_goes_back) {
  open_trace();
  window_->show_view("timeline");
  settle();
  auto* search = window_->findChild<QLineEdit*>("timeline.search");
  auto* names = window_->findChild<TableList*>("timeline.names");
  const int all = names->shown_rows();
  search->setFocus();
  QTest::keyClicks(search, "kernel1");
  settle();
  EXPECT_EQ(names->shown_rows(), 1);
  EXPECT_EQ(bench_->filter().name, "kernel1");
  // The thread of an event, by the menu's command; its condition is a button that takes it away.
  bench_->select(Selection::event(bench_->documents()[0].id, 3, "test"));
  settle();
  const int64_t row = timeline().trace()->row_of(3);
  ASSERT_TRUE(window_->commands().run("filter.row"));
  settle();
  EXPECT_EQ(bench_->filter().row, row);
  ASSERT_TRUE(window_->commands().run("filter.time"));
  settle();
  EXPECT_TRUE(bench_->filter().has_range());
  EXPECT_FALSE(window_->commands().find("filter.module")->enabled()) << "a trace has no modules";
  // In Findings the same conditions stand, the name too.
  window_->show_view("findings");
  settle();
  QToolButton* name = chip("“kernel1”");
  ASSERT_NE(name, nullptr);
  QTest::mouseClick(name, Qt::LeftButton);
  settle();
  EXPECT_EQ(bench_->filter().name, "");
  EXPECT_EQ(search->text(), "");
  // Words that are typed choose nothing, also where a table loses the row that was clicked.
  choose("kernels");
  TableList* kernels = table("Kernels");
  QTest::mouseClick(kernels->viewport(), Qt::LeftButton, {},
                    kernels->visualRect(kernels->model()->index(0, 0)).center());
  settle();
  const Selection clicked = bench_->bus.current();
  Filter other = bench_->filter();
  other.name = "kernel" + std::string(kernels->table().rows[0].cells[0].text == "kernel0" ? "1" : "0");
  bench_->set_filter(other);
  settle();
  EXPECT_EQ(kernels->shown_rows(), 1);
  EXPECT_TRUE(bench_->bus.current().same(clicked));
  bench_->undo_filter();
  settle();
  // Back, by its keys, one step at a time: the name, the time, the thread, the word that was typed.
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(window_->commands().action("filter.back")->isEnabled()) << i;
    key(window_.get(), Qt::Key_Z, Qt::ControlModifier | Qt::AltModifier);
    settle();
  }
  EXPECT_FALSE(bench_->filter());
  EXPECT_FALSE(window_->commands().action("filter.back")->isEnabled());
  window_->show_view("timeline");
  settle();
  EXPECT_EQ(names->shown_rows(), all);
  key(window_.get(), Qt::Key_Y, Qt::ControlModifier | Qt::AltModifier);
  settle();
  EXPECT_EQ(search->text(), "kernel1");
  ASSERT_TRUE(window_->commands().run("filter.none"));
  settle();
  EXPECT_FALSE(bench_->filter());
}

TEST_F(Findings, of_a_step_rows_select_ops_and_a_module_filters) {
  open_spirals();
  window_->show_view("findings");
  settle();
  EXPECT_EQ(view()->page(), nullptr) << "there is no step yet";
  train(5);
  load_step(3);
  window_->show_view("findings");
  settle();
  choose("ops");
  TableList* ops = table("Ops");
  ASSERT_NE(ops, nullptr) << sentence().toStdString();
  QTest::mouseClick(ops->viewport(), Qt::LeftButton, {}, ops->visualRect(ops->model()->index(0, 0)).center());
  settle();
  ASSERT_EQ(bench_->bus.current().kind, Selection::Kind::op);
  EXPECT_EQ(timeline().selected(), bench_->bus.current().id);
  // Another step: its own page.
  const auto before = view()->page();
  load_step(4);
  window_->show_view("findings");
  settle();
  EXPECT_NE(view()->page(), nullptr);
  EXPECT_NE(view()->page(), before);
  // A module of the step narrows the timeline's tables.
  auto* events = window_->findChild<TableList*>("timeline.events");
  window_->show_view("timeline");
  settle();
  const int all = events->shown_rows();
  std::string module;
  for (const auto& row : timeline().modules().rows)
    if (row.selection) module = row.selection.name;
  bench_->select(Selection::module(module, "test"));
  settle();
  ASSERT_TRUE(window_->commands().run("filter.module"));
  settle();
  EXPECT_LT(events->shown_rows(), all);
  EXPECT_GT(events->shown_rows(), 0);
  ASSERT_TRUE(window_->commands().run("filter.back"));
  settle();
  EXPECT_EQ(events->shown_rows(), all);
}

}  // namespace
}  // namespace tenon::views
