// A trained run is evaluated and exported from the window: what it says is what the command line says.
#include <gtest/gtest.h>

#include <QLineEdit>
#include <QListWidget>
#include <QTest>
#include <filesystem>

#include "core/file.h"
#include "engine/formats/onnx/model.h"
#include "engine/formats/safetensors.h"
#include "engine/train/session.h"
#include "projects/finish.h"
#include "projects/results.h"
#include "tests/views/shell/window_fixture.h"
#include "views/report/report.h"

namespace tenon::views {
namespace {

class Finish : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
    train(30);
    QTest::qWait(10);
    settle();
  }
  QStringList offered() {
    QStringList texts;
    for (int i = 0; i < window_->picker()->list()->count(); ++i) texts << window_->picker()->list()->item(i)->text();
    return texts;
  }
  void pick(const QString& typed = {}) {
    auto* field = window_->picker()->findChild<QLineEdit*>();
    QTest::keyClicks(field, typed);
    QTest::keyClick(field, Qt::Key_Return);
    settle();
  }
};

TEST_F(Finish, a_run_is_evaluated_at_any_step) {
  const projects::RunInfo run = *bench_->shown();
  ASSERT_TRUE(window_->commands().run("run.evaluate"));
  EXPECT_TRUE(window_->picker()->isVisible());
  EXPECT_FALSE(offered().isEmpty());
  pick("12");
  const std::string expected =
      projects::evaluation_text(run, 12, projects::results_at(*bench_->project(), run, 12).evaluation);
  EXPECT_TRUE(banner_shown());
  EXPECT_EQ(banner().toStdString(), "Evaluated: " + expected);
  EXPECT_TRUE(problems_.empty());
}

TEST_F(Finish, the_step_that_is_looked_at_is_among_the_states) {
  load_step(7);
  ASSERT_TRUE(window_->commands().run("file.export"));
  EXPECT_TRUE(offered().contains("step 7")) << offered().join(", ").toStdString();
  EXPECT_TRUE(offered().contains("step 30")) << offered().join(", ").toStdString();
  QTest::keyClick(window_->picker()->findChild<QLineEdit*>(), Qt::Key_Escape);
  EXPECT_FALSE(window_->picker()->isVisible());
}

TEST_F(Finish, a_model_is_exported_and_compared) {
  const QString onnx = dir_.filePath("m.onnx");
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(onnx);
  pick("30");
  ASSERT_TRUE(std::filesystem::exists(onnx.toStdString())) << banner().toStdString();
  EXPECT_TRUE(banner().startsWith("Exported: ")) << banner().toStdString();
  EXPECT_TRUE(banner().contains("verified on 64 test samples")) << banner().toStdString();
  EXPECT_FALSE(formats::load_onnx(onnx.toStdString()).graph.nodes.empty());
  // The state_dict, by the end of its name or by the kind that is chosen.
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(dir_.filePath("weights"), "safetensors (*.safetensors)");
  pick("30");
  EXPECT_TRUE(banner().contains("every tensor read back has the same bits")) << banner().toStdString();
  EXPECT_EQ(formats::Safetensors::open(dir_.filePath("weights.safetensors").toStdString()).entries().size(), 6u);
  // A program, by the kind that is chosen, and C++, by the end of its name.
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(dir_.filePath("program"), "TorchScript program (*.torchscript)");
  pick("30");
  EXPECT_TRUE(banner().contains("a program of 5 steps")) << banner().toStdString();
  EXPECT_TRUE(std::filesystem::exists(dir_.filePath("program.torchscript").toStdString()));
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(dir_.filePath("model.h"));
  pick("30");
  EXPECT_TRUE(banner().contains("model.h and model.cpp")) << banner().toStdString();
  EXPECT_TRUE(std::filesystem::exists(dir_.filePath("model.cpp").toStdString()));
  EXPECT_TRUE(problems_.empty());
  // A name that says no format, and a place that cannot be written, are told.
  ASSERT_TRUE(window_->commands().run("file.export"));
  answer(dir_.filePath("m.txt"));
  pick("30");
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(dir_.filePath("m.txt").toStdString()));
}

TEST_F(Finish, a_report_is_the_page_that_the_command_line_writes) {
  const QString page = dir_.filePath("report.html");
  ASSERT_TRUE(window_->commands().run("file.report"));
  EXPECT_TRUE(window_->picker()->isVisible());
  answer(page);
  pick("30");
  ASSERT_TRUE(std::filesystem::exists(page.toStdString())) << banner().toStdString();
  EXPECT_TRUE(banner().startsWith("Written: ")) << banner().toStdString();
  EXPECT_TRUE(problems_.empty());
  // Another opening of the file, without a window, on the thread of whoever asks.
  const auto again = projects::Project::open(file_.toStdString(), true);
  const auto run = again->run(bench_->shown()->name);
  EXPECT_EQ(read_file(page.toStdString()), report_html(read_report(*again, run, 30)));
  // A name that is none of a page, and a folder that is not there, are told.
  ASSERT_TRUE(window_->commands().run("file.report"));
  answer(dir_.filePath("report.txt"));
  pick("30");
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(dir_.filePath("report.txt").toStdString()));
}

}  // namespace
}  // namespace tenon::views
