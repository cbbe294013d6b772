// Every file that a reader was ever tested with, in the window: it opens, or is refused with a sentence.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/views/shell/window_fixture.h"
#include "views/frame/view_def.h"

namespace tenon::views {
namespace {

namespace fs = std::filesystem;

class Seeds : public testing::WindowTest {
 protected:
  /// All files of a folder of the tests, from copies: what is kept of them stays out of the source.
  void open_all(const std::string& folder) {
    if (!window_) make_window();
    std::set<fs::path> files;
    for (const auto& e : fs::recursive_directory_iterator(std::string(TENON_SOURCE_DIR) + "/tests/" + folder))
      if (e.is_regular_file()) files.insert(e.path());
    ASSERT_FALSE(files.empty()) << folder;
    for (const fs::path& file : files) {
      SCOPED_TRACE(file.string());
      const fs::path copy = fs::path(dir_.path().toStdString()) / file.filename();
      fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
      look_at(QString::fromStdString(copy.string()));
      if (HasFatalFailure()) return;
    }
  }
  /// Opens it, lets the view that comes first and the ones beside it draw, and closes it.
  void look_at(const QString& file) {
    problems_.clear();
    bench_->open(file);
    settle();
    if (bench_->documents().empty()) {
      ASSERT_EQ(problems_.size(), 1u) << "it neither opens nor is refused";
      EXPECT_GT(problems_[0].size(), 30u) << problems_[0];
      EXPECT_NE(problems_[0].find(file.section('/', -1).toStdString()), std::string::npos) << problems_[0];
      ++refused_;
      return;
    }
    ASSERT_EQ(bench_->documents().size(), 1u);
    EXPECT_TRUE(problems_.empty()) << problems_[0];
    const Document& d = bench_->documents()[0];
    EXPECT_TRUE(bench_->bus.current().same(Selection::of_document(d.id)));
    for (const ViewDef& def : view_defs()) {
      if (def.opens != d.kind) continue;
      EXPECT_TRUE(window_->view(def.id)->in_sight()) << def.id;
      EXPECT_TRUE(!window_->view(def.id)->empty() || d.timelines.empty()) << def.id;
    }
    ++opened_;
    bench_->close_document(d.id);
    settle();
    EXPECT_TRUE(bench_->documents().empty());
  }
  int opened_ = 0, refused_ = 0;
};

TEST_F(Seeds, traces_and_their_stores) {
  open_all("fuzz/seeds/trace");
  open_all("fuzz/seeds/store");
  open_all("tracing/torch");
  EXPECT_GE(opened_, 12);
}

TEST_F(Seeds, memory_snapshots_and_pickles) {
  open_all("fuzz/seeds/snapshot");
  open_all("fuzz/seeds/pickle");
  open_all("tracing/data");
  EXPECT_GE(opened_, 40);
}

TEST_F(Seeds, models_and_arrays) {
  for (const char* reader : {"onnx", "safetensors", "torch_file", "npy"}) open_all(std::string("fuzz/seeds/") + reader);
  EXPECT_GE(opened_, 150);
}

TEST_F(Seeds, what_is_no_file_of_the_window) {
  for (const char* reader : {"csv", "idx", "image", "model", "tokens"}) open_all(std::string("fuzz/seeds/") + reader);
  EXPECT_EQ(opened_, 0);
  EXPECT_GE(refused_, 18);
}

}  // namespace
}  // namespace tenon::views
