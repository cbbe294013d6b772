// A large trace is seen before it is read.
#include <gtest/gtest.h>

#include <QLabel>
#include <filesystem>
#include <fstream>

#include "tests/views/shell/window_fixture.h"
#include "tracing/trace/trace_reader.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

struct Beginning : testing::WindowTest {
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

TEST_F(Beginning, is_shown_and_gives_way_to_the_whole) {
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

TEST_F(Beginning, goes_when_the_reading_is_cancelled_or_a_project_opens) {
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

}  // namespace
}  // namespace tenon::views
