// The overview in the window: in front when a trace opens, its rows and bars lead to the timeline, and what it says
// where there is no trace.
#include <gtest/gtest.h>

#include <QLabel>
#include <QPushButton>
#include <QTabWidget>
#include <QTest>
#include <QToolButton>
#include <fstream>

#include "tests/tracing/made_training.h"
#include "tests/views/shell/drop.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/analyses/overview.h"
#include "tracing/analyses/trace_story.h"
#include "views/frame/table_list.h"
#include "views/overview/overview_view.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

class OverviewShown : public testing::WindowTest {
 protected:
  /// A loop that waits for its data.
  void open_trace() {
    make_window();
    const QString path = dir_.filePath("slow.json");
    std::ofstream(path.toStdString()) << tracing::train({.steps = 6, .data = 3000000});
    testing::drop_files(window_.get(), {path});
    settle();
    ASSERT_EQ(bench_->documents().size(), 1u);
  }
  OverviewModel& model() { return bench_->model<OverviewModel>(); }
  TimelineModel& timeline() { return bench_->model<TimelineModel>(); }
  bool in_front(const QString& view) { return !window_->view(view)->visibleRegion().isEmpty(); }
  TableList* list(const QString& title) { return window_->findChild<TableList*>("overview." + title); }
  QPoint row_at(TableList* l, int row) { return l->visualRect(l->model()->index(row, 0)).center(); }
  QString sentence() { return window_->findChild<QLabel*>("overview.sentence")->text(); }
  /// The range of the timeline that is seen holds the selection.
  bool timeline_shows(const Selection& s) {
    return timeline().axis().lo <= s.from + 1 && timeline().axis().hi >= s.to - 1 &&
           timeline().axis().span() < (s.to - s.from) * 12;
  }
};

TEST_F(OverviewShown, an_opened_trace_begins_with_its_overview) {
  open_trace();
  EXPECT_TRUE(in_front("overview"));
  EXPECT_FALSE(in_front("timeline"));
  const auto trace = bench_->documents()[0].trace;
  const tracing::Finding said = tracing::trace_analyses().at("overview").run({.traces = {trace}, .top = 200});
  EXPECT_EQ(sentence().toStdString(), said.sentence);
  EXPECT_TRUE(sentence().contains("data-bound"));
  ASSERT_TRUE(model().page() && model().page()->overview);
  EXPECT_EQ(model().bars().size(), model().page()->overview->steps.size());
  // The table of recommendations holds what the command line says.
  ASSERT_GT(list("Recommendations")->shown_rows(), 0);
  EXPECT_EQ(list("Recommendations")->table().rows[0].cells[0].text, "data loading");
  EXPECT_TRUE(window_->findChild<QLabel*>("overview.told")->text().contains("try this: use more DataLoader workers"));
}

/// What is kept with the trace's store says the same, to the last row.
TEST_F(OverviewShown, a_second_opening_says_what_the_first_said) {
  make_window();
  const QString path = dir_.filePath("long.json");
  std::ofstream(path.toStdString()) << tracing::train({.steps = 400, .data = 3000000});
  std::string said[2];
  for (std::string& all : said) {
    testing::drop_files(window_.get(), {path});
    settle();
    ASSERT_EQ(bench_->documents().size(), 1u);
    const bool second = &all == &said[1];
    EXPECT_EQ(bench_->documents()[0].trace->from_cache(), second);
    EXPECT_EQ(bench_->documents()[0].trace->kept().empty(), !second);
    ASSERT_TRUE(model().page() && model().page()->overview);
    all = sentence().toStdString() + model().last().dump();
    for (const auto& part : model().page()->page.tables)
      for (const Table::Row& row : part.table.rows)
        for (const Table::Cell& cell : row.cells) all += cell.text + "|";
    bench_->close_document(bench_->documents()[0].id);
    settle();
  }
  EXPECT_GT(said[0].size(), 5000u);
  EXPECT_EQ(said[0], said[1]);
}

TEST_F(OverviewShown, the_timeline_s_story_is_worked_out_once_the_timeline_is_seen) {
  open_trace();
  EXPECT_FALSE(timeline().story());
  ASSERT_TRUE(window_->commands().run("view.timeline"));
  settle();
  ASSERT_TRUE(timeline().story());
  EXPECT_FALSE(timeline().story()->gaps.empty());
}

TEST_F(OverviewShown, the_cause_is_shown_in_the_timeline) {
  open_trace();
  press("overview.cause");
  settle();
  EXPECT_TRUE(in_front("timeline"));
  ASSERT_TRUE(bench_->bus.current().same(model().page()->cause));
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::range);
  EXPECT_TRUE(timeline_shows(bench_->bus.current()));
  ASSERT_TRUE(window_->commands().run("view.overview"));
  settle();
  ASSERT_TRUE(window_->commands().run("overview.cause")) << "by the palette, too";
  settle();
  EXPECT_TRUE(in_front("timeline"));
}

TEST_F(OverviewShown, a_recommendation_selects_and_a_double_click_shows_it) {
  open_trace();
  TableList* advice = list("Recommendations");
  click(advice->viewport(), row_at(advice, 0));
  settle();
  EXPECT_TRUE(in_front("overview"));
  const Selection chosen = bench_->bus.current();
  EXPECT_EQ(chosen.document, bench_->documents()[0].id);
  QTest::mouseDClick(advice->viewport(), Qt::LeftButton, {}, row_at(advice, 0));
  settle();
  EXPECT_TRUE(in_front("timeline"));
  EXPECT_TRUE(timeline_shows(chosen));
  // By keys: the list, a row, Enter.
  ASSERT_TRUE(window_->commands().run("view.overview"));
  settle();
  auto* tabs = window_->findChild<QTabWidget*>("overview.tables");
  tabs->setCurrentIndex(0);
  TableList* kernels = list("Kernels");
  kernels->setFocus();
  key(kernels, Qt::Key_Down);
  settle();
  ASSERT_EQ(bench_->bus.current().kind, Selection::Kind::event);
  key(kernels, Qt::Key_Return);
  settle();
  EXPECT_TRUE(in_front("timeline"));
  EXPECT_EQ(timeline().selected_event(), static_cast<traces::EventId>(bench_->bus.current().id));
}

TEST_F(OverviewShown, a_bar_selects_its_step_and_a_double_click_shows_it) {
  open_trace();
  SceneCanvas* c = canvas("overview");
  c->setFocus();
  click(c, place(c, {OverviewModel::bar, 2}));
  settle();
  const auto& step = model().page()->overview->steps[2];
  const int64_t origin = bench_->documents()[0].trace->begin();
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::range);
  EXPECT_EQ(bench_->bus.current().from, static_cast<double>(step.begin - origin));
  EXPECT_TRUE(in_front("overview"));
  key(c, Qt::Key_Right);
  settle();
  EXPECT_EQ(bench_->bus.current().from, static_cast<double>(model().page()->overview->steps[3].begin - origin));
  QTest::mouseDClick(c, Qt::LeftButton, {}, place(c, {OverviewModel::bar, 4}));
  settle();
  EXPECT_TRUE(in_front("timeline"));
  EXPECT_TRUE(timeline_shows(bench_->bus.current()));
}

TEST_F(OverviewShown, of_a_recorded_step_it_tells_the_step_and_without_one_the_way_there) {
  open_spirals();
  window_->show_view("overview");
  settle();
  EXPECT_TRUE(window_->view("overview")->empty());
  train(5);
  load_step(3);
  window_->show_view("overview");
  settle();
  ASSERT_FALSE(window_->view("overview")->empty());
  EXPECT_TRUE(sentence().startsWith("The step is")) << sentence().toStdString();
  const tracing::Overview& o = *model().page()->overview;
  ASSERT_EQ(o.steps.size(), 1u);
  EXPECT_GT(o.sum[tracing::StepPart::backward], 0);
  EXPECT_GT(o.sum[tracing::StepPart::optimizer], 0);
  EXPECT_EQ(o.sum.length(), o.steps[0].end - o.steps[0].begin);
  auto* tabs = window_->findChild<QTabWidget*>("overview.tables");
  for (int i = 0; i < tabs->count(); ++i)
    if (tabs->tabText(i) == "Ops") tabs->setCurrentIndex(i);
  TableList* ops = list("Ops");
  ASSERT_GT(ops->shown_rows(), 0);
  click(ops->viewport(), row_at(ops, 0));
  settle();
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::op);
  EXPECT_EQ(timeline().selected(), bench_->bus.current().id);
  // Another step has its own page, and a trace beside it another.
  const auto before = model().page();
  load_step(4);
  window_->show_view("overview");
  settle();
  EXPECT_NE(model().page(), before);
}

TEST_F(OverviewShown, closed_and_opened_again_it_follows_what_is_shown) {
  open_trace();
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  window_->show_view("overview");
  settle();
  EXPECT_TRUE(window_->view("overview")->empty());
  EXPECT_EQ(model().page(), nullptr);
  EXPECT_FALSE(window_->commands().find("overview.cause")->enabled());
  // A trace without events, and a file that is no trace, say so.
  const QString none = dir_.filePath("none.json");
  std::ofstream(none.toStdString()) << R"({"schemaVersion":1,"traceEvents":[]})";
  testing::drop_files(window_.get(), {none});
  settle();
  window_->show_view("overview");
  settle();
  EXPECT_TRUE(window_->view("overview")->empty());
}

TEST_F(OverviewShown, a_report_of_it_is_written_from_the_menu) {
  open_trace();
  ASSERT_TRUE(window_->commands().find("file.report")->enabled());
  const QString page = dir_.filePath("page.html");
  answer(page);
  choose_in_menu("File", "file.report");
  settle();
  EXPECT_TRUE(banner().contains("the report of slow.json")) << banner().toStdString();
  std::ifstream in(page.toStdString());
  const std::string html((std::istreambuf_iterator<char>(in)), {});
  EXPECT_NE(html.find("data-bound"), std::string::npos);
  EXPECT_TRUE(problems_.empty());
}

}  // namespace
}  // namespace tenon::views
