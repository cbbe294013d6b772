// Several files at once, and a folder with a trace of each rank as one document: dropped, chosen in a dialog, named on
// the command line.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QFileDialog>
#include <QLabel>
#include <QListWidget>
#include <QProcess>
#include <QTabWidget>
#include <QTest>
#include <filesystem>
#include <fstream>

#include "tests/tracing/made_ranks.h"
#include "tests/views/shell/drop.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "views/findings/findings_view.h"
#include "views/frame/table_list.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

class SessionView : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    folder_ = dir_.filePath("session");
    std::filesystem::create_directories(folder_.toStdString());
    for (int rank = 0; rank < 3; ++rank) tracing::write_rank(folder_.toStdString(), rank, rank * 250000);
  }
  void open_folder() {
    make_window();
    testing::drop_files(window_.get(), {folder_});
    settle();
    ASSERT_EQ(bench_->documents().size(), 1u) << (problems_.empty() ? "" : problems_.back());
  }
  const Document& document() { return bench_->documents().at(0); }
  TimelineModel& timeline() { return bench_->model<TimelineModel>(); }
  FindingsView* findings() { return qobject_cast<FindingsView*>(window_->view("findings")); }
  /// Every page is about it.
  void expect_rank(size_t rank) {
    EXPECT_EQ(document().rank, rank);
    const QString title = QString("rank %1").arg(rank);
    for (QComboBox* box : window_->findChildren<QComboBox*>())
      if (box->objectName().endsWith(".rank")) {
        EXPECT_EQ(box->currentText(), title) << box->objectName().toStdString();
      }
  }
  traces::EventId named(const std::string& name) {
    for (traces::EventId e = 0; e < document().trace->size(); ++e)
      if (document().trace->event_name(e) == name) return e;
    ADD_FAILURE() << "no event " << name;
    return 0;
  }
  QString folder_;
};

TEST_F(SessionView, each_rank_of_a_folder_is_a_group_that_folds_on_one_axis) {
  open_folder();
  EXPECT_EQ(document().ranks.size(), 3u);
  EXPECT_TRUE(window_->windowTitle().startsWith("session"));
  SceneCanvas* c = canvas("timeline");
  std::vector<size_t> headings;
  const auto& bands = timeline().layout().bands();
  for (size_t b = 0; b < bands.size(); ++b)
    if (bands[b].kind == LaneLayout::Band::Kind::heading) headings.push_back(b);
  ASSERT_EQ(headings.size(), 3u);
  EXPECT_EQ(bands[headings[1]].title, "rank 1 · host_1.pt.trace.json");
  const size_t seen = timeline().layout().place(0, 20).size();
  click(c, place(c, {LaneModel::fold, static_cast<int64_t>(headings[1])}));
  settle();
  EXPECT_EQ(timeline().layout().place(0, 20).size(), seen - 2) << "a thread and a stream";
  // An event of rank 2, by the search and the keys: the pages follow it to its rank, and its arguments are its file's.
  auto* search = window_->findChild<QLineEdit*>("timeline.search");
  search->setFocus();
  QTest::keyClicks(search, "of rank 2");
  key(search, Qt::Key_Return);
  settle();
  const auto chosen = timeline().selected_event();
  ASSERT_NE(chosen, traces::kNone);
  EXPECT_EQ(document().rank_of(chosen), 2);
  expect_rank(2);
  EXPECT_NE(document().trace->event_text(chosen).find("aten::op of rank 2"), std::string::npos);
}

TEST_F(SessionView, pages_are_about_the_rank_that_is_chosen_and_their_rows_lead_to_its_events) {
  open_folder();
  window_->show_view("findings");
  settle();
  auto* box = window_->findChild<QComboBox*>("findings.rank");
  ASSERT_TRUE(box->isVisible());
  box->setFocus();
  key(box, Qt::Key_Down);
  settle();
  expect_rank(1);
  findings()->choose("ops");
  settle();
  ASSERT_NE(findings()->page(), nullptr);
  Selection row;
  for (const auto& r : findings()->page()->tables.at(0).table.rows) {
    EXPECT_NE(r.cells[0].text, "aten::op of rank 0");
    if (r.cells[0].text == "aten::op of rank 1") row = r.selection;
  }
  ASSERT_EQ(row.kind, Selection::Kind::event);
  bench_->select(row);
  settle();
  expect_rank(1);
  EXPECT_EQ(timeline().trace()->event_name(timeline().selected_event()), "aten::op of rank 1");
  // Time is the session's: a step that a page selects is where the timeline has it.
  findings()->choose("steps");
  settle();
  Selection step;
  for (const auto& part : findings()->page()->tables)
    for (const auto& r : part.table.rows)
      if (!step && r.selection) step = r.selection;
  ASSERT_TRUE(step);
  bench_->select(step);
  settle();
  const auto first = named("ProfilerStep#0");  // of rank 0
  const auto own = document().ranks[1].first_event + (first - document().ranks[0].first_event);
  ASSERT_EQ(document().trace->event_name(own), "ProfilerStep#0");
  if (step.kind == Selection::Kind::range) {
    EXPECT_DOUBLE_EQ(step.from, static_cast<double>(document().trace->start(own) - document().trace->begin()));
  }
  if (step.kind == Selection::Kind::event) {
    EXPECT_EQ(document().rank_of(step.id), 1);
  }
}

TEST_F(SessionView, all_ranks_are_told_of_in_findings_and_overview) {
  open_folder();
  window_->show_view("findings");
  settle();
  findings()->choose("ranks");
  settle();
  ASSERT_NE(findings()->page(), nullptr);
  EXPECT_NE(findings()->page()->sentence.find("Rank 2 comes last"), std::string::npos) << findings()->page()->sentence;
  EXPECT_EQ(findings()->page()->tables.at(0).table.rows.size(), 3u);
  // A row leads to the collective to which that rank came latest, whichever rank the pages are about.
  auto* rows = static_cast<TableList*>(window_->findChild<QTabWidget*>("findings.tables")->widget(0));
  QTest::mouseClick(rows->viewport(), Qt::LeftButton, {}, rows->visualRect(rows->model()->index(2, 0)).center());
  settle();
  ASSERT_EQ(bench_->bus.current().kind, Selection::Kind::event);
  EXPECT_EQ(document().rank_of(bench_->bus.current().id), 2);
  expect_rank(2);
  EXPECT_EQ(timeline().trace()->event_name(timeline().selected_event()), "ncclDevKernel_AllReduce_Sum_f32");
  window_->show_view("overview");
  settle();
  EXPECT_TRUE(window_->findChild<QLabel*>("overview.sentence")->text().contains("Rank 2 comes last"));
  auto* list = window_->findChild<TableList*>("overview.Ranks");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->shown_rows(), 3);
  EXPECT_TRUE(list->isVisible());
  // Closed and one file alone opened: nothing of ranks is left.
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  testing::drop_files(window_.get(), {folder_ + "/host_1.pt.trace.json"});
  settle();
  window_->show_view("findings");
  settle();
  EXPECT_TRUE(window_->findChild<QListWidget*>("findings.analyses")->findItems("ranks", Qt::MatchExactly).isEmpty());
  EXPECT_FALSE(window_->findChild<QComboBox*>("findings.rank")->isVisible());
}

TEST_F(SessionView, flame_query_and_compare_are_about_one_rank) {
  open_folder();
  bench_->select(Selection::event(document().id, named("aten::op of rank 1"), "test"));
  settle();
  SceneCanvas* flame = canvas("flame");
  until([&] { return !flame->model().last().targets().empty(); });
  EXPECT_TRUE(window_->findChild<ElidedLabel*>("flame.subject")->toolTip().contains("rank 1") ||
              window_->findChild<ElidedLabel*>("flame.subject")->accessibleName().contains("rank 1"));
  window_->show_view("query");
  settle();
  auto* answer = window_->findChild<TableList*>("query.table");
  ASSERT_NE(answer, nullptr);
  const Table rows = answer->shown();
  ASSERT_FALSE(rows.rows.empty());
  for (const Table::Row& r : rows.rows)
    if (r.selection) {
      EXPECT_EQ(document().rank_of(r.selection.id), 1);
    }
  // Each rank can be compared with each.
  window_->show_view("compare");
  settle();
  EXPECT_EQ(window_->findChild<QComboBox*>("compare.a")->count(), 3);
}

TEST_F(SessionView, a_folder_with_a_broken_trace_opens_without_it_and_says_so) {
  std::ofstream((folder_ + "/broken.json").toStdString()) << "{\"traceEvents\": 7}";
  tracing::write_rank(folder_.toStdString(), 1, 90000000, "later");
  open_folder();
  EXPECT_EQ(document().ranks.size(), 3u);
  EXPECT_TRUE(banner().contains("broken.json is no trace")) << banner().toStdString();
  EXPECT_TRUE(banner().contains("host_1.pt.trace.json is of rank 1")) << banner().toStdString();
  EXPECT_TRUE(problems_.empty());
  // One without any is told, and nothing is opened.
  const QString bare = dir_.filePath("bare");
  std::filesystem::create_directories(bare.toStdString());
  testing::drop_files(window_.get(), {bare});
  settle();
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_NE(problems_[0].find("there is no trace in"), std::string::npos) << problems_[0];
  EXPECT_EQ(bench_->documents().size(), 1u);
}

TEST_F(SessionView, of_several_files_the_one_that_cannot_be_read_is_told_and_the_others_open) {
  make_window();
  const QString broken = dir_.filePath("broken.json");
  std::ofstream(broken.toStdString()) << "{\"traceEvents\": 7}";
  testing::drop_files(window_.get(), {broken, folder_ + "/host_0.pt.trace.json", folder_ + "/host_1.pt.trace.json"});
  settle();
  EXPECT_EQ(bench_->documents().size(), 2u);
  EXPECT_TRUE(banner_shown());
  EXPECT_TRUE(banner().contains("broken.json is no trace")) << banner().toStdString();
}

TEST_F(SessionView, the_folder_and_several_files_are_chosen_in_the_dialogs) {
  make_window();
  QTimer::singleShot(0, window_.get(), [this] {
    auto* d = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    ASSERT_NE(d, nullptr);
    d->findChild<QLineEdit*>("fileNameEdit")->setText(folder_);
    QMetaObject::invokeMethod(d, "accept");
  });
  choose_in_menu("File", "file.open_folder");
  settle();
  ASSERT_EQ(bench_->documents().size(), 1u);
  EXPECT_EQ(document().ranks.size(), 3u);
  QTimer::singleShot(0, window_.get(), [this] {
    auto* d = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    ASSERT_NE(d, nullptr);
    d->setDirectory(folder_);
    d->findChild<QLineEdit*>("fileNameEdit")->setText("\"host_0.pt.trace.json\" \"host_2.pt.trace.json\"");
    QMetaObject::invokeMethod(d, "accept");
  });
  choose_in_menu("File", "file.open");
  settle();
  ASSERT_EQ(bench_->documents().size(), 3u);
  EXPECT_EQ(bench_->documents()[1].title, "host_0.pt.trace.json");
  EXPECT_EQ(bench_->documents()[2].title, "host_2.pt.trace.json");
  EXPECT_TRUE(bench_->documents()[1].ranks.empty());
}

TEST_F(SessionView, a_picture_of_a_folder_is_made_without_a_hand) {
  const QString picture = dir_.filePath("session.png");
  QProcess program;
  program.start(QString(TENON_BINARY_DIR) + "/bin/tenon",
                {"shot", folder_, "--view", "timeline", "--size", "900x600", "-o", picture});
  ASSERT_TRUE(program.waitForFinished(120000));
  EXPECT_EQ(program.exitCode(), 0) << program.readAllStandardError().toStdString();
  EXPECT_EQ(QImage(picture).size(), QSize(900, 600));
}

}  // namespace
}  // namespace tenon::views
