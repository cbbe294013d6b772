// What the next run begins with, in the window: a file is chosen, its tensors are sent, layers are frozen.
#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QComboBox>
#include <QFile>
#include <QLineEdit>
#include <QTest>
#include <QToolButton>

#include "engine/formats/safetensors.h"
#include "engine/ops/create.h"
#include "projects/time_travel.h"
#include "tests/views/shell/window_fixture.h"
#include "views/builder/builder_model.h"
#include "views/details/details_model.h"
#include "views/frame/table_list.h"

namespace tenon::views {
namespace {

class InitialWeights : public testing::WindowTest {
 protected:
  void show() {
    ASSERT_TRUE(window_->commands().run("view.weights"));
    settle();
  }
  TableList* list() { return window_->findChild<TableList*>("weights.table"); }
  QString said() { return window_->findChild<QLabel*>("weights.said")->accessibleName(); }
  void until_said(const QString& words) {
    until([&] { return said().contains(words); });
    EXPECT_TRUE(said().contains(words)) << said().toStdString();
  }
  /// Which row has this in a column; -1: none.
  int row_of(const QString& word, int column) {
    for (int r = 0; r < list()->model()->rowCount(); ++r)
      if (list()->model()->index(r, column).data().toString() == word) return r;
    return -1;
  }
  QString cell(int row, int column) { return list()->model()->index(row, column).data().toString(); }
  void type(const QString& name, const QString& text) {
    auto* line = window_->findChild<QLineEdit*>(name);
    ASSERT_NE(line, nullptr);
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, text);
    QTest::keyClick(line, Qt::Key_Return);
    settle();
  }
  Recipe saved() { return Recipe::from_json(bench_->project()->recipe()); }
  QString write_file() {
    const std::string path = dir_.filePath("w.safetensors").toStdString();
    const Tensor w = full({64, 2}, 0.5), b = full({64}, 0.25), c = full({64}, 0.125);
    formats::save_safetensors(path, {{"net.layers.0.weight", w}, {"net.layers.0.bias", b}, {"odd", c}});
    return QString::fromStdString(path);
  }
};

TEST_F(InitialWeights, a_file_is_chosen_mapped_and_trained_from) {
  open_spirals();
  show();
  until_said("the seed gives every value");
  EXPECT_EQ(cell(0, 0), "layers.0.weight");
  EXPECT_EQ(cell(0, 2), "from the seed");
  answer(write_file());
  press("weights.choose");
  until_said("0 of 6 tensors of the model are taken");
  // The change of names that fits most is offered.
  press("weights.use_rule");
  until_said("2 of 6 tensors");
  EXPECT_EQ(saved().text("init.map"), "net.*=*");
  const int odd = row_of("odd", 1);
  ASSERT_GE(odd, 0);
  click(list()->viewport(), list()->visualRect(list()->model()->index(odd, 1)).center());
  settle();
  auto* target = window_->findChild<QComboBox*>("weights.target");
  ASSERT_TRUE(target->isVisible());
  EXPECT_LT(target->findText("layers.0.weight"), 0) << "of another shape";
  EXPECT_EQ(target->currentText(), "") << "its shape suggests one, and that is all";
  target->setFocus();
  target->showPopup();
  QAbstractItemView* open = target->view();
  const int wanted = target->findText("layers.2.bias");
  ASSERT_GE(wanted, 0);
  for (int i = 0; open->currentIndex().row() != wanted && i <= target->count(); ++i)
    QTest::keyClick(open, Qt::Key_Down);
  QTest::keyClick(open, Qt::Key_Return);
  until([&] { return row_of("layers.2.bias", 0) >= 0 && cell(row_of("layers.2.bias", 0), 2) == "by rule"; });
  EXPECT_EQ(cell(row_of("layers.2.bias", 0), 1), "odd");
  type("weights.init.freeze", "layers.0.*");
  until_said("192 of ");
  EXPECT_EQ(cell(row_of("layers.0.weight", 0), 3), "frozen");
  EXPECT_EQ(cell(row_of("layers.2.weight", 0), 3), "yes");
  const LayerReport* first = bench_->builder.report("layers.0");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(bench_->builder.frozen_text(*first), "frozen");
  EXPECT_EQ(bench_->builder.frozen_text(*bench_->builder.report("layers.2")), "");
  auto next_run = [this](const char* layer) {
    const Details d = details_of(Selection::module(layer), {.builder = &bench_->builder});
    for (const Details::Row& r : d.sections.front().rows)
      if (r.name == "next run") return r.value;
    return std::string();
  };
  EXPECT_EQ(next_run("layers.0"), "frozen (init.freeze)");
  EXPECT_EQ(next_run("layers.2"), "");
  auto* missing = window_->findChild<QComboBox*>("weights.init.missing");
  missing->setFocus();
  QTest::keyClick(missing, Qt::Key_Down);
  settle();
  EXPECT_EQ(saved().text("init.missing"), "keep");
  train(6);
  const auto& run = bench_->contents().runs.back();
  EXPECT_EQ(Recipe::from_json(run.recipe).text("init.sha256").size(), 64u);
  QFile::remove(dir_.filePath("w.safetensors"));
  std::map<std::string, double> at;
  for (const auto& [name, t] : projects::state_at(*bench_->project(), run.id, 6).tensors)
    if (t.dtype() == DType::f32) at[name] = t.data<float>()[0];
  EXPECT_EQ(at.at("model/layers.0.weight"), 0.5) << "frozen";
  EXPECT_EQ(at.at("model/layers.0.bias"), 0.25);
  EXPECT_NEAR(at.at("model/layers.2.bias"), 0.125, 0.1);
  EXPECT_NE(at.at("model/layers.2.bias"), 0.125) << "trained";
  // The file is gone, and that is told here and nowhere else.
  type("weights.init.map", "net.*=*");
  until_said("w.safetensors");
  press("weights.seed");
  until_said("the seed gives every value");
  EXPECT_EQ(saved().text("init.freeze"), "layers.0.*") << "what is frozen stays so";
}

TEST_F(InitialWeights, what_fits_nothing_is_told_beside_the_table) {
  open_spirals();
  show();
  until_said("the seed gives every value");
  type("weights.init.freeze", "layrs.*");
  until_said("the model has no parameter called \"layrs.*\"");
  EXPECT_EQ(list()->model()->rowCount(), 6);
  type("weights.init.freeze", "layers.0.*");
  until_said("192 of ");
  type("weights.init.map", "no rule");
  until_said("\"no rule\" is no rule");
  EXPECT_EQ(list()->model()->rowCount(), 6);
}

}  // namespace
}  // namespace tenon::views
