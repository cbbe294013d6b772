// A large trace or snapshot is seen before it is read.
#include <gtest/gtest.h>

#include <QLabel>
#include <QToolButton>
#include <filesystem>
#include <fstream>

#include "tests/views/shell/window_fixture.h"
#include "tracing/snapshot/snapshot_store.h"
#include "tracing/trace/trace_reader.h"
#include "views/memory/memory_model.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

struct BeginningView : testing::WindowTest {
  void SetUp() override {
    WindowTest::SetUp();
    trace_ = dir_.filePath("large.json");
    std::ofstream out(trace_.toStdString());
    out << "{\"schemaVersion\": 1, \"traceEvents\": [\n";
    for (int i = 0; i < 700000; ++i)
      out << (i ? ",\n" : "") << R"({"ph": "X", "cat": "cpu_op", "name": "aten::op)" << i % 50
          << R"(", "pid": 1, "tid": )" << 1 + i % 3 << R"(, "ts": )" << 10 * i
          << R"(, "dur": 8, "args": {"External id": )" << i << "}}";
    out << "\n]}\n";
  }
  TimelineModel& timeline() { return bench_->model<TimelineModel>(); }
  /// Opens the file as if for the first time; true where its beginning was seen before the whole.
  bool opened_to_the_beginning() {
    std::error_code code;
    std::filesystem::remove(traces::cache_path(trace_.toStdString()), code);
    bench_->open(trace_);
    until([this] { return bench_->beginning() || !bench_->documents().empty(); });
    return bench_->beginning() != nullptr;
  }
  QString trace_;
};

TEST_F(BeginningView, is_shown_and_gives_way_to_the_whole) {
  make_window();
  bool seen = false;
  for (int i = 0; i < 20 && !seen; ++i) {  // the whole may be quicker where the machine is busy
    if (!bench_->documents().empty()) bench_->close_document(bench_->documents()[0].id);
    settle();
    seen = opened_to_the_beginning();
  }
  ASSERT_TRUE(seen);
  ASSERT_TRUE(timeline().trace());
  const size_t part = timeline().trace()->size();
  EXPECT_GT(part, 10000u);
  EXPECT_LT(part, 700000u);
  EXPECT_EQ(timeline().trace(), bench_->beginning()->trace.get());
  // Nothing of it can be selected, whatever is clicked.
  SceneCanvas* c = window_->view("timeline")->canvas();
  key(c, Qt::Key_Right);
  click(c, c->rect().center());
  if (bench_->beginning()) {
    EXPECT_NE(bench_->bus.current().document, Document::kBeginning);
  }
  settle();
  EXPECT_FALSE(bench_->beginning());
  ASSERT_EQ(bench_->documents().size(), 1u);
  EXPECT_EQ(timeline().trace()->size(), 700000u);
  EXPECT_TRUE(window_->view("overview")->in_sight());
  EXPECT_TRUE(problems_.empty());
  // What was read is there the next time, and opens without a beginning.
  bench_->close_document(bench_->documents()[0].id);
  settle();
  open(trace_);
  settle();
  EXPECT_TRUE(bench_->documents().at(0).trace->from_cache());
}

TEST_F(BeginningView, goes_when_the_reading_is_cancelled_or_a_project_opens) {
  make_window();
  bool seen = false;
  for (int i = 0; i < 20 && !seen; ++i) {
    if (!bench_->documents().empty()) bench_->close_document(bench_->documents()[0].id);
    settle();
    if (!(seen = opened_to_the_beginning())) continue;
    bench_->jobs.cancel_tag(Bench::reading_tag(*bench_->beginning()));
    until([this] { return !bench_->beginning(); });
    seen = bench_->documents().empty();  // else the whole was there before the word came
  }
  ASSERT_TRUE(seen);
  settle();
  EXPECT_TRUE(timeline().empty());
  EXPECT_TRUE(bench_->documents().empty());
  opened_to_the_beginning();
  open_spirals();
  settle();
  EXPECT_FALSE(bench_->beginning());
  EXPECT_TRUE(bench_->has_project());
  EXPECT_EQ(bench_->documents().size(), 1u) << "it is read all the same";
}

TEST_F(BeginningView, what_is_looked_at_in_it_is_looked_at_in_the_whole) {
  make_window();
  bool seen = false;
  double lo = 0, hi = 0;
  for (int i = 0; i < 20 && !seen; ++i) {
    if (!bench_->documents().empty()) bench_->close_document(bench_->documents()[0].id);
    settle();
    if (!opened_to_the_beginning()) continue;
    SceneCanvas* c = window_->view("timeline")->canvas();
    until([&] { return c->width() > 0 && !c->model().last().prims().empty(); });
    for (int k = 0; k < 4; ++k) key(c, Qt::Key_W);
    seen = bench_->beginning() != nullptr && timeline().looks_into_beginning();
    lo = timeline().axis().lo, hi = timeline().axis().hi;
  }
  ASSERT_TRUE(seen);
  settle();
  ASSERT_EQ(bench_->documents().size(), 1u);
  EXPECT_EQ(timeline().trace()->size(), 700000u);
  EXPECT_DOUBLE_EQ(timeline().axis().lo, lo);
  EXPECT_DOUBLE_EQ(timeline().axis().hi, hi);
  EXPECT_TRUE(window_->view("timeline")->in_sight()) << "whoever looks at something is not led away";
}

TEST_F(BeginningView, is_seen_beside_a_project_too_and_a_cancelled_reading_is_told) {
  open_spirals();
  bool seen = false;
  for (int i = 0; i < 20 && !seen; ++i) {
    while (!bench_->documents().empty()) bench_->close_document(bench_->documents()[0].id);
    settle();
    if (!opened_to_the_beginning()) continue;
    ASSERT_TRUE(timeline().shows_beginning());
    until([this] { return window_->view("timeline")->in_sight(); });
    bench_->jobs.cancel_tag(Bench::reading_tag(*bench_->beginning()));
    until([this] { return !bench_->beginning(); });
    seen = bench_->documents().empty();
  }
  ASSERT_TRUE(seen);
  settle();
  EXPECT_TRUE(bench_->has_project());
  EXPECT_FALSE(timeline().shows_document()) << "the project's step has its place again";
  EXPECT_TRUE(banner_shown());
  EXPECT_TRUE(banner().contains("large.json")) << banner().toStdString();
  ASSERT_NE(banner_action(), nullptr);
  click(banner_action(), banner_action()->rect().center());
  until([this] { return !bench_->documents().empty(); });
  settle();
  EXPECT_EQ(bench_->documents().size(), 1u);
}

TEST_F(BeginningView, files_stand_in_the_order_in_which_they_were_opened) {
  const QString small = dir_.filePath("small.json");
  std::ofstream(small.toStdString())
      << R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]})";
  make_window();
  std::error_code code;
  std::filesystem::remove(traces::cache_path(trace_.toStdString()), code);
  bench_->open(trace_);
  bench_->open(small);
  settle();
  ASSERT_EQ(bench_->documents().size(), 2u);
  EXPECT_EQ(bench_->documents()[0].path, trace_.toStdString());
  EXPECT_EQ(bench_->documents()[1].path, small.toStdString());
}

struct SnapshotBeginning : testing::WindowTest {
  static constexpr int kAllocations = 220000;
  void SetUp() override {
    WindowTest::SetUp();
    file_name_ = dir_.filePath("large.json");
    store_ = traces::store_paths(snapshot::kSnapshotStore, file_name_.toStdString()).front();
    std::ofstream out(file_name_.toStdString());
    auto event = [&](const char* action, int i, bool first) {
      out << (first ? "" : ",\n") << R"({"action": ")" << action << R"(", "addr": )" << 4096 * (i + 1)
          << R"(, "size": )" << 1000 + i % 7 << R"(, "stream": 0, "time_us": )" << 1700000000000000 + i * 3
          << R"(, "frames": [{"filename": "model.py", "line": )" << i % 5 << R"(, "name": "forward"}]})";
    };
    out << R"({"device_traces": [[)";
    for (int i = 0; i < kAllocations; ++i) {
      event("alloc", i, i == 0);
      if (i >= 1000) event("free_completed", i - 1000, false);
    }
    out << R"(]], "segments": []})";
  }
  MemoryModel& memory() { return bench_->model<MemoryModel>(); }
  bool opened_to_the_picture() {
    std::error_code code;
    std::filesystem::remove(store_, code);
    bench_->open(file_name_);
    until([this] {
      return (memory().shows_beginning() && memory().snapshot()->history()) || !bench_->documents().empty();
    });
    return bench_->beginning() != nullptr;
  }
  QString file_name_;
  std::string store_;  ///< what an opening leaves for the next one
};

TEST_F(SnapshotBeginning, is_drawn_and_what_is_seen_of_it_stays) {
  open_spirals();
  bool seen = false;
  size_t cursor = 0;
  double lo = 0, hi = 0;
  for (int i = 0; i < 20 && !seen; ++i) {
    while (!bench_->documents().empty()) bench_->close_document(bench_->documents()[0].id);
    settle();
    if (!opened_to_the_picture()) continue;
    SceneCanvas* c = window_->view("memory")->canvas();
    until([&] { return window_->view("memory")->in_sight() && !c->model().last().prims().empty(); });
    for (int k = 0; k < 4; ++k) key(c, Qt::Key_W);
    key(c, Qt::Key_Right);
    seen = memory().shows_beginning();
    if (!seen) continue;
    EXPECT_GT(memory().snapshot()->events(), 10000u);
    EXPECT_LT(memory().snapshot()->events(), 400000u);
    EXPECT_FALSE(memory().snapshot()->axis().fitted());
    EXPECT_NE(bench_->bus.current().document, Document::kBeginning);
    cursor = memory().snapshot()->cursor();
    lo = memory().snapshot()->axis().lo, hi = memory().snapshot()->axis().hi;
  }
  ASSERT_TRUE(seen);
  settle();
  ASSERT_EQ(bench_->documents().size(), 1u);
  EXPECT_FALSE(bench_->beginning());
  ASSERT_NE(memory().snapshot(), nullptr);
  until([this] { return memory().snapshot()->events() > 400000; });
  EXPECT_EQ(memory().snapshot()->cursor(), cursor);
  EXPECT_DOUBLE_EQ(memory().snapshot()->axis().lo, lo);
  EXPECT_DOUBLE_EQ(memory().snapshot()->axis().hi, hi);
  EXPECT_TRUE(problems_.empty());
  // What was read is there the next time, and opens without a beginning.
  settle();
  const size_t events = memory().snapshot()->events();
  bench_->close_document(bench_->documents()[0].id);
  settle();
  open(file_name_);
  settle();
  EXPECT_TRUE(bench_->documents().at(0).snapshot->from_cache());
  until([&] { return memory().snapshot() && memory().snapshot()->events() == events; });
  // The store itself is a snapshot, too.
  bench_->close_document(bench_->documents()[0].id);
  settle();
  open(QString::fromStdString(store_));
  settle();
  EXPECT_TRUE(bench_->documents().at(0).snapshot->from_cache());
}

}  // namespace
}  // namespace tenon::views
