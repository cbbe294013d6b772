// Where numbers begin to differ, in the window: by mouse and keys, against each reference.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>
#include <QTest>

#include "engine/formats/onnx/model.h"
#include "engine/ops/view.h"
#include "projects/finish.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/numbers/numbers_model.h"

namespace tenon::views {
namespace {

class NumbersInWindow : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
    train(30);
    ASSERT_TRUE(window_->commands().run("run.numbers"));
    settle();
  }
  void against(int row) {
    auto* box = part<QComboBox>("numbers.against");
    box->setFocus();
    key(box, Qt::Key_Home);
    for (int i = 0; i < row; ++i) key(box, Qt::Key_Down);
    EXPECT_EQ(box->currentIndex(), row);
  }
  void type(const QString& name, const QString& text) {
    auto* line = part<QLineEdit>(name);
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, text);
  }
  void compare() {
    press("numbers.compare");
    until([this] { return !bench_->jobs.has("numbers"); });
    settle();
  }
  QString said() { return part<QLabel>("numbers.said")->toolTip() + part<QLabel>("numbers.said")->text(); }
  TableList* list() { return part<TableList>("numbers.table"); }
  NumbersModel& model() { return dynamic_cast<NumbersModel&>(canvas("numbers")->model()); }
};

TEST_F(NumbersInWindow, another_precision_is_named_and_its_op_selected) {
  EXPECT_EQ(part<QSpinBox>("numbers.step")->value(), 30);
  type("numbers.set", "amp=bf16");
  key(part<QLineEdit>("numbers.set"), Qt::Key_Return);
  until([this] { return !bench_->jobs.has("numbers"); });
  settle();
  ASSERT_NE(model().audit(), nullptr);
  EXPECT_TRUE(said().contains("linear")) << said().toStdString();
  EXPECT_GT(list()->shown_rows(), 10);
  EXPECT_EQ(model().chosen(), model().audit()->difference.first);
  // A mark in the picture, then the keys, then a row of the table.
  SceneCanvas* c = canvas("numbers");
  const int64_t first = model().chosen();
  click(c, place(c, {NumbersModel::plot, first + 1}));
  settle();
  EXPECT_EQ(model().chosen(), first + 1);
  EXPECT_EQ(list()->currentIndex().row(), first + 1);
  c->setFocus();
  key(c, Qt::Key_F);
  EXPECT_EQ(model().chosen(), first);
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::module);
  EXPECT_EQ(bench_->bus.current().name, "layers.0");
  load_step(30);
  list()->setFocus();
  key(list(), Qt::Key_Down);
  settle();
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::op) << "its step is loaded now";
  EXPECT_EQ(model().chosen(), first + 1);
}

TEST_F(NumbersInWindow, f64_and_what_may_differ) {
  against(1);
  EXPECT_FALSE(part<QLineEdit>("numbers.set")->isVisible());
  compare();
  ASSERT_NE(model().audit(), nullptr);
  EXPECT_LT(model().audit()->difference.first, 0) << said().toStdString();
  type("numbers.within", "1e-12");
  compare();
  EXPECT_GE(model().audit()->difference.first, 0);
  type("numbers.within", "much");
  press("numbers.compare");
  EXPECT_FALSE(bench_->jobs.has("numbers"));
  EXPECT_TRUE(part<QLabel>("numbers.fault")->toolTip().contains("no number") ||
              part<QLabel>("numbers.fault")->text().contains("no number"));
}

TEST_F(NumbersInWindow, a_file_is_blamed_at_its_node) {
  const std::string file = dir_.filePath("m.onnx").toStdString();
  projects::export_run(*bench_->project(), *bench_->shown(), 30, projects::ExportFormat::onnx, file, false);
  formats::OnnxModel m = formats::load_onnx(file);
  for (auto& [name, t] : m.graph.initializers)
    if (name == "layers.2.bias") t = clone(t), t.data<float>()[0] += 1;
  formats::save_onnx(file, m);
  against(3);
  press("numbers.compare");
  EXPECT_FALSE(bench_->jobs.has("numbers")) << "no file is named yet";
  answer(QString::fromStdString(file));
  press("numbers.choose");
  compare();
  ASSERT_NE(model().audit(), nullptr) << said().toStdString();
  ASSERT_GE(model().audit()->difference.first, 0);
  EXPECT_EQ(model().audit()->difference.ops[static_cast<size_t>(model().chosen())].module, "layers.2");
  key(list(), Qt::Key_End);
  settle();
  // Another run: what was compared was of the one before.
  train(5);
  EXPECT_EQ(model().audit(), nullptr);
}

}  // namespace
}  // namespace tenon::views
