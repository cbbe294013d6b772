// A memory snapshot in the window: opened, its findings followed into the picture, closed while it is being read.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QTabWidget>
#include <QTest>
#include <QToolButton>
#include <fstream>

#include "tests/tracing/made_snapshot.h"
#include "tests/views/shell/drop.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "views/findings/findings_view.h"
#include "views/frame/table_list.h"
#include "views/memory/memory_model.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

class OpenedSnapshot : public testing::WindowTest {
 protected:
  /// A copy: how a file was left is found again by its path, in the next test too.
  QString recorded(const QString& name) {
    const QString copy = dir_.filePath(name);
    QFile::copy(TENON_SOURCE_DIR "/tests/tracing/data/snapshots/" + name, copy);
    return copy;
  }
  void open_snapshot(const QString& file) {
    if (!window_) make_window();
    testing::drop_files(window_.get(), {file});
    settle();
    ASSERT_FALSE(bench_->documents().empty()) << (problems_.empty() ? "" : problems_.back());
  }
  const Document& document() { return bench_->documents().back(); }
  SnapshotPlot* plot() { return bench_->model<MemoryModel>().snapshot(); }
  TableList* list(const char* name) { return window_->findChild<TableList*>(name); }
  void click_row(TableList* rows, int row) {
    rows->scrollTo(rows->model()->index(row, 0));
    QTest::mouseClick(rows->viewport(), Qt::LeftButton, {}, rows->visualRect(rows->model()->index(row, 0)).center());
    settle();
  }
  bool details_say(const QString& text) {
    for (QLabel* l : window_->view("details")->findChildren<QLabel*>())
      if (l->toolTip().contains(text) || l->text().contains(text) || l->accessibleName().contains(text)) return true;
    return false;
  }
};

TEST_F(OpenedSnapshot, dropped_it_is_in_memory_with_its_peak) {
  open_snapshot(recorded("training-2.15.pickle.gz"));
  EXPECT_EQ(document().kind, Document::Kind::snapshot);
  EXPECT_FALSE(bench_->has_project());
  EXPECT_FALSE(window_->view("memory")->visibleRegion().isEmpty()) << "the view that shows it comes to the front";
  EXPECT_EQ(window_->layout_name(), "Memory");
  ASSERT_NE(plot(), nullptr);
  ASSERT_NE(plot()->history(), nullptr);
  const snapshot::Timeline& t = *plot()->history()->timeline;
  EXPECT_EQ(plot()->cursor(), t.peak());
  // The picture says what the command line says of the peak.
  const tracing::Finding peak = tracing::snapshot_analyses().at("peak").run({.snapshots = {document().snapshot}});
  EXPECT_EQ(std::get<int64_t>(peak.facts.at(0).value), static_cast<int64_t>(plot()->cursor()));
  EXPECT_EQ(std::get<int64_t>(peak.facts.at(1).value), plot()->bytes());
  EXPECT_EQ(list("memory.live")->shown_rows(), static_cast<int>(plot()->blocks_alive()));
  EXPECT_TRUE(window_->windowTitle().startsWith("training-2.15.pickle.gz"));
  EXPECT_TRUE(details_say("training-2.15.pickle.gz"));
  until([this] { return plot()->map(); });
}

TEST_F(OpenedSnapshot, a_finding_leads_to_its_place_an_allocation_to_its_stack_and_back) {
  open_snapshot(recorded("training-2.15.pickle.gz"));
  ASSERT_TRUE(window_->commands().run("view.findings"));
  settle();
  auto* analyses = window_->findChild<QListWidget*>("findings.analyses");
  int pages = 0;
  for (const tracing::SnapshotAnalysis& a : tracing::snapshot_analyses()) {
    if (a.min_files > 1) continue;
    const auto items = analyses->findItems(QString::fromStdString(a.name), Qt::MatchExactly);
    ASSERT_EQ(items.size(), 1) << a.name;
    analyses->scrollToItem(items[0]);
    QTest::mouseClick(analyses->viewport(), Qt::LeftButton, {}, analyses->visualItemRect(items[0]).center());
    settle();
    const tracing::Finding expected = a.run({.snapshots = {document().snapshot}, .top = 200});
    EXPECT_EQ(window_->findChild<QLabel*>("findings.sentence")->text().toStdString(), expected.sentence);
    ++pages;
  }
  EXPECT_GE(pages, 6);
  auto* findings = qobject_cast<FindingsView*>(window_->view("findings"));
  findings->choose("peak");
  settle();
  auto* tabs = window_->findChild<QTabWidget*>("findings.tables");
  auto* owners = static_cast<TableList*>(tabs->widget(0));
  ASSERT_GT(owners->shown_rows(), 1);
  click_row(owners, 1);
  const Selection place = bench_->bus.current();
  ASSERT_EQ(place.kind, Selection::Kind::place);
  EXPECT_EQ(place.name, owners->table().rows[1].cells[0].text);
  EXPECT_TRUE(details_say(QString::fromStdString(place.name)));
  // It has a band of its own in the picture, whether or not it had one.
  const auto& bands = plot()->history()->usage.bands();
  EXPECT_TRUE(std::any_of(bands.begin(), bands.end(), [&](const auto& b) { return b.name == place.name; }));
  // From the list of what is alive to one allocation with its stack.
  ASSERT_TRUE(window_->commands().run("view.memory"));
  settle();
  click_row(list("memory.live"), 0);
  const Selection block = bench_->bus.current();
  ASSERT_EQ(block.kind, Selection::Kind::alloc);
  EXPECT_TRUE(details_say("Stack, the innermost first"));
  ASSERT_TRUE(window_->commands().run("go.back"));
  settle();
  EXPECT_TRUE(bench_->bus.current().same(place));
}

TEST_F(OpenedSnapshot, its_memory_stands_among_the_counters_of_a_trace_of_the_same_run) {
  constexpr int64_t kNoon = 1'700'000'000'000'000;
  nlohmann::json events = nlohmann::json::array(), trace;
  for (int i = 0; i < 200; ++i)
    events.push_back(
        {{"action", "alloc"}, {"addr", 4096 * (i + 1)}, {"size", 1000}, {"stream", 0}, {"time_us", kNoon + i * 10}});
  for (int i = 0; i < 20; ++i)
    trace["traceEvents"].push_back({{"ph", "X"},
                                    {"cat", "cpu_op"},
                                    {"name", "aten::mm"},
                                    {"pid", 1},
                                    {"tid", 1},
                                    {"ts", kNoon + i * 100},
                                    {"dur", 50}});
  const QString snapshot_file = dir_.filePath("run.snapshot.json"), trace_file = dir_.filePath("run.trace.json");
  std::ofstream(snapshot_file.toStdString())
      << nlohmann::json{{"segments", nlohmann::json::array()}, {"device_traces", {events}}}.dump();
  std::ofstream(trace_file.toStdString()) << trace.dump();
  open_snapshot(snapshot_file);
  open_snapshot(trace_file);
  ASSERT_EQ(bench_->documents().size(), 2u);
  canvas("timeline");
  auto counter = [this] {
    const auto& bands = bench_->model<TimelineModel>().layout().bands();
    return std::any_of(bands.begin(), bands.end(), [](const LaneLayout::Band& b) {
      return b.kind == LaneLayout::Band::Kind::counter && b.title == "memory of device 0";
    });
  };
  until(counter);
  settle();
  EXPECT_TRUE(window_->view("timeline")->canvas()->model().last().overlaps().empty());
  bench_->close_document(bench_->documents()[0].id);
  settle();
  bench_->select(Selection::of_document(bench_->documents()[0].id, "test"));
  settle();
  EXPECT_FALSE(counter()) << "it goes with its file";
}

TEST_F(OpenedSnapshot, by_mouse_and_keys_the_cursor_and_the_groups_change) {
  open_snapshot(recorded("training-2.15.pickle.gz"));
  SceneCanvas* c = canvas("memory");
  c->setFocus();
  const size_t peak = plot()->cursor();
  const QPoint middle = place(c, {SnapshotPlot::plot, 0});
  click(c, QPoint(middle.x() / 2 + 40, middle.y()));
  EXPECT_NE(plot()->cursor(), peak);
  press("memory.peak");
  EXPECT_EQ(plot()->cursor(), peak);
  c->setFocus();
  key(c, Qt::Key_W);
  EXPECT_LT(plot()->axis().hi - plot()->axis().lo, static_cast<double>(plot()->events()));
  key(c, Qt::Key_F);
  auto* by = window_->findChild<QComboBox*>("memory.by");
  ASSERT_TRUE(by->isVisible());
  by->setFocus();
  key(by, Qt::Key_Down);
  settle();
  EXPECT_EQ(plot()->history()->asked.by, snapshot::UsageBy::size);
  EXPECT_EQ(plot()->cursor(), peak) << "the same recording is looked at";
  ASSERT_TRUE(window_->findChild<QToolButton*>("memory.over_time")->isEnabled());
  press("memory.over_time");
  EXPECT_TRUE(plot()->over_time());
}

TEST_F(OpenedSnapshot, beside_a_project_each_shows_its_own_memory) {
  open_spirals();
  train(20);
  load_step(20);
  ASSERT_TRUE(window_->commands().run("view.memory"));
  settle();
  EXPECT_EQ(plot(), nullptr);
  open_snapshot(recorded("streams-2.15.pickle.gz"));
  ASSERT_NE(plot(), nullptr);
  EXPECT_TRUE(plot()->history());
  ASSERT_TRUE(window_->commands().run("go.back"));
  settle();
  EXPECT_EQ(plot(), nullptr) << "the step's memory is back";
  EXPECT_FALSE(window_->findChild<QComboBox*>("memory.by")->isVisible());
  ASSERT_TRUE(window_->commands().run("go.forward"));
  settle();
  ASSERT_NE(plot(), nullptr);
  EXPECT_TRUE(plot()->history());
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  EXPECT_TRUE(bench_->documents().empty());
  EXPECT_EQ(plot(), nullptr);
}

TEST_F(OpenedSnapshot, every_recording_opens_and_closes_and_json_is_told_from_a_trace) {
  for (const char* name : {"default-2.3.pickle.gz", "expandable_streams-2.15.pickle.gz", "failure-2.15.pickle.gz",
                           "garbage-2.15.pickle.gz", "late-2.3.pickle.gz", "out_of_memory-2.15.pickle.gz",
                           "pools-2.15.pickle.gz", "ring-2.15.pickle.gz"}) {
    open_snapshot(recorded(name));
    if (HasFatalFailure()) return;
    EXPECT_TRUE(plot() && plot()->history()) << name;
    ASSERT_TRUE(window_->commands().run("file.close_document"));
    settle();
  }
  snapshot::MadeSnapshot m;
  m.alloc("a.py", 100);
  const QString json = dir_.filePath("made.json");
  std::ofstream(json.toStdString()) << m.text();
  open_snapshot(json);
  EXPECT_EQ(document().kind, Document::Kind::snapshot);
  // Without events there is nothing to draw, and the view says where to look.
  const QString dump = dir_.filePath("dump.json");
  snapshot::MadeSnapshot bare;
  bare.segment(1 << 20, 4096, {{1000, true, "x.py"}, {3096, false, ""}});
  std::ofstream(dump.toStdString()) << R"({"segments": )" + bare.text().substr(bare.text().find(R"("segments":)") + 11);
  open_snapshot(dump);
  EXPECT_TRUE(details_say("dump.json"));
}

TEST_F(OpenedSnapshot, a_bookmark_and_what_was_seen_are_there_when_it_is_opened_again) {
  open_snapshot(recorded("training-2.15.pickle.gz"));
  SceneCanvas* c = canvas("memory");
  c->setFocus();
  for (int i = 0; i < 3; ++i) key(c, Qt::Key_W);
  key(c, Qt::Key_Left);
  const size_t at = plot()->cursor();
  ASSERT_NE(at, plot()->history()->timeline->peak());
  QTest::keyClick(c, Qt::Key_B);
  settle();
  auto* note = window_->findChild<QLineEdit*>("memory.note");
  until([note] { return note->hasFocus(); });
  QTest::keyClicks(note, "before the peak");
  QTest::keyClick(note, Qt::Key_Return);
  settle();
  ASSERT_EQ(list("memory.bookmarks")->shown_rows(), 1);
  auto* by = window_->findChild<QComboBox*>("memory.by");
  by->setFocus();
  key(by, Qt::Key_Down);
  settle();
  press("memory.over_time");
  key(c, Qt::Key_W);
  const double lo = plot()->axis().lo, hi = plot()->axis().hi;
  ASSERT_FALSE(plot()->axis().fitted());
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  ASSERT_TRUE(bench_->documents().empty());
  EXPECT_TRUE(bench_->model<MemoryModel>().snapshots().bookmarks().empty());

  open_snapshot(recorded("training-2.15.pickle.gz"));
  ASSERT_NE(plot(), nullptr);
  ASSERT_NE(plot()->history(), nullptr);
  EXPECT_EQ(plot()->history()->asked.by, snapshot::UsageBy::size);
  EXPECT_TRUE(plot()->over_time());
  EXPECT_TRUE(window_->findChild<QToolButton*>("memory.over_time")->isChecked());
  EXPECT_DOUBLE_EQ(plot()->axis().lo, lo);
  EXPECT_DOUBLE_EQ(plot()->axis().hi, hi);
  EXPECT_EQ(plot()->cursor(), at);
  const auto& kept = bench_->model<MemoryModel>().snapshots().bookmarks();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].note, "before the peak");
  // The list leads back to the moment, and the mark goes when it is removed.
  press("memory.peak");
  auto* tabs = window_->view("memory")->findChild<QTabWidget*>();
  EXPECT_EQ(tabs->tabText(1), "Bookmarks (1)");
  tabs->setCurrentIndex(1);
  settle();
  click_row(list("memory.bookmarks"), 0);
  EXPECT_EQ(plot()->cursor(), at);
  press("memory.unbookmark");
  settle();
  EXPECT_TRUE(bench_->model<MemoryModel>().snapshots().bookmarks().empty());
  key(c, Qt::Key_F);
}

TEST_F(OpenedSnapshot, closed_while_it_is_divided_or_broken_it_leaves_nothing) {
  open_snapshot(recorded("training-2.3.pickle.gz"));
  auto* by = window_->findChild<QComboBox*>("memory.by");
  by->setFocus();
  key(by, Qt::Key_Down);
  window_->commands().run("file.close_document");
  settle();
  EXPECT_TRUE(bench_->documents().empty());
  EXPECT_EQ(plot(), nullptr);
  const QString broken = dir_.filePath("broken.pickle");
  std::ofstream(broken.toStdString(), std::ios::binary) << std::string("\x80\x04\x95\x00\x01\x02", 6);
  testing::drop_files(window_.get(), {broken});
  settle();
  EXPECT_TRUE(bench_->documents().empty());
  EXPECT_TRUE(banner_shown());
  EXPECT_TRUE(banner().contains("broken.pickle"));
}

}  // namespace
}  // namespace tenon::views
