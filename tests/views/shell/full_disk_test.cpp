// The window on a disk that fills up: a run waits and goes on, an edit is saved once there is room, a new project
// leaves nothing behind.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <QDir>
#include <QPlainTextEdit>
#include <QTest>
#include <QToolButton>
#include <filesystem>
#include <fstream>

#include "engine/templates/templates.h"
#include "tests/views/shell/window_fixture.h"

namespace tenon::views {
namespace {

class FullDisk : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    disk_ = dir_.filePath("disk").toStdString();
    std::filesystem::create_directory(disk_);
    // So large that what the run itself writes does not fill it again while a slow machine looks on.
    if (geteuid() != 0 || mount("tmpfs", disk_.c_str(), "tmpfs", 0, "size=96m") != 0)
      GTEST_SKIP() << "mounting a small disk takes root here; tests/projects proves the same without a window";
  }
  void TearDown() override {
    WindowTest::TearDown();
    umount2(disk_.c_str(), MNT_DETACH);
  }
  QString on_disk(const char* name) const { return QString::fromStdString(disk_ + "/" + name); }
  void open_on_disk() {
    const Beginning b = begin(find_template("spirals"), "", disk_, {{"epochs", "100000"}});
    projects::Project::create(on_disk("p.tenon").toStdString(), b.model, b.recipe.to_json());
    open(on_disk("p.tenon"));
  }
  void fill() {
    std::ofstream out(disk_ + "/ballast", std::ios::binary);
    const std::string block(1 << 16, 'x');
    while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
    out.clear();
    for (int i = 0; i < (1 << 16) && out.put('x').flush(); ++i) {
    }
  }
  void empty() { std::filesystem::remove(disk_ + "/ballast"); }

  std::string disk_;
};

TEST_F(FullDisk, a_run_waits_says_so_and_goes_on) {
  open_on_disk();
  ASSERT_TRUE(window_->commands().run("run.train"));
  until([this] { return bench_->training() && bench_->status().step > 50; });
  fill();
  until([this] {
    return !bench_->status().blocked.empty() && bench_->status().state == projects::RunStatus::State::paused;
  });
  until([this] { return banner_shown() || bench_->status().blocked.empty(); });
  ASSERT_FALSE(bench_->status().blocked.empty());
  EXPECT_TRUE(banner().contains("waits at step")) << banner().toStdString();
  EXPECT_TRUE(banner().contains("no space")) << banner().toStdString();
  ASSERT_NE(banner_action(), nullptr);
  const int64_t held = bench_->status().step;
  EXPECT_TRUE(window_->commands().run("view.training"));  // the window answers meanwhile
  QTest::qWait(100);
  EXPECT_EQ(bench_->status().step, held);
  empty();
  if (banner_action()) click(banner_action(), banner_action()->rect().center());
  until([&] { return bench_->status().step > held + 20; });
  EXPECT_TRUE(bench_->status().blocked.empty());
  until([this] { return !banner_shown(); });
  ASSERT_TRUE(window_->commands().run("run.stop"));
  until([this] { return !bench_->training(); });
  settle();
  EXPECT_EQ(bench_->shown()->status, "stopped");
  EXPECT_EQ(static_cast<int64_t>(bench_->project()->metric(bench_->shown_run(), "loss").size()), bench_->shown_steps())
      << "a loss for each step";
}

TEST_F(FullDisk, closing_the_window_asks_before_steps_are_lost) {
  open_on_disk();
  ASSERT_TRUE(window_->commands().run("run.train"));
  until([this] { return bench_->training() && bench_->status().step > 50; });
  fill();
  until([this] { return !bench_->status().blocked.empty(); });
  EXPECT_FALSE(window_->close());
  EXPECT_TRUE(window_->isVisible());
  EXPECT_TRUE(banner().contains("not saved")) << banner().toStdString();
  empty();
  until([this] { return bench_->status().blocked.empty(); });
  ASSERT_TRUE(window_->commands().run("run.stop"));
  until([this] { return !bench_->training(); });
  settle();
}

TEST_F(FullDisk, an_edit_is_saved_once_there_is_room) {
  open_on_disk();
  const size_t layers = bench_->builder.spec().layers.size();
  fill();
  // Names take room: enough of them that no page of the file has it left.
  for (int i = 0; i < 40; ++i) bench_->builder.insert_layer("Dropout");
  bench_->builder.rename(bench_->builder.primary(), std::string(200000, 'n'));
  until([this] { return !problems_.empty(); });
  EXPECT_NE(problems_[0].find("could not be saved"), std::string::npos) << problems_[0];
  EXPECT_EQ(bench_->project()->model().layers.size(), layers);
  empty();
  until([&] { return bench_->project()->model().layers.size() == layers + 40; });
  settle();
  EXPECT_EQ(problems_.size(), 1u) << "it is told once, not with every try";
}

TEST_F(FullDisk, a_new_project_leaves_nothing) {
  make_window();
  fill();
  bench_->create(on_disk("new.tenon"), "spirals");
  until([this] { return !problems_.empty(); });
  settle();
  EXPECT_NE(problems_[0].find("no space"), std::string::npos) << problems_[0];
  EXPECT_FALSE(bench_->has_project());
  EXPECT_EQ(QDir(QString::fromStdString(disk_)).entryList(QDir::Files | QDir::Hidden), QStringList{"ballast"});
}

}  // namespace
}  // namespace tenon::views
