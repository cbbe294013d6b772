// From an ONNX file that is looked at to a project that goes on from it; with real events.
#include <gtest/gtest.h>

#include <QFileInfo>
#include <QInputDialog>
#include <QLineEdit>
#include <QTest>
#include <QTimer>

#include "tests/views/model_files.h"
#include "tests/views/shell/drop.h"
#include "tests/views/shell/window_fixture.h"
#include "views/builder/builder_model.h"

namespace tenon::views {
namespace {

class BuildFromModel : public testing::WindowTest {
 protected:
  void opened(const formats::OnnxModel& m) {
    model_ = dir_.filePath("blocks.onnx");
    formats::save_onnx(model_.toStdString(), m);
    make_window();
    testing::drop_files(window_.get(), {model_});
    settle();
    ASSERT_EQ(bench_->documents().size(), 1u);
  }
  std::string banner_after_build(const QString& path) {
    answer(path);
    press("model_file.build");
    settle();
    return banner().toStdString();
  }
  QString model_;
};

TEST_F(BuildFromModel, its_layers_stand_on_the_canvas_with_their_names) {
  opened(testing::blocks_model(3));
  const QString project = dir_.filePath("mine.tenon");
  const std::string said = banner_after_build(project);
  EXPECT_NE(said.find("blocks.onnx is a project"), std::string::npos) << said;
  EXPECT_NE(said.find("12 layers of 10 nodes; the same outputs"), std::string::npos) << said;
  ASSERT_TRUE(bench_->has_project());
  EXPECT_EQ(bench_->file(), project);
  const ModelSpec& m = bench_->contents().model;
  ASSERT_TRUE(m.find("layers.2.conv"));
  EXPECT_EQ(m.find("layers.2.conv")->type, "Conv2d");
  ASSERT_TRUE(m.find("head"));
  EXPECT_TRUE(bench_->recipe().text("init.from").ends_with("/mine.safetensors"));
  EXPECT_TRUE(QFileInfo::exists(dir_.filePath("mine.safetensors")));
  EXPECT_TRUE(bench_->builder.errors().empty());
  EXPECT_EQ(bench_->documents().size(), 1u) << "the file stays open";
}

TEST_F(BuildFromModel, sizes_that_the_file_leaves_open_are_asked_for) {
  formats::OnnxModel m = testing::blocks_model(1);
  m.graph.inputs[0].shape[2] = {-1, "height"};
  opened(m);
  bool asked = false;
  QTimer::singleShot(0, window_.get(), [this, &asked] {
    auto* d = qobject_cast<QInputDialog*>(QApplication::activeModalWidget());
    ASSERT_NE(d, nullptr);
    EXPECT_TRUE(d->labelText().contains("height")) << d->labelText().toStdString();
    auto* line = d->findChild<QLineEdit*>();
    line->selectAll();
    QTest::keyClicks(line, "4x6x8");
    asked = true;
    answer(dir_.filePath("open.tenon"));
    QTest::keyClick(line, Qt::Key_Return);
  });
  press("model_file.build");
  settle();
  EXPECT_TRUE(asked);
  ASSERT_TRUE(bench_->has_project()) << (problems_.empty() ? "" : problems_.back());
  EXPECT_EQ(std::get<std::vector<int64_t>>(*bench_->contents().model.layers[0].find("shape")),
            (std::vector<int64_t>{4, 6, 8}));
}

TEST_F(BuildFromModel, what_cannot_be_is_said_and_leaves_nothing) {
  formats::OnnxModel m = testing::blocks_model(1);
  m.graph.nodes[1].op_type = "NonZero";
  opened(m);
  banner_after_build(dir_.filePath("none.tenon"));
  ASSERT_FALSE(problems_.empty());
  EXPECT_NE(problems_.back().find("there is no layer for NonZero"), std::string::npos) << problems_.back();
  EXPECT_FALSE(bench_->has_project());
  EXPECT_FALSE(QFileInfo::exists(dir_.filePath("none.tenon")));
  problems_.clear();
}

}  // namespace
}  // namespace tenon::views
