// The usual mistakes, looked for in the window: a planted one is found, its row selects its layer, and is gone once it
// is mended.
#include <gtest/gtest.h>

#include <QLabel>
#include <QPushButton>
#include <QTest>

#include <cmath>

#include "engine/formats/safetensors.h"
#include "projects/project.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/table_list.h"

namespace tenon::views {
namespace {

class ChecksPage : public testing::WindowTest {
 protected:
  TableList* list() { return window_->findChild<TableList*>("checks.table"); }
  QString said() { return window_->findChild<QLabel*>("checks.said")->accessibleName(); }
  void check() {
    ASSERT_TRUE(window_->commands().run("checks.run"));
    settle();
    until([&] { return !bench_->jobs.has("checks"); });
    settle();
  }
};

TEST_F(ChecksPage, a_softmax_before_the_loss_is_found_and_selects_its_layer) {
  open_spirals();
  check();
  EXPECT_TRUE(said().startsWith("Nothing found in ")) << said().toStdString();
  EXPECT_EQ(list()->shown_rows(), 0);
  press("checks.all");
  EXPECT_GT(list()->shown_rows(), 15);
  press("checks.all");

  ModelSpec model = bench_->project()->model();
  const std::string last =
      model.layers.back().type == "Output" ? model.layers[model.layers.size() - 2].name : model.layers.back().name;
  model.layers.push_back({"shares", "Softmax", {}});
  model.wires.push_back({last, 0, "shares", 0});
  close_window();
  projects::Project::open(file_.toStdString())->set_model(model);
  make_window();
  open(file_);
  check();
  EXPECT_TRUE(said().startsWith("1 thing found in ")) << said().toStdString();
  ASSERT_EQ(list()->shown_rows(), 1);
  click(list()->viewport(), list()->visualRect(list()->model()->index(0, 0)).center());
  settle();
  EXPECT_EQ(bench_->bus.current().name, "shares");
}

TEST_F(ChecksPage, the_button_of_the_empty_view_begins) {
  open_spirals();
  train(20);
  ASSERT_TRUE(window_->commands().run("view.checks"));
  settle();
  for (auto* b : window_->findChildren<QPushButton*>())
    if (b->isVisible() && b->text() == "Check") {
      click(b, b->rect().center());
      break;
    }
  until([&] { return said().contains("checks"); });
  EXPECT_TRUE(said().startsWith("Nothing found in ")) << said().toStdString();
}

TEST_F(ChecksPage, a_file_of_weights_is_checked_and_held_against_the_open_project) {
  open_spirals();
  const QString file = dir_.filePath("w.safetensors");
  Tensor fine = empty({64, 2}), bad = empty({64});
  for (Tensor* t : {&fine, &bad})
    for (int64_t i = 0; i < t->numel(); ++i) t->data<float>()[i] = 0.01f * static_cast<float>(i + 1);
  bad.data<float>()[5] = NAN;
  formats::save_safetensors(file.toStdString(), {{"layers.0.weight", fine}, {"layers.0.bias", bad}});
  open(file);
  until([this] { return bench_->shown_document() != nullptr; });
  check();
  ASSERT_GT(list()->shown_rows(), 1) << "a NaN, and what the model has beside";
  int nan_row = -1;
  for (int i = 0; i < list()->shown_rows(); ++i)
    if (list()->model()->index(i, 0).data().toString().contains("NaN")) nan_row = i;
  ASSERT_GE(nan_row, 0);
  click(list()->viewport(), list()->visualRect(list()->model()->index(nan_row, 0)).center());
  settle();
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::file_tensor);
  EXPECT_EQ(bench_->bus.current().name, "layers.0.bias");
  bench_->close_document(bench_->shown_document()->id);
  settle();
  EXPECT_TRUE(window_->findChild<QLabel*>("checks.said") != nullptr);
  EXPECT_EQ(bench_->shown_document(), nullptr);
  check();
  EXPECT_TRUE(said().startsWith("Nothing found in ")) << "the project's own checks again: " << said().toStdString();
}

}  // namespace
}  // namespace tenon::views
